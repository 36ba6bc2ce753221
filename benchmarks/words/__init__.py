"""The indexes of words beside others: bm25s, which is built as a whole, SQLite's FTS5, and tantivy."""
