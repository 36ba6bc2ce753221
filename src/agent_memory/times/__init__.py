"""Times that a text names: spans of days, read from words, seen from the moment they were said or asked."""

from agent_memory.times.mentions import TimeMention, times_in
from agent_memory.times.period import Period
from agent_memory.times.questions import Reading, named_periods, read_periods
from agent_memory.times.saying import describe_saying

__all__ = [
    "Period",
    "Reading",
    "TimeMention",
    "describe_saying",
    "named_periods",
    "read_periods",
    "times_in",
]
