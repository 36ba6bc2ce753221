"""Long-term memory for agents."""
