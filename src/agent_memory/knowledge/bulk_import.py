"""Import of other programs' files: first a plan, then storing.

A plan reads everything and stores nothing. Facts become memories, conversations and documents are ingested, all with
low trust. IDs are made of the texts, so a repeated or interrupted import stores what is missing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

from agent_memory.errors import ValidationError
from agent_memory.knowledge.import_formats import (
    FORMATS,
    FileSample,
    ImportFormat,
    find_format,
    read_parts,
    take_sample,
)
from agent_memory.knowledge.intake.document_index import DocumentIndex, has_same_text
from agent_memory.knowledge.intake.drafts import (
    Origin,
    ReceivedDocument,
    SkippedPart,
    draft_resource,
    localize,
)
from agent_memory.knowledge.intake.ingest import FileIngested, Ingest
from agent_memory.knowledge.intake.turns import FileConversation
from agent_memory.knowledge.sources.source_files import LEFT_OUT, UNREADABLE, ImportedFact, StreamPosition
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.memory.similarity import find_similar
from agent_memory.models import CANDIDATE, RESOURCE, Candidate, Memory, Source, as_utc, derived_id, get_import_id
from agent_memory.models.identifiers import TextOrigin
from agent_memory.redaction import SecretRedactor
from agent_memory.store.record_redaction import redact_record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.knowledge.sources.source_files import ImportPart, SourceFile, SourceTree
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.memory.results import Imported

_MAX_COMPARED: Final = 300
"""New facts that are compared with existing memories."""
_TURNS: Final = "turns"
"""Kind of record in the rows of conversations."""
_NOTED_TURNS: Final = 500
"""Turns between two reports of progress."""
_REDACTOR: Final = SecretRedactor()


@dataclass(slots=True)
class PlanRow:
    """Counts of one format and one kind of record.

    Attributes:
        new, known: Records to store, and records that are stored already.
        similar: New facts that resemble existing memories.
        forgotten: Records that were forgotten or purged here; they stay so.
        earliest, latest: First and last time that the records state.
    """

    new: int = 0
    known: int = 0
    similar: int = 0
    forgotten: int = 0
    earliest: datetime | None = None
    latest: datetime | None = None

    def note_time(self, moment: datetime | None) -> None:
        """Widen the range of times."""
        if moment is not None:
            utc = as_utc(moment)
            self.earliest = min(self.earliest or utc, utc)
            self.latest = max(self.latest or utc, utc)

    def add(self, turns: PlanRow) -> None:
        """Add the counts of a conversation's turns."""
        self.new, self.known = self.new + turns.new, self.known + turns.known
        self.note_time(turns.earliest)
        self.note_time(turns.latest)


class PlannedFact(NamedTuple):
    """A fact to store, with its format and its place."""

    form: str
    memory: Memory
    place: str


class PlannedTalk(NamedTuple):
    """A conversation to store.

    Attributes:
        form: Name of its format.
        file: Name of its file.
        key: Key of the conversation.
        project: Name of its project, or empty.
        turns: Counts of its turns.
    """

    form: str
    file: str
    key: str
    project: str
    turns: PlanRow


class ImportedTalk(NamedTuple):
    """Conversation of an import, and its number of stored turns.

    Attributes:
        form: Name of its format.
        file: File that has it.
        part: Conversation with all turns.
        stored_count: Number of its first turns that were stored before.
    """

    form: str
    file: SourceFile
    part: FileConversation
    stored_count: int


class _PlanContext(NamedTuple):
    """Index of stored documents, and the report of progress."""

    documents: DocumentIndex
    show: Callable[[], None]


