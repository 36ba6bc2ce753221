"""The memory of one agent by the names of `MemoryStore`: entries as views of records, and what is asked of them."""
