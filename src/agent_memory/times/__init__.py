"""Times that a text names: spans of days, read from words, seen from the moment they were said or asked."""

from agent_memory.times.mentions import TimeMention, times_in
from agent_memory.times.period import Period
from agent_memory.times.questions import QuestionPeriods, named_periods, read_periods
from agent_memory.times.saying_day import describe_saying

__all__ = [
    "Period",
    "QuestionPeriods",
    "TimeMention",
    "describe_saying",
    "named_periods",
    "read_periods",
    "times_in",
]