@dataclass(slots=True)
class ImportPlan:
    """Planned outcome of an import.

    Attributes:
        files: Files to read with their formats.
        rows: Counts by format and kind of record.
        facts: Memories to store.
        talks: Conversations to store.
        later: New conversations that are left for a later import.
        skipped: Keys of conversations that are not stored.
        problems: Places that cannot be imported, and why, by code.
        details: Reasons with names from the file, by place.
        notes: Sentences about what was guessed or could not be used.
        left_out: Names of files and places that are not content.
        similar: IDs of similar memories by the text of a new one.
        turn_counts: Numbers of turns by key of a conversation, which a file may hold twice.
    """

    files: list[tuple[ImportFormat, SourceFile]] = field(default_factory=list)
    rows: dict[tuple[str, str], PlanRow] = field(default_factory=dict)
    facts: list[PlannedFact] = field(default_factory=list)
    talks: list[PlannedTalk] = field(default_factory=list)
    later: list[PlannedTalk] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)
    problems: list[tuple[str, str]] = field(default_factory=list)
    details: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    similar: dict[str, list[str]] = field(default_factory=dict)
    turn_counts: dict[str, int] = field(default_factory=dict)

    def get_row(self, form: str, kind: str) -> PlanRow:
        """Return the counts of a format and a kind."""
        return self.rows.setdefault((form, kind), PlanRow())

    def limit_talks(self, since: datetime | None, limit: int) -> None:
        """Leave out old conversations; leave new ones past a limit for later.

        Args:
            since: Conversations that ended earlier are left out; None for no limit.
            limit: Number of new turns after which no conversation with new turns begins, the newest first.
        """
        oldest = datetime.min.replace(tzinfo=UTC)
        talks = sorted(self.talks, key=lambda talk: talk.turns.latest or oldest, reverse=True)
        talks = [talk for talk in talks if since is None or (talk.turns.latest or oldest) >= since]
        totals = accumulate((talk.turns.new for talk in talks), initial=0)
        self.later = [talk for talk, before in zip(talks, totals, strict=False) if talk.turns.new and before >= limit]
        chosen = {talk.key for talk in talks} - {talk.key for talk in self.later}
        self.skipped = {talk.key for talk in self.talks} - chosen
        self.talks = [talk for talk in talks if talk.key in chosen]
        self.rows |= {(form, kind): PlanRow() for form, kind in self.rows if kind == _TURNS}
        for talk in self.talks:
            self.get_row(talk.form, _TURNS).add(talk.turns)

    @property
    def new(self) -> int:
        """Number of records to store."""
        return sum(row.new for row in self.rows.values())


