"""Time as this project keeps it: aware, in UTC. The only place that reads the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Annotated, Any, Final

from pydantic import AfterValidator

_LAST: Final = datetime.max.replace(tzinfo=UTC)
_END: Final = _LAST.timestamp()

Clock = Callable[[], datetime]
"""Returns the present moment as an aware datetime in UTC."""


def utc_now() -> datetime:
    """Return now, aware, in UTC."""
    return datetime.now(UTC)


def as_utc(moment: datetime) -> datetime:
    """Return `moment` in UTC; a naive one is taken as local time, the way a person writes it.

    Raises:
        ValueError: The moment lies outside the years 1 to 9999 once converted.
    """
    try:
        return moment.astimezone(UTC)
    except (OverflowError, OSError) as error:
        raise ValueError(f"{moment!s} cannot be expressed in UTC") from error


OFFSET: Final = "utc_offset"
"""Key of a record's metadata: the offset of a message, such as "-05:00"."""

FILE_TIME: Final = "file_time"
"""Key of a record's metadata: its day of saying is not known, only the modification time of its file."""


def get_saying_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata about the moment of saying."""
    return {key: metadata[key] for key in (OFFSET, FILE_TIME) if key in metadata}


def build_offset(moment: datetime) -> dict[str, str]:
    """Return metadata with the offset of an aware moment; none for UTC."""
    return {OFFSET: moment.isoformat()[-6:]} if moment.utcoffset() else {}


def to_own_zone(moment: datetime, metadata: Mapping[str, object], default: tzinfo | None = UTC) -> datetime:
    """Return the moment of a record with the offset in its metadata, else in a default zone (None: the local one)."""
    try:
        return moment.astimezone(datetime.fromisoformat(f"2000-01-01T00:00:00{metadata[OFFSET]}").tzinfo)
    except (KeyError, ValueError):
        return moment.astimezone(default)


def from_seconds(seconds: float) -> datetime:
    """Return the moment so many seconds after 1970, in UTC.

    A float cannot tell the last microseconds of the year 9999 from the year 10000, in which there is no moment.
    """
    return _LAST if seconds >= _END else datetime.fromtimestamp(seconds, UTC)


def to_text(moment: datetime) -> str:
    """Return `moment` as ISO 8601 with a `Z`, e.g. `2026-01-30T16:00:00.250000Z`."""
    return as_utc(moment).isoformat().replace("+00:00", "Z")


UtcDatetime = Annotated[datetime, AfterValidator(as_utc)]
"""A pydantic field type: any ISO 8601 input, held aware and in UTC."""
