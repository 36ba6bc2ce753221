"""What becomes of topics and their pages: where items are filed, and what twenty rewrites lose."""
