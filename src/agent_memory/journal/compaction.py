"""Compaction of journal entries, as pure functions.

Replay of the new lines gives the same records.

Two things are folded, everything else stays byte for byte:

- The oldest entries, up to the first one within its grace time or unknown to this version, become one `put` for each
  live record. It keeps number and time of the record's last change.
- Among the younger entries, runs of `touch` on the same record become one with the summed count.

The age of a line is the sum of the times between it, later lines and now. A clock that was set back adds nothing, and
neither does a leap of more than a year, which is a wrong clock rather than an unused journal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.journal.codec import IDENTITY, Codec, advise_upgrade, encode_changes
from agent_memory.journal.format import Change, Entry, Records, add_checksum, apply_change, encode_entry, find_ids
from agent_memory.journal.purged_spans import hide_fields
from agent_memory.settings.installation import installed_version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence


RecordKey = tuple[str, str]
LEAP: Final = timedelta(days=366)
_NOTHING: Final = timedelta()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_microseconds(moment: datetime) -> int:
    """Return a time as microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def find_first_young(entries: Sequence[Entry], now: datetime, grace: timedelta) -> int:
    """Return the index of the first entry within its grace time.

    Returns the number of entries if none is young, as without a grace time. Entries are in the order of writing,
    whatever the clock said.
    """
    moments = (to_microseconds(datetime.fromisoformat(entry.at)) for entry in reversed(entries))
    return find_young_position(moments, len(entries), now, grace)


def find_young_position(last_first: Iterable[int], count: int, now: datetime, grace: timedelta) -> int:
    """Return `find_first_young` for times in microseconds, last one first."""
    if grace <= _NOTHING:
        return count
    later, age, limit, leap = to_microseconds(now), 0, grace // _MICROSECOND, LEAP // _MICROSECOND
    for position, moment in zip(range(count - 1, -1, -1), last_first, strict=True):
        if 0 < later - moment <= leap:
            age += later - moment
        if age > limit:
            return position + 1
        later = moment
    return 0


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """New lines of a journal, and what they no longer hold.

    Attributes:
        lines: Lines of the new file.
        forgotten: IDs of records without any text left.
        over: IDs of expired records among them; the others were deleted.
        purged_seq: Number of the last deletion or rewording whose old text is not in the lines; 0 for none.
    """

    lines: list[bytes]
    forgotten: set[str]
    over: set[str]
    purged_seq: int


@dataclass(frozen=True, slots=True)
class FoldRules:
    """Rules of a compaction.

    Attributes:
        kinds: Record kinds that may be folded.
        keep: Returns why the owner cannot read a `put`, or None. Folding stops before a record that a later patch
            broke, since its last good version is in the past.
        ended: Returns True if a record, given as a `put`, expired; it is left out unless changed since.
        apart: Numbers of checkpoints: accesses before and after one are not summed, since its reader knows the first
            ones.
        words: Names of text fields; a change of one rewords the record.
    """

    kinds: Collection[str]
    keep: Callable[[Change], str | None] | None = None
    ended: Callable[[Change], bool] | None = None
    apart: Collection[int] = ()
    words: Collection[str] = ()


def fold_entries(entries: Sequence[Entry], young: int, rules: FoldRules, codec: Codec = IDENTITY) -> CompactionResult:
    """Fold old entries into one `put` per live record.

    Args:
        entries: All entries, in file order.
        young: Index of the first entry within its grace time.
        rules: What may be folded.
        codec: Codec of the new lines.
    """
    try:
        return _fold_plain(entries, young, rules, codec)
    except ValidationError:
        # Another program wrote what can be read and not be written (an infinite number): it stays as it is.
        marked = [entry if _is_encodable(entry) else replace(entry, opaque=True) for entry in entries]
        if marked == list(entries):
            raise
        return _fold_plain(marked, young, rules, codec)


def _fold_plain(entries: Sequence[Entry], young: int, rules: FoldRules, codec: Codec) -> CompactionResult:
    kinds, keep, ended = rules.kinds, rules.keep, rules.ended
    old = entries[: _count_foldable(entries[:young], kinds)]
    live = _list_live(old, kinds)
    if keep is not None and (broken := {(put.kind, put.id) for _, put in live if keep(put)}):
        old = old[: next(position for position, entry in enumerate(old) if not broken.isdisjoint(_list_keys(entry)))]
        live = _list_live(old, kinds)
    over: set[str] = set()
    # A newer version may have said something about the time of a record, in a line that this one does not know.
    if ended is not None and all(entry.beyond.isdisjoint(kinds) for entry in entries):
        later = _find_written(entries[len(old) :])
        over = {put.id for _, put in live if put.id not in later and ended(put)}
    made = _list_unfolded(old, kinds) | _fold_touches(entries, len(old), kinds, rules.apart)
    for position, put in live:
        if put.id not in over:
            made.setdefault(position, []).append(put)
    forgotten = over | (_find_deleted(entries[:young], kinds) - _find_written(entries[young:]))
    return CompactionResult(
        _build_lines(entries, made, codec), forgotten, over, _find_last_removed(old, kinds, rules.words)
    )


