"""`JournalSurvey`: what is to be known of all records of a journal, gathered in one pass, some thousand at a time."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory.embeddings import text_hash
from agent_memory.embeddings.hashes import prefix_of
from agent_memory.journal import GRACE, refused
from agent_memory.language.text_forms import embedded_texts
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.models import SUSPECT
from agent_memory.store.lookups import Replacements
from agent_memory.store.state import MOVED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.care.doctor.reading import JournalReading
    from agent_memory.journal import Change, FoldedSize, Line
    from agent_memory.models import Record
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.state import State

    Ranked = tuple[bool, datetime, int]

SHOWN_AT_MOST: Final = 100
"""Entries that a scratchpad has at most, whatever the settings."""


@dataclass(frozen=True, slots=True)
class RecordLinks:
    """What tells whether a record replaces another one, as `Record` has it.

    Attributes:
        rank: Its place among the entries of a scratchpad; None where it would not be shown even if nothing replaced it.
    """

    id: str
    trust: str
    timestamp: datetime
    supersedes: str | None
    expires_at: datetime | None
    rank: Ranked | None

    def is_expired(self, now: datetime) -> bool:
        """Return True if it has expired."""
        return self.expires_at is not None and self.expires_at <= now


class JournalSurvey:
    """What the records of a journal are like.

    Args:
        reading: The journal.
        settings: What sessions use.
        now: The present.
        others: Called with the lines of each portion.

    Attributes:
        count, expired, forgotten: How many records there are, and have expired; how many were deleted whose text is
            still in the file.
        invalid: Ids of records that break their data model, with the reason.
        refused: Id and reason of the entries that are no records. A compaction moves them aside.
        wrong, dangling: What its kind says is wrong with a record although it fits the model, and which records point
            to one that is not there, a sentence each; references to kinds of other journals are left out.
        undecided: By ID of a memory, the IDs of older ones of undecided pairs.
        replaced: How many records are superseded.
        circles: Records that replace one another all around, or themselves, each with what it replaces.
        pieces, pieces_of: The prefix of the hash of each text that is embedded, record by record, and how many each
            has.
        blobs: Names of the texts that lie in files of their own, each with the id of a record that has it.
        left: Bytes that a compaction would leave; None where that cannot be computed.
    """

    def __init__(
        self,
        reading: JournalReading,
        settings: ServiceSettings,
        now: datetime,
        others: Sequence[Callable[[list[Line]], object]] = (),
    ) -> None:
        self._reading, self._now = reading, now
        self._rule = Selection(SHOWN_AT_MOST, settings.promotion_access_threshold)
        self._shown: list[tuple[Ranked, Record]] = []
        self._linked: dict[str, dict[str, RecordLinks]] = {kind.name: {} for kind in reading.kinds}
        self.count = self.expired = self.forgotten = 0
        self.invalid: dict[str, str] = {}
        self.refused: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.dangling: list[str] = []
        self.undecided: dict[str, list[str]] = {}
        self.blobs: dict[str, str] = {}
        self.pieces, self.pieces_of = array("Q"), array("L")
        size = reading.file.folded_size(now, GRACE, frozenset(self._linked))
        for states, lines in reading.portions():
            self._look(states, lines, size)
            for other in others:
                other(lines)
        self.left = size.left
        every = {name: _replacements(linked) for name, linked in self._linked.items()}
        self.replaced = {one for each in every.values() for one in each.all(now)}
        self.circles = [circle for each in every.values() for circle in each.circles.values()]

    def shown(self) -> list[Any]:
        """Return the valid records that a scratchpad may show, and others, in the order of storing."""
        known = self._linked[self._reading.kinds[0].name].values()
        ranked: list[tuple[Ranked, Record | RecordLinks]] = [*self._shown]
        ranked += [(one.rank, one) for one in known if one.rank is not None and one.id not in self.replaced]
        chosen = sorted(heapq.nlargest(SHOWN_AT_MOST, ranked, key=_rank), key=lambda pair: pair[0][2])
        missing = self._reading.load([one.id for _, one in chosen if isinstance(one, RecordLinks)])
        return [missing[one.id] if isinstance(one, RecordLinks) else one for _, one in chosen]

    def links(self) -> Mapping[str, str | None]:
        """Return what each record that ever replaced another one, or was replaced, replaces now."""
        return {one.id: one.supersedes for linked in self._linked.values() for one in linked.values()}

    def _look(self, states: list[State[Any]], lines: list[Line], size: FoldedSize) -> None:
        """Take in the records of one portion."""
        size.add(lines)
        known = {record_id for state in states for record_id in (*state.records, *state.table.invalid)}
        invalid = {one: reason for state in states for one, reason in state.table.invalid.items()}
        self.invalid |= invalid
        self.refused += self._refused(lines, known - invalid.keys())
        ops: dict[str, set[str]] = {"put": set(), "delete": set()}
        for change in (change for line in lines for change in line.part.changes if change.op in ops):
            if MOVED not in change.data:  # that is no forgetting
                ops[change.op].add(change.id)
        self.forgotten += len((ops["put"] & ops["delete"]) - known)
        for state in states:
            for record in state.records.values():
                self._look_at(record, state)
        self._shown = heapq.nlargest(SHOWN_AT_MOST, self._shown, key=_rank)

    def _look_at(self, record: Record, state: State[Any]) -> None:
        kind, file = state.kind, self._reading.file
        self.count += 1
        has_expired = record.is_expired(self._now)
        self.expired += has_expired
        self.wrong += [f"{record.id}: {sentence}" for sentence in kind.checks(record)]
        self.dangling += [
            f"{record.id} points to {each}"
            for each in kind.references(record)
            if not file.has(each) and each.startswith(tuple(kind.prefix for kind in self._reading.kinds))
        ]
        if older_ids := [link.id for link in record.links if link.rel == SUSPECT]:
            self.undecided[record.id] = older_ids
        if blob := getattr(record, "blob", ""):
            self.blobs[blob] = record.id
        pieces = {prefix_of(text_hash(text)) for text in embedded_texts(kind.text_of(record))}
        self.pieces.extend(pieces)
        self.pieces_of.append(len(pieces))
        is_candidate = kind is self._reading.kinds[0] and not has_expired and self._rule.admits(record)
        rank = (record.pinned, self._rule.moment(record), self.count) if is_candidate else None
        if hash(record.id) in file.linked:
            self._linked[kind.name][record.id] = RecordLinks(
                record.id, record.trust, record.timestamp, record.supersedes, record.expires_at, rank
            )
        elif rank is not None:
            self._shown.append((rank, record))

    def _refused(self, lines: list[Line], sound: set[str]) -> Iterator[tuple[str, str]]:
        written: dict[str, int] = {}
        for change in (change for line in lines for change in line.part.changes if change.op != "touch"):
            written[change.id] = written.get(change.id, 0) + 1

        def reason(change: Change) -> str | None:
            # What is a record now, and was written once, need not be judged again.
            known = change.id in sound and written[change.id] == 1
            return None if known else self._reading.refusal(change)

        _, bad = refused([line.entry for line in lines if line.is_first], reason)
        return ((entry.changes[0].id, why) for entry, why in bad)


def _replacements(linked: Mapping[str, RecordLinks]) -> Replacements:
    found = Replacements(cast("Mapping[str, Record]", linked))
    found.note(cast("Mapping[str, Record | None]", linked))
    return found


def _rank(ranked: tuple[Ranked, object]) -> Ranked:
    return ranked[0]
