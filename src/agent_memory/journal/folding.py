"""What a compaction keeps of all entries, what it moves aside, and which records have their end with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_memory.errors import ValidationError
from agent_memory.journal.compaction import compact_entries
from agent_memory.journal.format import encode_entry
from agent_memory.journal.kept import forgotten_in
from agent_memory.journal.reader import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from agent_memory.journal.format import Change, Entry

_LONG_AGO, _FAR = "", "~"  # before and after every ISO 8601 date


@dataclass(frozen=True, slots=True)
class Folded:
    """A journal's new lines, and the ids of records of which it knows no text any more."""

    lines: list[bytes]
    forgotten: set[str]


def fold(
    entries: Sequence[Entry],
    young: int,
    kinds: Collection[str],
    keep: Callable[[Change], str | None] | None,
    ended: Callable[[Change], bool] | None,
) -> Folded:
    """Return the compacted file: up to the entry at `young` versions go, from there on they stay.

    Args:
        entries: All of them, in the order of the file.
        young: Position of the first within its grace time.
        kinds: Record kinds that may be folded.
        keep: Judges a `put`: a reason instead of None means that its owner cannot read it.
        ended: Tells of a record, as a `put`, whether its own time has been over for long; then it goes, unless
            something was written about it since.
    """
    if any(not entry.beyond.isdisjoint(kinds) for entry in entries):
        ended = None  # a newer version may have said something about their time
    later = _written_in(entries[young:])
    gone: set[str] = set()

    def goes(change: Change) -> bool:
        goes = ended is not None and change.id not in later and ended(change)
        if goes:
            gone.add(change.id)
        return goes

    lines = _lines(entries, young, kinds, keep, goes)
    return Folded(lines, gone | forgotten_in(entries[:young], entries[young:], kinds))


def refused(entries: Sequence[Entry], keep: Callable[[Change], str | None]) -> tuple[list[Entry], list[Problem]]:
    """Return the entries that their owner can read, and the others with the reason why not."""
    kept: list[Entry] = []
    bad: list[Problem] = []
    for entry in entries:
        reasons = [] if entry.opaque else [keep(change) if change.op == "put" else None for change in entry.changes]
        if reasons and all(reasons):  # one good change in a batch keeps the line where it is
            bad.append(Problem(entry.seq, str(reasons[0]), entry.raw))
        else:
            kept.append(entry)
    return kept, bad


def _lines(
    entries: Sequence[Entry],
    young: int,
    kinds: Collection[str],
    keep: Callable[[Change], str | None] | None,
    goes: Callable[[Change], bool],
) -> list[bytes]:
    try:
        lines = compact_entries(entries[:young], kinds, _FAR, keep, goes)
        return lines + compact_entries(entries[young:], kinds, _LONG_AGO, keep)
    except ValidationError:
        # Another program wrote what can be read and not be written (an infinite number): it stays as it is.
        marked = [entry if _is_encodable(entry) else replace(entry, opaque=True) for entry in entries]
        if marked == list(entries):
            raise
        return _lines(marked, young, kinds, keep, goes)


def _written_in(entries: Sequence[Entry]) -> set[str]:
    return {change.id for entry in entries for change in entry.changes if change.op not in {"touch", "mark"}}


def _is_encodable(entry: Entry) -> bool:
    try:
        encode_entry(entry.seq, entry.at, entry.changes)
    except ValidationError:
        return entry.opaque
    return True
