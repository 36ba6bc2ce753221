"""What a journal looks like once its past is folded. Pure: entries in, lines out; replay of both gives the same.

Two things are folded, everything else is kept byte for byte:

- The oldest entries, up to the first that is younger than the cutoff or beyond this version, become one `put` for each
  live record. It keeps the seq and time of the record's last change.
- Among the younger ones, runs of `touch` on the same record become one with the summed count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.journal.format import Change, Entry, encode_entry
from agent_memory.journal.replay import Records, apply_change

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

Key = tuple[str, str]


Line = tuple[int, bytes]
"""A position in the old file, which is what orders the new one, and a line."""


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
    later = {(c.kind, c.id) for entry in entries[boundary:] for c in entry.changes if c.op not in {"touch", "mark"}}
    stays = None if goes is None else lambda put: (put.kind, put.id) in later or not goes(put)
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
