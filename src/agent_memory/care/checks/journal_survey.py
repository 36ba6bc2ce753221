"""Journals as the doctor reads them, in batches. Changes nothing.

`JournalCase` is one journal under examination with its folder, `JournalReading` its content, `JournalSurvey` the facts
of all its records that the checks need.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from agent_memory.care.journal_inspection import InspectedLine, JournalInspection, count_folded_bytes, inspect_journal
from agent_memory.embeddings import text_hash
from agent_memory.embeddings.cache import get_hash_prefix
from agent_memory.errors import AgentMemoryError, StorageError, ValidationError
from agent_memory.files.atomic import read_signature
from agent_memory.files.names import STAMP
from agent_memory.files.wording import counted
from agent_memory.index.facets import numpy_if_there
from agent_memory.journal import GRACE, Change, JournalUpdate, split_refused
from agent_memory.language.text_forms import embedded_texts
from agent_memory.memory.kinds import KINDS
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.memory.scratchpad_file import render_file
from agent_memory.models import SUSPECT
from agent_memory.store.lookups import ReplacementIndex
from agent_memory.store.state import MOVED, State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.care.segment_check import SegmentCheck
    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind, Record
    from agent_memory.settings import ServiceSettings

    ScratchpadRank = tuple[bool, datetime, int]

Kinds = tuple["Kind[Any]", ...]
MAX_SHOWN: Final = 100
"""Entries of a scratchpad at most, whatever the settings."""


class JournalReading:
    """Content of a journal or copy, read in batches.

    Args:
        path: Path of the journal.
        agent_id: Name of the agent.
        kinds: Kinds of its records.
        progress: Called with bytes read and total bytes.

    Attributes:
        file: Facts about the file itself.
        kinds: As given.
    """

    def __init__(
        self, path: Path, agent_id: str, kinds: Kinds = KINDS, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self._agent_id = agent_id
        self.kinds = kinds
        self._progress = progress
        self.file: JournalInspection = inspect_journal(path, self._report, kinds=[kind.name for kind in kinds])

    def read_batches(
        self, record_ids: Collection[str] | None = None
    ) -> Iterator[tuple[list[State[Any]], list[InspectedLine]]]:
        """Yield records of each kind in batches, with the lines about them.

        Args:
            record_ids: Only batches with these records; all by default.
        """
        done = 0
        for lines in self.file.portions(record_ids):
            states = [State(kind, self._agent_id) for kind in self.kinds]
            for state in states:
                state.absorb(JournalUpdate([line.part for line in lines]))
            yield states, lines
            done += sum(len(line.entry.raw) for line in lines)
            if record_ids is None:
                self._report((self.file.size or 0) + done, self.file.size or 0)

    def load(self, record_ids: Collection[str] | None = None) -> dict[str, Any]:
        """Return existing records by ID, all by default."""
        wanted = None if record_ids is None else set(record_ids)
        return {
            record_id: record
            for states, _ in self.read_batches(wanted)
            for state in states
            for record_id, record in state.records.items()
            if wanted is None or record_id in wanted
        }

    def iter_records(self) -> Iterator[Any]:
        """Yield all records, with some thousand in memory."""
        for states, _ in self.read_batches():
            for state in states:
                yield from state.records.values()

    def get_kind(self, record: Record) -> Kind[Any]:
        """Return the kind of a record of this journal."""
        return next(kind for kind in self.kinds if type(record) is kind.model)

    def explain_refusal(self, change: Change) -> str | None:
        """Return the reason why a compaction refuses a `put`, or None."""
        kind = next((kind for kind in self.kinds if kind.name == change.kind), None)
        return None if kind is None else kind.refusal(self._agent_id, change.id, change.data)

    def find_missing(self, *journals: JournalInspection) -> Iterator[Any]:
        """Yield records without any trace in other journals, not even a deletion."""
        return (record for record in self.iter_records() if not any(journal.wrote(record.id) for journal in journals))

    def _report(self, done: int, size: int) -> None:
        """Report the progress: each byte is read twice."""
        if self._progress is not None:
            self._progress(done, 2 * size)


@dataclass(frozen=True, slots=True)
class RecordLinks:
    """Fields of a record that decide about replacements, as in `Record`.

    Attributes:
        rank: Rank among the entries of a scratchpad; None if it would not be shown anyway.
    """

    id: str
    trust: str
    timestamp: datetime
    supersedes: str | None
    expires_at: datetime | None
    rank: ScratchpadRank | None

    def is_expired(self, now: datetime) -> bool:
        """Return True if it has expired."""
        return self.expires_at is not None and self.expires_at <= now


class JournalSurvey:
    """Facts about all records of a journal, gathered in one pass.

    Args:
        reading: Content of the journal.
        settings: Settings of sessions.
        now: The present, UTC.
        listeners: Called with the lines of each batch.

    Attributes:
        count, expired, forgotten: Number of records, of expired ones, and of deleted ones whose text is still in the
            file.
        invalid: Reason by ID of records that break their data model.
        refused: ID and reason of entries that are not records. A compaction moves them aside.
        wrong, dangling: Sentences about records that break a rule of their kind, and about references to missing
            records; references to kinds of other journals are left out.
        undecided: IDs of older memories of undecided pairs, by ID of the newer one.
        replaced: IDs of superseded records.
        circles: Records that replace one another in a circle, each with what it replaces.
        pieces: Hash prefixes of all embedded texts.
        blobs: ID of a record by name of each long text.
        left: Bytes after a compaction; None if unknown.
    """

    def __init__(
        self,
        reading: JournalReading,
        settings: ServiceSettings,
        now: datetime,
        listeners: Sequence[Callable[[list[InspectedLine]], object]] = (),
    ) -> None:
        self._reading, self._now = reading, now
        self._selection = Selection(MAX_SHOWN, settings.promotion_access_threshold)
        self._shown: list[tuple[ScratchpadRank, Record]] = []
        self._linked: dict[str, dict[str, RecordLinks]] = {kind.name: {} for kind in reading.kinds}
        self.count = self.expired = self.forgotten = 0
        self.invalid: dict[str, str] = {}
        self.refused: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.dangling: list[str] = []
        self.undecided: dict[str, list[str]] = {}
        self.blobs: dict[str, str] = {}
        self.pieces = array("Q")
        self.left: int | None = reading.file.fixed_size
        young = reading.file.find_young(now, GRACE)
        for states, lines in reading.read_batches():
            self._add_batch(states, lines, young)
            for listener in listeners:
                listener(lines)
        replacements = [_find_replacements(linked) for linked in self._linked.values()]
        self.replaced = {record_id for of_kind in replacements for record_id in of_kind.map_all(now)}
        self.circles = [circle for of_kind in replacements for circle in of_kind.circles.values()]

    def list_shown(self) -> list[Any]:
        """Return valid records for a scratchpad, in the order of storing."""
        linked = self._linked[self._reading.kinds[0].name].values()
        ranked: list[tuple[ScratchpadRank, Record | RecordLinks]] = [*self._shown]
        ranked += [(links.rank, links) for links in linked if links.rank is not None and links.id not in self.replaced]
        chosen = sorted(heapq.nlargest(MAX_SHOWN, ranked, key=_get_rank), key=lambda pair: pair[0][2])
        missing = self._reading.load([record.id for _, record in chosen if isinstance(record, RecordLinks)])
        return [missing[record.id] if isinstance(record, RecordLinks) else record for _, record in chosen]

    def get_links(self) -> Mapping[str, str | None]:
        """Return the superseded ID of each record with replacements."""
        return {links.id: links.supersedes for linked in self._linked.values() for links in linked.values()}

    def _add_batch(self, states: list[State[Any]], lines: list[InspectedLine], young: int) -> None:
        try:
            if self.left is not None:
                self.left += count_folded_bytes(lines, young, self._reading.file.kinds)
        except AgentMemoryError:
            self.left = None
        existing = {record_id for state in states for record_id in (*state.records, *state.table.invalid)}
        invalid = {record_id: reason for state in states for record_id, reason in state.table.invalid.items()}
        self.invalid |= invalid
        self.refused += self._find_refused(lines, existing - invalid.keys())
        ids: dict[str, set[str]] = {"put": set(), "delete": set()}
        for change in (change for line in lines for change in line.part.changes if change.op in ids):
            if MOVED not in change.data:  # a move is not a forget
                ids[change.op].add(change.id)
        self.forgotten += len((ids["put"] & ids["delete"]) - existing)
        for state in states:
            for record in state.records.values():
                self._add_record(record, state.kind)
        self._shown = heapq.nlargest(MAX_SHOWN, self._shown, key=_get_rank)

    def _add_record(self, record: Record, kind: Kind[Any]) -> None:
        file = self._reading.file
        self.count += 1
        has_expired = record.is_expired(self._now)
        self.expired += has_expired
        self.wrong += [f"{record.id}: {sentence}" for sentence in kind.checks(record)]
        self.dangling += [
            f"{record.id} points to {target}"
            for target in kind.references(record)
            if not file.has(target) and target.startswith(tuple(kind.prefix for kind in self._reading.kinds))
        ]
        if older_ids := [link.id for link in record.links if link.rel == SUSPECT]:
            self.undecided[record.id] = older_ids
        if blob := getattr(record, "blob", ""):
            self.blobs[blob] = record.id
        self.pieces.extend({get_hash_prefix(text_hash(text)) for text in embedded_texts(kind.text_of(record))})
        is_candidate = kind is self._reading.kinds[0] and not has_expired and self._selection.admits(record)
        rank = (record.pinned, self._selection.moment(record), self.count) if is_candidate else None
        if hash(record.id) in file.linked:
            self._linked[kind.name][record.id] = RecordLinks(
                record.id, record.trust, record.timestamp, record.supersedes, record.expires_at, rank
            )
        elif rank is not None:
            self._shown.append((rank, record))

    def _find_refused(self, lines: list[InspectedLine], sound: set[str]) -> Iterator[tuple[str, str]]:
        written: dict[str, int] = {}
        for change in (change for line in lines for change in line.part.changes if change.op != "touch"):
            written[change.id] = written.get(change.id, 0) + 1

        def explain(change: Change) -> str | None:
            # A sound record that was written once need not be checked again.
            is_known = change.id in sound and written[change.id] == 1
            return None if is_known else self._reading.explain_refusal(change)

        _, bad = split_refused([line.entry for line in lines if line.is_first], explain)
        return ((entry.changes[0].id, reason) for entry, reason in bad)


def _find_replacements(linked: Mapping[str, RecordLinks]) -> ReplacementIndex:
    replacements = ReplacementIndex(cast("Mapping[str, Record]", linked))
    replacements.note(cast("Mapping[str, Record | None]", linked))
    return replacements


def _get_rank(ranked: tuple[ScratchpadRank, object]) -> ScratchpadRank:
    return ranked[0]


@dataclass(slots=True)
class JournalCase:
    """One journal under examination, with what is derived from it.

    Attributes:
        folder: Folder of the agent.
        settings: Settings of sessions.
        now: The present, UTC.
        path: Path of the journal.
        kinds: Kinds of its records.
        is_first: True if files of the whole folder are examined with this journal.
        progress: Called with bytes read and total bytes.
        journal: Content of the journal.
        survey: Facts about its records.
        segments: Comparisons with its segments; none without numpy, as nothing reads segments then.
    """

    folder: AgentFolder
    settings: ServiceSettings
    now: datetime
    path: Path
    kinds: Kinds
    is_first: bool = True
    progress: Callable[[int, int], None] | None = None
    journal: JournalReading = field(init=False)
    survey: JournalSurvey = field(init=False)
    segments: list[SegmentCheck] = field(init=False, default_factory=list)
    _signature: object = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Read the journal."""
        self.read_again()

    def read_again(self) -> None:
        """Read the journal as it is now."""
        self._signature = read_signature(self.path)
        self.segments = self._compare_segments()
        self.journal = JournalReading(self.path, self.folder.agent_id, self.kinds, self.progress)
        self.survey = JournalSurvey(self.journal, self.settings, self.now, [check.compare for check in self.segments])

    def refresh(self) -> None:
        """Read the journal again if a session has written to it."""
        if read_signature(self.path) != self._signature:
            self.read_again()

    def _compare_segments(self) -> list[SegmentCheck]:
        if self.path != self.folder.journal or numpy_if_there() is None:
            return []
        from agent_memory.care.segment_check import SegmentCheck

        return [SegmentCheck(self.folder, kind) for kind in self.kinds]

    @property
    def name(self) -> str:
        """File name of the journal."""
        return self.path.name

    @property
    def stamp(self) -> str:
        """The present in names of quarantined files."""
        return f"{self.now:{STAMP}}"

    @property
    def names(self) -> frozenset[str]:
        """Names of the kinds in the journal."""
        return frozenset(kind.name for kind in self.kinds)

    def describe_count(self, count: int, singular: str = "", plural: str = "") -> str:
        """Return a count with the noun of the kind: `2 memories replace`.

        Args:
            count: Number of records.
            singular: Verb for one record, with a space before it.
            plural: Verb for more records, with a space before it.
        """
        noun = "record" if len(self.kinds) > 1 else self.kinds[0].name.rpartition("_")[2]  # stage_mark: mark
        nouns = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
        return counted(count, f"{noun}{singular}", f"{nouns}{plural}")

    def render_scratchpad(self, entries: int) -> str:
        """Return scratchpad.yaml as the journal has it, with a limit of entries."""
        selection = Selection(entries, self.settings.promotion_access_threshold)
        return render_file(selection.choose(self.survey.list_shown()), self.folder.agent_id)


