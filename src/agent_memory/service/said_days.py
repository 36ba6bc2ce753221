"""The day on which a record was said, for words such as "next Friday"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.models.times import FILE_TIME
from agent_memory.times import describe_saying

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import Record


def describe_said_day(record: Record, text: str) -> str:
    """Return the day of saying of a record if dates in its text depend on it; else "".

    If only the time of its file is known, the day is marked as that.
    """
    said = describe_saying(text, record.said_at)
    return f"unknown; {describe_day(record, record.said_at)}" if said and FILE_TIME in record.metadata else said


def describe_day(record: Record, moment: datetime) -> str:
    """Return the day of a moment of a record, marked if it is only the time of its file."""
    return f"file of {moment:%Y-%m-%d}" if FILE_TIME in record.metadata else f"{moment:%Y-%m-%d}"
