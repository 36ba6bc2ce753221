"""Commands of `agent-memory workspace`."""
