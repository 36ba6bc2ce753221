"""Pages of topics: filing of items, records and files."""
