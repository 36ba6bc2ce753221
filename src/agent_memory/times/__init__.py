"""Times that a text names: stretches of days, read from words, seen from the moment they were said or asked."""

from agent_memory.times.asked import Reading, named_periods, read_periods
from agent_memory.times.period import Period
from agent_memory.times.reading import TimeMention, Validity, times_in, valid_times

__all__ = [
    "Period",
    "Reading",
    "TimeMention",
    "Validity",
    "named_periods",
    "read_periods",
    "times_in",
    "valid_times",
]