def list_cases(
    folder: AgentFolder,
    settings: ServiceSettings,
    now: datetime,
    kinds: Kinds = KINDS,
    progress: Callable[[int, int], None] | None = None,
) -> list[JournalCase]:
    """Return a case for each journal, the one with memories first."""
    names = sorted(dict.fromkeys(kind.journal for kind in kinds), key=lambda name: name != folder.journal.name)
    cases: list[JournalCase] = []
    for name in names:
        path, of_journal = folder.path / name, tuple(kind for kind in kinds if kind.journal == name)
        if not cases or path.exists():
            cases.append(JournalCase(folder, settings, now, path, of_journal, not cases, progress))
    return cases


def find_salvageable(path: Path, folder: AgentFolder, kinds: Kinds = KINDS) -> Iterator[Any]:
    """Return records of a copy that no journal of the agent mentions.

    Raises:
        ValidationError: It is not a copy of a journal.
        StorageError: It cannot be read.
    """
    copy = JournalReading(path, folder.agent_id, kinds)
    if copy.file.trouble is not None:
        raise StorageError(f"{path.name} cannot be read: {copy.file.trouble}.")
    if copy.file.size is None:
        raise ValidationError(f"No file {path}.", code="no_file", recovery="Check the name.")
    if not copy.file.seqs:
        recovery = "Exports and scratchpads are taken by `agent-memory import`."
        raise ValidationError(f"{path.name} is no copy of a journal.", code="not_a_journal", recovery=recovery)
    return copy.find_missing(*(inspect_journal(folder.path / name) for name in {kind.journal for kind in kinds}))
