"""Database of a workspace: tables, transactions and the history of every change."""
