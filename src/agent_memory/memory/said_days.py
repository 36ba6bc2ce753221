"""Days of saying, for words such as "next Friday"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.models.clock import FILE_TIME

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import Record


def describe_said_day(record: Record, text: str) -> str:
    """Return the day of saying if dates depend on it.

    If only the time of the record's file is known, the day is marked as that.
    """
    from agent_memory.times import describe_saying  # reads dates

    said_day = describe_saying(text, record.said_at)
    return f"unknown; {describe_day(record, record.said_at)}" if said_day and FILE_TIME in record.metadata else said_day


def describe_day(record: Record, moment: datetime) -> str:
    """Return the day of a moment, marking a file time."""
    return f"file of {moment:%Y-%m-%d}" if FILE_TIME in record.metadata else f"{moment:%Y-%m-%d}"