def fold_encrypted(entries: Sequence[Entry], young: int, rules: FoldRules) -> CompactionResult:
    """Fold entries whose fields are encrypted, without the key.

    A `put` and later `patch`es of a record stay as they are, since they cannot be merged; so do expired records.
    Deleted and replaced versions go, and accesses are summed.

    Args:
        entries: All entries, with encrypted fields.
        young: Index of the first entry within its grace time.
        rules: What may be folded; only kinds and checkpoints are used.
    """
    kinds = rules.kinds
    old = entries[: _count_foldable(entries[:young], kinds)]
    made = _list_unfolded(old, kinds) | _fold_touches(entries, len(old), kinds, rules.apart)
    last_changes, purged = _list_last_changes(old, kinds)
    for position, change in last_changes:
        made.setdefault(position, []).append(change)
    forgotten = _find_deleted(entries[:young], kinds) - _find_written(entries[young:])
    return CompactionResult(_build_lines(entries, made, IDENTITY), forgotten, set(), purged)


def _list_last_changes(entries: Sequence[Entry], kinds: Collection[str]) -> tuple[list[tuple[int, Change]], int]:
    """Return changes of live records with positions, and the last removed number.

    Each record keeps its last `put` and later changes, with consecutive accesses summed.
    """
    chains: dict[RecordKey, list[tuple[int, Change]]] = {}
    purged = 0
    for position, entry in enumerate(entries):
        for change in entry.changes:
            key = (change.kind, change.id)
            if change.kind not in kinds or change.op == "mark":
                continue
            if change.op == "delete" or (change.op == "put" and key in chains):
                purged = max(purged, entry.seq)
            if change.op == "delete":
                chains.pop(key, None)
            elif change.op == "put":
                chains[key] = [(position, change)]
            elif key in chains:
                chain = chains[key]
                if change.op == chain[-1][1].op == "touch":
                    count = int(chain.pop()[1].data.get("count", 1)) + int(change.data.get("count", 1))
                    change = replace(change, data={"count": count})  # noqa: PLW2901 - the sum of both
                chain.append((position, change))
    return [placed for chain in chains.values() for placed in chain], purged


def _list_unfolded(old: Sequence[Entry], kinds: Collection[str]) -> dict[int, list[Change]]:
    """Return the changes that stay, by position; empty for unchanged entries."""
    made: dict[int, list[Change]] = {}
    for position, entry in enumerate(old):
        if not any(change.kind in kinds for change in entry.changes):
            made[position] = []
        elif marks := [change for change in entry.changes if change.op == "mark"]:
            made[position] = marks
    return made


def _build_lines(entries: Sequence[Entry], made: Mapping[int, list[Change]], codec: Codec) -> list[bytes]:
    """Return the lines at the positions in `made`.

    A position without changes keeps its line.
    """
    placed = [(entries[position], tuple(made[position])) for position in sorted(made)]
    return [
        encode_changes(codec, entry.seq, entry.at, changes) if changes else add_checksum(entry.raw)
        for entry, changes in placed
    ]


def remove_records(
    entries: Sequence[Entry],
    record_ids: Collection[str],
    hide: Callable[[str], str] = lambda text: text,
    codec: Codec = IDENTITY,
    *,
    words_alone: bool = False,
) -> CompactionResult:
    """Remove records, and hide words of other records.

    Lines about other records stay as they are, also if they link to a removed record: an ID has no text.

    Args:
        entries: All entries, in file order.
        record_ids: IDs of records to remove.
        hide: Returns a text with purged words made unreadable.
        codec: Codec of the new lines.
        words_alone: Keep the records, and only hide words of the others.

    Raises:
        UnsupportedError: A newer version wrote a line about one of the records.
    """
    removed, lines = set(record_ids), list[bytes]()
    named = {record_id.encode("utf-8", "surrogatepass") for record_id in removed}
    for entry in entries:
        if entry.opaque and not named.isdisjoint(find_ids(entry.raw)):
            raise UnsupportedError(
                f"Line {entry.seq} was written by a newer version of agent-memory than {installed_version()} and "
                "names a record that is to be purged; this journal was not changed.",
                code="newer_format",
                recovery=advise_upgrade(),
            )
        changes = tuple(
            change if change.id in removed else _hide_change(change, hide)
            for change in entry.changes
            if words_alone or change.id not in removed
        )
        if entry.opaque or changes == entry.changes:
            lines.append(add_checksum(entry.raw))
        elif changes:
            lines.append(encode_changes(codec, entry.seq, entry.at, changes))
    last = max((entry.seq for entry in entries), default=0)
    return CompactionResult(lines, removed, set(), last)


