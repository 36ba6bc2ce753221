"""The day on which a text was said, for words such as "next Friday"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.times.days import WEEKDAYS
from agent_memory.times.mentions import times_in

if TYPE_CHECKING:
    from datetime import datetime

_YEAR: Final = re.compile(r"\d{4}")
_MAX_CHARS: Final = 2_000


def describe_saying(text: str, said_at: datetime) -> str:
    """Return the day of saying if dates of the text depend on it, else "".

    The day is written as "2026-11-26 (Thu)".

    Args:
        text: Stored text; its first 2,000 characters are read.
        said_at: Aware moment of saying, in the speaker's zone.
    """
    text = text[:_MAX_CHARS]
    for mention in times_in(text, said_at):
        if not mention.is_resolved or not _YEAR.search(text, mention.start, mention.end):
            return f"{said_at:%Y-%m-%d} ({WEEKDAYS[said_at.weekday()][:3].capitalize()})"
    return ""