class BulkImport:
    """One import of other programs' files.

    Args:
        knowledge: Documents and conversations of the agent.
        service: Memories of the agent.
        caller: Session of this import, which `undo --import` finds.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService, caller: Caller) -> None:
        self._knowledge, self._service, self._caller = knowledge, service, caller
        zone = knowledge.settings.timezone
        self._zone = ZoneInfo(zone) if zone else None

    async def plan(self, tree: SourceTree, form: str | None, progress: Callable[[int], object]) -> ImportPlan:
        """Read all files and count what they would add.

        Args:
            tree: Files of the import.
            form: Name of a format that overrides detection, or None.
            progress: Receives the number of bytes read.

        Raises:
            ValidationError: No file has a known format (`unknown_form`).
        """
        plan = ImportPlan(problems=[(part.place, part.code) for part in tree.refused])
        index = DocumentIndex(await self._knowledge.resources.valid())
        size, position = 0, StreamPosition()

        def show() -> None:
            progress(size + position.get())

        for file in tree.files.values():
            await self._plan_file(plan, position.watch(file), tree, form, _PlanContext(index, show))
            size += file.size
            progress(size)
        if tree.files and not plan.files and not plan.problems:
            raise ValidationError(
                f"{tree.name} has no format that is known; nothing was imported.",
                code="unknown_form",
                recovery="Name it with --format, or run `agent-memory ingest FILE` for a document.",
            )
        await self._plan_facts(plan)
        return plan

    async def _plan_file(
        self, plan: ImportPlan, file: SourceFile, tree: SourceTree, form: str | None, context: _PlanContext
    ) -> None:
        try:
            sample = await asyncio.to_thread(take_sample, file, tree)
            chosen = choose_format(sample, form)
            if chosen is None:
                damage = sample.find_damage()
                plan.problems.extend([(file.name, damage)] if damage else [])
                plan.left_out.extend([] if damage else [file.name])
                return
            plan.files.append((chosen, file))
            parts, is_empty = read_parts(chosen, file, tree), True
            while (part := await asyncio.to_thread(next, parts, None)) is not None:
                await self._plan_part(plan, chosen.name, file, part, context)
                is_empty = False
            plan.left_out += [file.name] if is_empty else []
        except ValidationError as error:
            plan.problems.append((file.name, error.code))
        except UNREADABLE:
            plan.problems.append((file.name, "damaged_file"))

    async def _plan_part(
        self, plan: ImportPlan, form: str, file: SourceFile, part: ImportPart, context: _PlanContext
    ) -> None:
        if isinstance(part, SkippedPart):
            place = f"{part.place} of {file.name}" if part.place else file.name
            plan.details |= {place: part.detail} if part.detail else {}
            plan.left_out.append(place) if part.code == LEFT_OUT else plan.problems.append((place, part.code))
        elif isinstance(part, FileConversation) and not part.turns:
            plan.left_out.append(f"{part.title or part.key} of {file.name}")
        elif isinstance(part, FileConversation):
            plan.notes += [f"{file.name}: {part.note}"] if part.note else []
            counts = PlanRow()
            known_count = max(await self._count_known(part), plan.turn_counts.get(part.key, 0))
            await asyncio.to_thread(_count_turns, counts, part, known_count, context.show)
            plan.turn_counts[part.key] = max(known_count, counts.new + counts.known)
            plan.get_row(form, _TURNS).add(counts)
            project = str(part.metadata.get("project", ""))
            plan.talks.append(PlannedTalk(form, file.name, part.key, project, counts))
        elif isinstance(part, ReceivedDocument):
            try:
                is_known = await asyncio.to_thread(self._knows, part, file, context.documents)
            except ValidationError as error:
                plan.problems.append((_name_place(part.title, file), error.code))
                return
            row = plan.get_row(form, "documents")
            row.new, row.known = row.new + (not is_known), row.known + is_known
            row.note_time(part.said_at)
        else:
            self._plan_fact(plan, form, file, part)

    def _plan_fact(self, plan: ImportPlan, form: str, file: SourceFile, fact: ImportedFact) -> None:
        place = f"{fact.place} of {file.name}" if fact.place else file.name
        plan.notes += [f"{place} {fact.note}"] if fact.note else []
        try:
            plan.facts.append(PlannedFact(form, self._build_memory(form, file, fact), place))
        except ValidationError:
            plan.problems.append((place, "invalid"))

    def _build_memory(self, form: str, file: SourceFile, fact: ImportedFact) -> Memory:
        said_at = None if fact.said_at is None else localize(fact.said_at, self._zone)
        return Memory(
            agent_id=self._knowledge.agent_id,
            id=get_import_id(fact.text),
            content=fact.text,
            category=fact.category,
            tags=list(fact.tags),
            project=fact.project,
            observed_at=said_at,
            timestamp=self._knowledge.clock(),
            created_by_session=self._caller.session_id,
            source=Source(kind="import", detail="" if file.name == "-" else file.name[-200:]),
            origin=str(TextOrigin("import", form)),
            trust="low",
            metadata=dict(fact.metadata),
        )

    async def _count_known(self, talk: FileConversation) -> int:
        """Return the number of stored turns of a conversation."""
        resource_id = derived_id(RESOURCE.prefix, "conversation", "", talk.key)
        return await self._knowledge.episodes.count_linked(resource_id)

    def _knows(self, document: ReceivedDocument, file: SourceFile, index: DocumentIndex) -> bool:
        origin = Origin("medium", self._knowledge.clock(), file=file.base_name[-200:])
        record = draft_resource(self._knowledge.agent_id, document, origin, _REDACTOR).record.value
        current = index.find(record)
        return bool(index.list_same_text(record)) or (current is not None and has_same_text(current, record))

    async def _plan_facts(self, plan: ImportPlan) -> None:
        """Count which facts are new, and find similar memories."""
        outcomes = iter(plan.facts)
        new: list[PlannedFact] = []

        def note(imported: Imported) -> None:
            fact = next(outcomes)
            row = plan.get_row(fact.form, "memories")
            row.note_time(fact.memory.observed_at)
            if imported.outcome == "stored":
                row.new += 1
                new.append(fact)
            elif imported.outcome == "refused":
                plan.problems.append((fact.place, imported.error.code if imported.error else "invalid"))
            elif imported.outcome == "forgotten":
                row.forgotten += 1
            else:
                row.known += 1

        memories = [fact.memory for fact in plan.facts]
        await self._service.writer.import_memories(memories, note, self._caller, dry_run=True)
        plan.facts = new
        for fact in new[:_MAX_COMPARED]:
            if similar := await find_similar(self._service.storage, fact.memory, self._caller):
                plan.get_row(fact.form, "memories").similar += 1
                plan.similar[fact.memory.content] = [record.id for record in similar]

    async def store(
        self,
        tree: SourceTree,
        plan: ImportPlan,
        progress: Callable[[int], object],
        *,
        holds_facts: bool = False,
        propose: Callable[[ImportedTalk], Awaitable[int]] | None = None,
    ) -> Counter[str]:
        """Store what a plan counted; return the numbers by kind.

        Args:
            tree: Files of the import.
            plan: Plan of the same files.
            progress: Receives the number of stored records.
            holds_facts: True to send memories to the inbox instead.
            propose: Sends memories of a conversation to the inbox before its turns are stored; returns their number.

        Raises:
            StorageError: What was stored before is on disk; the same import again does the rest.
        """
        stored = Counter[str]()

        def note(imported: Imported) -> None:
            stored["memories"] += imported.outcome == "stored"
            progress(stored.total())

        memories = [fact.memory for fact in plan.facts]
        if holds_facts:
            stored["waiting"] = await self._hold(memories)
        else:
            await self._service.writer.import_memories(memories, note, self._caller)
        ingest = Ingest(self._knowledge, self._service.report)
        for form, file in plan.files:
            done, before = FileIngested(file.base_name), stored.total()
            show = partial(_show_stored, progress, before)
            parts = _read_stored(form, file, tree, plan.skipped)
            while (part := await asyncio.to_thread(next, parts, None)) is not None:
                kind, count = _TURNS if isinstance(part, FileConversation) else "documents", done.new
                if propose is not None and isinstance(part, FileConversation):
                    stored["waiting"] += await propose(
                        ImportedTalk(form.name, file, part, await self._count_known(part))
                    )
                origin = str(TextOrigin("import", form.name))
                await ingest.part(part, done, origin, caller=self._caller, progress=show)
                stored[kind] += done.new - count
            refused = [(_name_place(place, file), code) for place, code in done.refused]
            plan.problems = [*dict.fromkeys([*plan.problems, *refused])]  # the plan found some
        return stored

    async def _hold(self, memories: list[Memory]) -> int:
        """Send memories to the inbox as one batch; return their number."""
        fields = {"via": "import", "batch": self._caller.session_id, "is_note": True}
        candidates = [redact_record(CANDIDATE, Candidate.of(memory, **fields)).value for memory in memories]
        async with opened_inbox(self._service) as inbox:
            return await inbox.take_in(candidates)


def _name_place(place: str, file: SourceFile) -> str:
    """Return the name of a place in a file for a person."""
    return file.name if place == file.base_name else f"{place} of {file.name}"


def _count_turns(row: PlanRow, talk: FileConversation, known_count: int, show: Callable[[], None]) -> None:
    """Count new and known turns of a conversation."""
    for order, turn in enumerate(talk.turns):
        if order % _NOTED_TURNS == 0:
            show()
        is_known = order < known_count
        row.new, row.known = row.new + (not is_known), row.known + is_known
        row.note_time(turn.said_at)


def _show_stored(progress: Callable[[int], object], before: int, done: FileIngested) -> None:
    progress(before + done.new)


def choose_format(sample: FileSample, form: str | None) -> ImportFormat | None:
    """Return the format of a file, or None for no content.

    A requested format applies to the files that match it, and always to a single file.
    """
    chosen = find_format(sample, form)
    if chosen is None and form is not None and len(sample.tree.files) == 1:
        return next(known for known in FORMATS if known.name == form)
    return chosen


def _read_stored(
    form: ImportFormat, file: SourceFile, tree: SourceTree, skipped: Collection[str]
) -> Iterator[ReceivedDocument | FileConversation]:
    """Yield the conversations and documents of a file."""
    try:
        for part in read_parts(form, file, tree):
            is_skipped = isinstance(part, FileConversation) and (not part.turns or part.key in skipped)
            if isinstance(part, ReceivedDocument | FileConversation) and not is_skipped:
                yield part
    except (ValidationError, *UNREADABLE):  # the plan reports it
        return