def _hide_change(change: Change, hide: Callable[[str], str]) -> Change:
    return replace(change, data=hide_fields(change.data, hide))


def split_refused(
    entries: Sequence[Entry], keep: Callable[[Change], str | None]
) -> tuple[list[Entry], list[tuple[Entry, str]]]:
    """Return the readable entries, and the others with reasons."""
    readable: list[Entry] = []
    refused: list[tuple[Entry, str]] = []
    for entry in entries:
        reasons = [] if entry.opaque else [keep(change) if change.op == "put" else None for change in entry.changes]
        if reasons and all(reasons):  # one good change in a batch keeps the line where it is
            refused.append((entry, str(reasons[0])))
        else:
            readable.append(entry)
    return readable, refused


def _list_keys(entry: Entry) -> set[RecordKey]:
    return {(change.kind, change.id) for change in entry.changes}


def _find_written(entries: Sequence[Entry]) -> set[str]:
    return {change.id for entry in entries for change in entry.changes if change.op not in {"touch", "mark"}}


def _is_encodable(entry: Entry) -> bool:
    try:
        encode_entry(entry.seq, entry.at, entry.changes)
    except ValidationError:
        return entry.opaque
    return True


def _find_last_removed(entries: Iterable[Entry], kinds: Collection[str], words: Collection[str]) -> int:
    """Return the number of the last deletion or rewording, else 0."""
    last, stored = 0, set[RecordKey]()
    for entry in entries:
        for change in entry.changes:
            if change.kind not in kinds:
                continue
            key = (change.kind, change.id)
            reworded = not change.data.keys().isdisjoint(words) and (change.op == "patch" or key in stored)
            if change.op == "delete" or reworded:
                last = max(last, entry.seq)
            if change.op == "put":
                stored.add(key)
    return last


def _find_deleted(entries: Iterable[Entry], kinds: Collection[str]) -> set[str]:
    """Return IDs deleted in `entries` and not stored again."""
    gone: set[str] = set()
    for change in (change for entry in entries for change in entry.changes if change.kind in kinds):
        if change.op == "delete":
            gone.add(change.id)
        elif change.op == "put":
            gone.discard(change.id)
    return gone


def _count_foldable(entries: Sequence[Entry], kinds: Collection[str]) -> int:
    """Count the oldest entries that can be folded.

    An entry that only partly concerns foldable kinds is the last, since nothing can be moved past it.
    """
    return next((position for position, entry in enumerate(entries) if stops_folding(entry, kinds)), len(entries))


def stops_folding(entry: Entry, kinds: Collection[str]) -> bool:
    """Return True if nothing can be folded past this entry."""
    foldable = [change.kind in kinds for change in entry.changes]
    return (any(foldable) and (entry.opaque or not all(foldable))) or not entry.beyond.isdisjoint(kinds)


def _list_live(entries: Sequence[Entry], kinds: Collection[str]) -> list[tuple[int, Change]]:
    """Return live records as `put`s, with positions of their last changes."""
    records: dict[str, Records] = {}
    last: dict[RecordKey, int] = {}
    for position, entry in enumerate(entries):
        for change in entry.changes:
            if change.kind in kinds and apply_change(records.setdefault(change.kind, {}), change, entry.at):
                last[change.kind, change.id] = position
    puts = (Change("put", kind, key, data) for kind, live in records.items() for key, data in live.items())
    return [(last[put.kind, put.id], put) for put in puts]


def _fold_touches(
    entries: Sequence[Entry], start: int, kinds: Collection[str], apart: Collection[int]
) -> dict[int, list[Change]]:
    """Return new changes by position from `start`; empty for unchanged entries."""
    runs: dict[RecordKey, tuple[int, int]] = {}
    made: dict[int, list[Change]] = {}

    def close(key: RecordKey) -> None:
        position, count = runs.pop(key)
        made.setdefault(position, []).append(Change("touch", *key, {"count": count}))

    before = 0
    for position, entry in enumerate(entries[start:], start):
        if any(before <= checkpoint < entry.seq for checkpoint in apart):
            for key in list(runs):
                close(key)
        before = entry.seq
        if _is_plain_touch(entry, kinds):
            for change in entry.changes:
                key = (change.kind, change.id)
                runs[key] = (position, runs.get(key, (0, 0))[1] + int(change.data.get("count", 1)))
            continue
        beyond = {key for key in runs if key[0] in entry.beyond} if entry.beyond else set()
        for key in beyond | (_list_keys(entry) & runs.keys()):
            close(key)
        made[position] = []
    for key in list(runs):
        close(key)
    return made


def _is_plain_touch(entry: Entry, kinds: Collection[str]) -> bool:
    return (
        bool(entry.changes)
        and not entry.opaque
        and all(change.op == "touch" and change.kind in kinds for change in entry.changes)
        and all(change.data.keys() <= {"count"} for change in entry.changes)
    )
