"""Times that a text names: stretches of days, read from words, seen from the moment they were said or asked."""

from agent_memory.times.asked import Reading, named_periods, read_periods
from agent_memory.times.period import Period

__all__ = ["Period", "Reading", "named_periods", "read_periods"]
