"""Pages of topics: where items are filed, and what a page says of them, as records and as files."""
