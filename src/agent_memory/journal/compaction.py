"""What a journal looks like once its past is folded. Pure: entries in, lines out; replay of both gives the same.

Two things are folded, everything else is kept byte for byte:

- The oldest entries, up to the first that is within its grace time or beyond this version, become one `put` for each
  live record. It keeps the seq and time of the record's last change.
- Among the younger ones, runs of `touch` on the same record become one with the summed count.

A line's age is what has passed since, from line to line and to the present: a clock that was set back adds nothing, and
neither does a leap of more than a year, which is rather a clock that is wrong than a memory that nobody used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.journal.format import Change, Entry, encode_entry
from agent_memory.journal.replay import Records, apply_change

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

Key = tuple[str, str]
Line = tuple[int, bytes]
"""A position in the old file, which is what orders the new one, and a line."""
LEAP: Final = timedelta(days=366)
_NOTHING: Final = timedelta()
_LONG_AGO, _FAR = "", "~"  # before and after every ISO 8601 date


def first_young(entries: Sequence[Entry], now: datetime, grace: timedelta) -> int:
    """Return the position of the first entry that is not older than `grace`, or the number of entries.

    By position: entries are in the order of writing, whatever the clock said. Without any grace none is young, not even
    what was written this moment.
    """
    if grace <= _NOTHING:
        return len(entries)
    later, age = now, _NOTHING
    for position in range(len(entries) - 1, -1, -1):
        moment = datetime.fromisoformat(entries[position].at)
        passed = later - moment
        if _NOTHING < passed <= LEAP:
            age += passed
        if age > grace:
            return position + 1
        later = moment
    return 0


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
    return Folded(lines, gone | (_deleted_in(entries[:young], kinds) - later))


def refused(
    entries: Sequence[Entry], keep: Callable[[Change], str | None]
) -> tuple[list[Entry], list[tuple[Entry, str]]]:
    """Return the entries that their owner can read, and the others, each with the reason why not."""
    kept: list[Entry] = []
    bad: list[tuple[Entry, str]] = []
    for entry in entries:
        reasons = [] if entry.opaque else [keep(change) if change.op == "put" else None for change in entry.changes]
        if reasons and all(reasons):  # one good change in a batch keeps the line where it is
            bad.append((entry, str(reasons[0])))
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


def _deleted_in(entries: Iterable[Entry], kinds: Collection[str]) -> set[str]:
    """Return the ids of records that were deleted in `entries`, and not stored anew in these."""
    gone: set[str] = set()
    for change in (change for entry in entries for change in entry.changes if change.kind in kinds):
        if change.op == "delete":
            gone.add(change.id)
        elif change.op == "put":
            gone.discard(change.id)
    return gone


def compact_entries(
    entries: Sequence[Entry],
    kinds: Collection[str],
    cutoff: str,
    keep: Callable[[Change], str | None] | None = None,
    goes: Callable[[Change], bool] | None = None,
) -> list[bytes]:
    """Return the lines of the compacted journal, in the order of the old one.

    Args:
        entries: All entries of the journal, in file order.
        kinds: Record kinds that may be folded.
        cutoff: ISO 8601 UTC; entries from then on keep their versions.
        keep: Judges a `put`: a reason instead of None means that its owner cannot read such a record. Folding stops
            before a record that a later patch broke, since its last good version is in the past.
        goes: Tells of a folded record, as a `put`, whether it is left out; not asked of one that was written to later.
    """
    numbered = list(enumerate(entries))
    boundary = _boundary(entries, kinds, cutoff)
    if keep is not None:
        boundary = _before_broken(entries[:boundary], kinds, keep)
    later = _written_in(entries[boundary:])
    stays = None if goes is None else lambda put: put.id in later or not goes(put)
    lines = _fold_old(numbered[:boundary], kinds, stays) + _fold_touches(numbered[boundary:], kinds)
    return [line for _, line in sorted(lines, key=lambda pair: pair[0])]


def _boundary(entries: Sequence[Entry], kinds: Collection[str], cutoff: str) -> int:
    """Return how many entries, counted from the oldest, are old enough and wholly understood.

    By position: a clock that jumped back must not let a young line be folded into an old one. An entry that only partly
    concerns foldable kinds ends the stretch, since it can neither be folded nor be moved past one that is.
    """
    for position, entry in enumerate(entries):
        if entry.at >= cutoff:
            return position
        foldable = [change.kind in kinds for change in entry.changes]
        if (any(foldable) and (entry.opaque or not all(foldable))) or not entry.beyond.isdisjoint(kinds):
            return position
    return len(entries)


def _before_broken(entries: Sequence[Entry], kinds: Collection[str], keep: Callable[[Change], str | None]) -> int:
    records: dict[str, Records] = {}
    for entry in entries:
        for change in entry.changes:
            apply_change(records.setdefault(change.kind, {}), change, entry.at)
    puts = (Change("put", kind, key, data) for kind in kinds for key, data in records.get(kind, {}).items())
    broken = {(put.kind, put.id) for put in puts if keep(put)}
    for position, entry in enumerate(entries):
        if any((change.kind, change.id) in broken for change in entry.changes):
            return position
    return len(entries)


def _fold_old(
    numbered: Sequence[tuple[int, Entry]], kinds: Collection[str], stays: Callable[[Change], bool] | None
) -> list[Line]:
    records: dict[str, Records] = {}
    last: dict[Key, tuple[int, Entry]] = {}
    kept: list[Line] = []
    folded: dict[int, tuple[Entry, list[Change]]] = {}
    for position, entry in numbered:
        if not any(change.kind in kinds for change in entry.changes):
            kept.append((position, entry.raw))
            continue
        marks = [change for change in entry.changes if change.op == "mark"]
        if marks:
            folded[position] = (entry, marks)
        for change in entry.changes:
            if apply_change(records.setdefault(change.kind, {}), change, entry.at):
                last[change.kind, change.id] = (position, entry)
    for kind, live in records.items():
        for record_id, data in live.items():
            position, entry = last[kind, record_id]
            put = Change("put", kind, record_id, data)
            if stays is None or stays(put):
                folded.setdefault(position, (entry, []))[1].append(put)
    return kept + [(at, encode_entry(entry.seq, entry.at, tuple(changes))) for at, (entry, changes) in folded.items()]


def _fold_touches(numbered: Sequence[tuple[int, Entry]], kinds: Collection[str]) -> list[Line]:
    kept: list[Line] = []
    runs: dict[Key, tuple[int, Entry, int]] = {}
    merged: dict[int, tuple[Entry, list[Change]]] = {}

    def close(key: Key) -> None:
        position, entry, count = runs.pop(key)
        merged.setdefault(position, (entry, []))[1].append(Change("touch", *key, {"count": count}))

    for position, entry in numbered:
        if _is_plain_touch(entry, kinds):
            for change in entry.changes:
                key = (change.kind, change.id)
                before = runs[key][2] if key in runs else 0
                runs[key] = (position, entry, before + int(change.data.get("count", 1)))
            continue
        beyond = {key for key in runs if key[0] in entry.beyond} if entry.beyond else set()
        for key in beyond | ({(change.kind, change.id) for change in entry.changes} & runs.keys()):
            close(key)
        kept.append((position, entry.raw))
    for key in list(runs):
        close(key)
    return kept + [(at, encode_entry(entry.seq, entry.at, tuple(changes))) for at, (entry, changes) in merged.items()]


def _is_plain_touch(entry: Entry, kinds: Collection[str]) -> bool:
    return (
        bool(entry.changes)
        and not entry.opaque
        and all(change.op == "touch" and change.kind in kinds for change in entry.changes)
        and all(change.data.keys() <= {"count"} for change in entry.changes)
    )
