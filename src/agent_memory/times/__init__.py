"""Times in texts, seen from the moment of saying or asking."""

from agent_memory.times.date_mentions import (
    QuestionPeriods,
    TimeMention,
    describe_saying,
    named_periods,
    read_periods,
    times_in,
)
from agent_memory.times.days import Period

__all__ = [
    "Period",
    "QuestionPeriods",
    "TimeMention",
    "describe_saying",
    "named_periods",
    "read_periods",
    "times_in",
]
