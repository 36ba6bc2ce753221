"""Quarantined records: a reader died on them; nothing is derived."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.models import StageFailure

LEAST_DEATHS: Final = 2
"""Deaths of the process in which a record was current, and from which on it is read alone."""
MOST_DEATHS: Final = 10
"""Deaths from which on a record is quarantined though its reader ends well alone: something behind the reader kills."""
_TITLE_CHARS: Final = 60
_CODE: Final = re.compile(r"quarantined (\S{1,32}) (\S{1,24})")


@dataclass(frozen=True, slots=True)
class QuarantinedRecord:
    """A record from which nothing is derived.

    Attributes:
        id: ID of the record.
        title: What it is called, or how it begins.
        since: When it was quarantined.
        reason: Why, in one word, as in `ReaderDiedError`.
    """

    id: str
    title: str
    since: datetime
    reason: str


@functools.cache
def get_version() -> str:
    """Return the version of this package, as one word."""
    try:
        return metadata.version("amplifier-bundle-agent-memory")[:32]
    except metadata.PackageNotFoundError:
        return "unknown"


def get_title(record: object) -> str:
    """Return the title of a record, or its first words."""
    text = getattr(record, "title", "") or getattr(record, "content", "")
    return " ".join(str(text).split())[:_TITLE_CHARS]


def make_code(reason: str) -> str:
    """Return the code of a quarantine, with the version."""
    return f"quarantined {get_version()} {reason[:24]}"


def is_quarantined(failure: StageFailure) -> bool:
    """Return True if a failure quarantines its record."""
    return _CODE.fullmatch(failure.code) is not None


def is_of_older_version(failure: StageFailure) -> bool:
    """Return True if another version quarantined a record."""
    match = _CODE.fullmatch(failure.code)
    return match is not None and match[1] != get_version()


def get_reason(failure: StageFailure) -> str:
    """Return the reason of a quarantine, in one word."""
    match = _CODE.fullmatch(failure.code)
    return match[2] if match else failure.code
