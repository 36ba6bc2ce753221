"""How the data in `agent_memory/entities/data` is made from open sources; see docs/entities.md for what to fetch."""
