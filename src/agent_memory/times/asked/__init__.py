"""Stretches of time that a question names: "last week", "before June", "between 20 and 31 July", "on 24.07.2026"."""

from agent_memory.times.asked.reading import Reading, named_periods, read_periods

__all__ = ["Reading", "named_periods", "read_periods"]
