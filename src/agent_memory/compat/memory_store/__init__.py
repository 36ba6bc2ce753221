"""`MemoryStore` and its helpers: entries as views of records."""
