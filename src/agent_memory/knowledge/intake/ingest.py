"""Ingestion of documents and conversations. What it has returned is on disk.

Bound → normalize → redact → validate → write long texts → append with one sync → event. Nothing is written twice: the
same text in the same place has the same ID.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic, Literal
from zoneinfo import ZoneInfo

from agent_memory.errors import ValidationError
from agent_memory.files.layout import find_memory
from agent_memory.journal import PurgeList
from agent_memory.knowledge.intake.document_index import (
    COPY_OF,
    MAYBE_VERSION_OF,
    MISSING_SINCE,
    PATH,
    PROJECT,
    AlikeDocument,
    DocumentIndex,
    get_path,
    get_path_id,
    has_same_text,
    is_placed,
    without_key,
)
from agent_memory.knowledge.intake.drafts import (
    FORMAT,
    PURGED,
    UNKNOWN,
    Origin,
    ReceivedDocument,
    ReceivedTurn,
    RecordDraft,
    SkippedPart,
    draft_conversation,
    draft_episode,
    draft_resource,
    get_turn_id,
    is_local,
    leave_out_purged,
    place_draft,
    rename_draft,
)
from agent_memory.knowledge.intake.file_formats import find_moved, parse_file
from agent_memory.knowledge.intake.turns import FileConversation, split_batches
from agent_memory.memory import NOBODY
from agent_memory.memory.trust import lowest
from agent_memory.models import EPISODE, RESOURCE, TRUST_ORDER
from agent_memory.models.kind import Kind, R
from agent_memory.redaction import Redactor, SecretRedactor, redact_path
from agent_memory.store.record_redaction import redact_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller
    from agent_memory.memory.caller import Report
    from agent_memory.models import Episode, Resource, Trust
    from agent_memory.store.record_storage import RecordStorage

_ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class IngestOutcome(Generic[R]):
    """Outcome of ingesting one text.

    Attributes:
        record: The record that has it.
        outcome: `new`, or `known` if it was ingested before.
        redacted: Kinds of secrets that were taken out of it.
    """

    record: R
    outcome: Literal["new", "known"]
    redacted: tuple[str, ...] = ()


async def store_new(
    knowledge: Knowledge, storage: RecordStorage[R], drafts: Sequence[RecordDraft[R]]
) -> list[IngestOutcome[R]]:
    """Store drafts as one change; existing records stay.

    A cancelled call still finishes, so that long texts are given free for sweeping again; its result is dropped.

    Raises:
        StorageError: Nothing was stored, unless the message says that this is not known.
    """
    return await asyncio.shield(asyncio.ensure_future(_store(knowledge, storage, drafts)))


async def _store(
    knowledge: Knowledge, storage: RecordStorage[R], drafts: Sequence[RecordDraft[R]]
) -> list[IngestOutcome[R]]:
    stored = await storage.get_many([draft.record.value.id for draft in drafts])
    purges = PurgeList(knowledge.folder.path)
    placed = [await _place_draft(storage, draft, stored, purges) for draft in drafts]
    new = [draft for draft, existing in placed if existing is None]
    with ExitStack() as held:
        texts = [draft.text for draft in new if draft.text]
        await asyncio.to_thread(held.enter_context, knowledge.blobs.keeping(texts))
        if new:
            await storage.store_many([draft.record for draft in new])
    return [
        IngestOutcome(
            draft.record.value if existing is None else existing, "new" if existing is None else "known", draft.redacted
        )
        for draft, existing in placed
    ]


async def _place_draft(
    storage: RecordStorage[R], draft: RecordDraft[R], stored: Mapping[str, R], purges: PurgeList
) -> tuple[RecordDraft[R], R | None]:
    """Return a draft with a free ID, or the existing record.

    Args:
        storage: Storage of the records.
        draft: Draft to place.
        stored: Stored records by the first IDs of the drafts.
        purges: Purged records, whose IDs are not free.
    """
    kind, text = storage.kind, storage.kind.text_of(draft.record.value)
    placed, existing = draft, stored.get(draft.record.value.id)
    for attempt in range(1, _ATTEMPTS + 1):
        if existing is None and not purges.names(placed.record.value.id):
            return placed, None
        if existing is not None and (draft.has_name or kind.text_of(existing) == text):
            return placed, existing
        placed = rename_draft(draft, kind.prefix, attempt)
        existing = await storage.get(placed.record.value.id)
    raise ValidationError("Nothing was stored: no id was free for it.", code="id_taken")


@dataclass(slots=True)
class FileIngested:
    """Outcome of ingesting one file.

    Attributes:
        name: Name of the file.
        resources: IDs of its documents and conversations, in its order.
        new, known: How many documents and turns were ingested, and existed already.
        characters: Number of new characters.
        redacted: Kinds of secrets that were removed.
        refused: Where something could not be ingested, and why, by code.
        mistaken: IDs of conversations in which an earlier version stored turns as the user's that are not.
        replaced: ID of the version of the document before, if this is a new one.
        copy_of: ID of the resource with the same text whose file also exists.
        maybe_version_of: ID of another document with the same front-matter id, or the same name; both are current.
    """

    name: str
    resources: list[str] = field(default_factory=list)
    new: int = 0
    known: int = 0
    characters: int = 0
    redacted: tuple[str, ...] = ()
    refused: list[tuple[str, str]] = field(default_factory=list)
    mistaken: list[str] = field(default_factory=list)
    replaced: str = ""
    copy_of: str = ""
    maybe_version_of: str = ""

    def add(self, ingested: IngestOutcome[Any]) -> None:
        """Count a document or a turn."""
        is_new = ingested.outcome == "new"
        self.new, self.known = self.new + is_new, self.known + (not is_new)
        self.characters += ingested.record.chars if is_new else 0
        self.redacted = tuple(dict.fromkeys((*self.redacted, *ingested.redacted)))

    def add_turn(self, ingested: IngestOutcome[Episode], role: str, conversation: str) -> None:
        """Count a turn, and a conversation whose user was mistaken."""
        self.add(ingested)
        is_mistaken = ingested.record.role == "user" != role and not ingested.record.speaker
        if is_mistaken and conversation not in self.mistaken:
            self.mistaken.append(conversation)


class Ingest:
    """Ingests documents and conversations of one agent.

    Args:
        knowledge: Where it goes.
        report: Sends events, `MemoryService.report`; nowhere when omitted.
        redactor: Takes secrets out of all text.
    """

    def __init__(self, knowledge: Knowledge, report: Report | None = None, redactor: Redactor | None = None) -> None:
        self._knowledge, self._report = knowledge, report
        self._redactor = redactor or SecretRedactor()
        self._purge_list = PurgeList(knowledge.folder.path)
        self._index: tuple[int, DocumentIndex] | None = None

    async def resource(
        self,
        document: ReceivedDocument | str,
        *,
        group: str = "",
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        caller: Caller = NOBODY,
    ) -> IngestOutcome[Resource]:
        """Ingest a document, with medium trust at most.

        A document of a type that is not one of `RESOURCE_TYPES`, such as a mail or a web page, has low trust.

        Raises:
            ValidationError: It is too long (`too_long`), empty, or nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        origin = self._origin(caller, group, tags=tuple(tags), metadata=metadata or {})
        return await self._ingest_document(
            ReceivedDocument(document) if isinstance(document, str) else document, origin, caller
        )

    async def conversation(
        self,
        key: str,
        *,
        title: str = "",
        said_at: datetime | None = None,
        group: str = "",
        metadata: Mapping[str, Any] | None = None,
        caller: Caller = NOBODY,
    ) -> IngestOutcome[Resource]:
        """Start or find a conversation.

        Raises:
            ValidationError: A value is wrong; nothing was stored.
            StorageError: Nothing was stored.
        """
        origin = self._origin(caller, group, metadata=metadata or {})
        return await self._begin(key, title, said_at, origin, caller)

    async def turn(
        self,
        turn: ReceivedTurn,
        *,
        conversation: str | None = None,
        order: int = 0,
        group: str = "",
        is_live: bool = False,
        caller: Caller = NOBODY,
    ) -> IngestOutcome[Episode]:
        """Ingest one turn.

        Args:
            turn: What was said.
            conversation: Id of the resource that it is part of.
            order: Its place there; the same text in another place is another turn.
            group: To which it belongs.
            is_live: The host saw it in the caller's session: what the user says has the caller's trust.
            caller: The session that asks.

        Raises:
            ValidationError: It is too long (`too_long`), empty, or nothing but a secret; nothing was stored.
            StorageError: Nothing was stored.
        """
        origin = self._origin(caller, group, is_live=is_live)
        draft = await asyncio.to_thread(self._episode, turn, conversation, order, origin)
        return (await self._turns([draft], conversation, caller))[0]

    async def turns(
        self,
        turns: Sequence[ReceivedTurn],
        *,
        conversation: str,
        first: int = 0,
        group: str = "",
        is_live: bool = False,
        caller: Caller = NOBODY,
    ) -> tuple[list[IngestOutcome[Episode]], list[tuple[int, str]]]:
        """Ingest consecutive turns in as few changes as possible.

        Args:
            turns: What was said.
            conversation: Id of the resource that they are part of.
            first: Place of the first of them there.
            group: To which they belong.
            is_live: As of `turn`.
            caller: The session that asks.

        Returns:
            What became of those that can be kept; the places of the others, each with the reason as a code.

        Raises:
            StorageError: Some may be stored; a second call with the same places stores the rest.
        """
        origin, ingested, refused = self._origin(caller, group, is_live=is_live), list[IngestOutcome[Any]](), []
        for batch in split_batches(turns, first):
            drafts, wrong = await asyncio.to_thread(self._draft_turns, batch, conversation, origin, is_live=is_live)
            refused += wrong
            ingested += await self._turns(drafts, conversation, caller)
        return ingested, refused

    async def file(
        self,
        path: Path,
        *,
        group: str = "",
        caller: Caller = NOBODY,
        progress: Callable[[FileIngested], object] | None = None,
        keeps_purged: bool = False,
    ) -> FileIngested:
        """Ingest a file: Markdown, text, JSON lines, or an export.

        Idempotent, also between processes: a second call stores what is missing.

        Args:
            path: Where it is.
            group: To which all of it belongs.
            caller: The session that asks.
            progress: Called with the outcome so far after each stored batch.
            keeps_purged: True to store words again that were purged.

        Raises:
            ValidationError: It is of no form that is known (`unknown_form`), or damaged; nothing was stored.
            StorageError: What was counted before is on the disk.
        """
        done = FileIngested(path.name)
        tell = progress or (lambda _: None)
        name = await asyncio.to_thread(redact_path, path.name, self._redactor)
        origin = replace(self._origin(caller, group), file=name.text[:200], keeps_purged=keeps_purged)
        await asyncio.to_thread(_check_path, path)
        for part in await asyncio.to_thread(lambda: list(parse_file(path))):
            await self._take(part, origin, caller, done, tell)
        return done

    async def part(
        self,
        part: ReceivedDocument | FileConversation,
        done: FileIngested,
        text_origin: str,
        *,
        caller: Caller = NOBODY,
        progress: Callable[[FileIngested], object],
    ) -> None:
        """Ingest one part of an import, with low trust.

        Args:
            part: Document or conversation of a file.
            done: Outcome for its file so far, which grows.
            text_origin: Printed origin of its texts.
            caller: Session that asks for it.
            progress: Receives the outcome so far after each stored batch.

        Raises:
            StorageError: What was counted before is on disk.
        """
        name = await asyncio.to_thread(redact_path, done.name, self._redactor)
        origin = self._origin(caller, "", file=name.text[-200:], keeps_purged=False, text_origin=text_origin)
        await self._take(part, replace(origin, trust="low"), caller, done, progress)

    async def _take(
        self,
        part: ReceivedDocument | FileConversation | SkippedPart,
        origin: Origin,
        caller: Caller,
        done: FileIngested,
        tell: Callable[[FileIngested], object],
    ) -> None:
        if isinstance(part, SkippedPart):
            done.refused.append((f"{part.place} of {done.name}", part.code))
        elif isinstance(part, ReceivedDocument):
            await self._take_document(part, origin, caller, done)
        else:
            await self._take_conversation(part, origin, caller, done, tell)
        tell(done)

    def _origin(self, caller: Caller, group: str, *, is_live: bool = False, **more: Any) -> Origin:
        trust = caller.trust if is_live else lowest(caller.trust, "medium")
        zone = self._knowledge.settings.timezone
        more["zone"] = ZoneInfo(zone) if zone else None
        return Origin(trust, self._knowledge.clock(), caller.session_id, group, **more)

    def _episode(self, turn: ReceivedTurn, part_of: str | None, order: int, origin: Origin) -> RecordDraft[Episode]:
        """Return the draft of a turn, with low trust for untrusted speakers."""
        is_untrusted = turn.role in {"tool", UNKNOWN} or (origin.file and turn.role != "user")  # a file may name anyone
        most: Trust = "low" if is_untrusted else "high" if turn.role == "user" else "medium"
        turn_origin = replace(origin, trust=lowest(origin.trust, most, turn.trust))
        draft = draft_episode(self._knowledge.agent_id, turn, part_of, order, turn_origin, self._redactor)
        return self._leave_out_purged(draft, EPISODE, origin)

    def _draft_document(self, document: ReceivedDocument, origin: Origin) -> RecordDraft[Resource]:
        draft = draft_resource(self._knowledge.agent_id, document, origin, self._redactor)
        return self._leave_out_purged(draft, RESOURCE, origin)

    def _leave_out_purged(self, draft: RecordDraft[R], kind: Kind[R], origin: Origin) -> RecordDraft[R]:
        purges = self._purge_list.read()
        return draft if origin.keeps_purged or not purges.ids else leave_out_purged(draft, kind, purges)

    def _draft_turns(
        self, turns: Sequence[tuple[int, ReceivedTurn]], part_of: str, origin: Origin, *, is_live: bool = False
    ) -> tuple[list[RecordDraft[Episode]], list[tuple[int, str]]]:
        """Return drafts of turns, and places and codes of refused ones.

        Purged text that a session repeats is refused.
        """
        drafts: list[RecordDraft[Episode]] = []
        refused: list[tuple[int, str]] = []
        for order, turn in turns:
            try:
                draft = self._episode(turn, part_of, order, origin)
            except ValidationError as error:
                refused.append((order, error.code))
                continue
            if is_live and self._purge_list.has(draft.record.value.content):
                refused.append((order, "forgotten"))
            else:
                drafts.append(draft)
        return drafts, refused

    async def _ingest_document(
        self, document: ReceivedDocument, origin: Origin, caller: Caller
    ) -> IngestOutcome[Resource]:
        if caller.project and PATH in document.metadata:
            document = replace(document, metadata={**document.metadata, PROJECT: caller.project})
        draft = await asyncio.to_thread(self._draft_document, document, origin)
        if PATH not in document.metadata:
            return await self._resource(draft, caller)
        index = await self._get_index()
        placed = await self._place(draft, index)
        if isinstance(placed, AlikeDocument):
            document = replace(document, metadata={**document.metadata, placed.key: placed.resource_id})
            draft = await asyncio.to_thread(self._draft_document, document, origin)
            placed = place_draft(draft, get_path_id(draft.record.value))
        if isinstance(placed, RecordDraft):
            ingested = await self._resource(placed, caller)
        else:
            ingested = IngestOutcome(placed, "known", (PURGED,) if PURGED in draft.redacted else ())
        index.add(ingested.record)
        self._index = await self._get_last_number(), index
        return ingested

    async def _get_index(self) -> DocumentIndex:
        """Return the index of current documents, rebuilt after outside changes."""
        last = await self._get_last_number()
        if self._index is None or self._index[0] != last:
            self._index = last, DocumentIndex(await self._knowledge.resources.valid())
        return self._index[1]

    async def _get_last_number(self) -> int:
        """Return the number of the last change of a resource."""
        last = 0 if self._index is None else self._index[0]
        return (await self._knowledge.resources.changed_after(last)).last

    async def _place(
        self, draft: RecordDraft[Resource], index: DocumentIndex
    ) -> RecordDraft[Resource] | Resource | AlikeDocument:
        """Return the draft to store, or the resource that has its text."""
        record = draft.record.value
        same_id = index.list_same_id(record)
        at_path = index.find(record)
        current = at_path or await asyncio.to_thread(find_moved, same_id)
        if current is not None and has_same_text(current, record):
            return await self._move(current, record)
        if current is not None:  # a changed file keeps its trust
            index.drop(current)
            trusts = [record.trust] + [current.trust] * (at_path is not None and is_local(record.resource_type))
            return place_draft(draft, current.id, supersedes=current.id, trust=max(trusts, key=TRUST_ORDER.index))
        alike = index.list_same_text(record)
        for candidate in alike:
            is_unplaced = not get_path(candidate) and candidate.source == record.source
            if is_unplaced or (get_path(candidate) and not await asyncio.to_thread(is_placed, candidate)):
                return await self._move(candidate, record)
        if alike:
            return AlikeDocument(COPY_OF, alike[0].id)
        if similar := [*same_id, index.find_unplaced(record)][0]:
            return AlikeDocument(MAYBE_VERSION_OF, similar.id)
        placed, place, number = draft, get_path_id(record), 1
        while await self._is_taken(placed.record.value.id):  # by a version that was replaced, withdrawn or purged
            placed, number = place_draft(draft, place if number == 1 else f"{place} {number}"), number + 1
        return placed

    async def _is_taken(self, resource_id: str) -> bool:
        return self._purge_list.names(resource_id) or await self._knowledge.resources.get(resource_id) is not None

    async def _move(self, stored: Resource, record: Resource) -> Resource:
        """Return a resource with the place that its file has now."""
        metadata = without_key(stored.metadata, MISSING_SINCE) | dict(record.metadata)
        if metadata == stored.metadata:
            return stored
        return await self._knowledge.resources.update(stored.id, redact_fields(RESOURCE, {"metadata": metadata}))

    async def _begin(
        self, key: str, title: str, said_at: datetime | None, origin: Origin, caller: Caller
    ) -> IngestOutcome[Resource]:
        if not origin.keeps_purged:
            title = self._purge_list.get_spans().hide(title)
        draft = await asyncio.to_thread(
            draft_conversation, self._knowledge.agent_id, title, key, said_at, origin, self._redactor
        )
        return await self._resource(draft, caller)

    async def _resource(self, draft: RecordDraft[Resource], caller: Caller) -> IngestOutcome[Resource]:
        (ingested,) = await store_new(self._knowledge, self._knowledge.resources, [draft])
        record = ingested.record
        if ingested.outcome == "new" and self._report is not None:
            await self._report(
                "memory:resource_stored",
                caller,
                resource_id=record.id,
                resource_type=record.resource_type,
                content_length=record.chars,
                metadata_keys=sorted(record.metadata),
            )
        return ingested

    async def _turns(
        self, drafts: Sequence[RecordDraft[Episode]], conversation: str | None, caller: Caller
    ) -> list[IngestOutcome[Episode]]:
        ingested = await store_new(self._knowledge, self._knowledge.episodes, drafts)
        new = [outcome for outcome in ingested if outcome.outcome == "new"]
        if new and self._report is not None:
            await self._report(
                "memory:episodes_stored",
                caller,
                resource_id=conversation,
                count=len(new),
                chars=sum(outcome.record.chars for outcome in new),
                redacted=sorted({kind for outcome in new for kind in outcome.redacted}),
            )
        return ingested

    async def _take_document(self, part: ReceivedDocument, origin: Origin, caller: Caller, done: FileIngested) -> None:
        try:
            taken = await self._ingest_document(part, origin, caller)
        except ValidationError as error:
            done.refused.append((part.title or done.name, error.code))
            return
        done.resources.append(taken.record.id)
        done.add(taken)
        done.replaced = taken.record.supersedes or "" if taken.outcome == "new" else ""
        done.copy_of = str(taken.record.metadata.get(COPY_OF, ""))
        if taken.outcome == "new":
            done.maybe_version_of = str(taken.record.metadata.get(MAYBE_VERSION_OF, ""))

    async def _take_conversation(
        self,
        part: FileConversation,
        origin: Origin,
        caller: Caller,
        done: FileIngested,
        tell: Callable[[FileIngested], object],
    ) -> None:
        of_format = replace(origin, metadata={**origin.metadata, FORMAT: part.form, **part.metadata})
        begun = await self._begin(part.key, part.title, part.said_at, of_format, caller)
        done.resources.append(begun.record.id)
        batches = split_batches(part.turns)
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            stored = await self._find_stored(batch, begun.record.id, origin)
            for order, turn in batch:
                if order in stored:
                    done.add_turn(IngestOutcome(stored[order], "known"), turn.role, begun.record.id)
            batch = [(order, turn) for order, turn in batch if order not in stored]
            drafts, refused = await asyncio.to_thread(self._draft_turns, batch, begun.record.id, origin)
            done.refused += [(f"turn {order + 1} of {part.title or done.name}", code) for order, code in refused]
            for draft, ingested in zip(drafts, await self._turns(drafts, begun.record.id, caller), strict=True):
                done.add_turn(ingested, draft.record.value.role, begun.record.id)
            tell(done)

    async def _find_stored(
        self, batch: Sequence[tuple[int, ReceivedTurn]], conversation: str, origin: Origin
    ) -> dict[int, Episode]:
        """Return unchanged stored turns of a batch, by place.

        Their texts have no secret, so they need not be searched for one again.
        """
        if not origin.keeps_purged and self._purge_list.read().ids:
            return {}
        ids = {}
        for order, turn in batch:
            with suppress(ValueError):
                ids[order] = get_turn_id(turn.text, conversation, order)
        records = await self._knowledge.episodes.get_many([*ids.values()])
        return {order: records[record_id] for order, record_id in ids.items() if record_id in records}


def _check_path(path: Path) -> None:
    """Check that a path names a file outside of all memories."""
    if not path.name.strip():
        raise ValidationError(
            "The name of the file is empty; nothing was ingested.", code="no_file", recovery="Name a file."
        )
    if memory := find_memory(path.resolve()):
        raise ValidationError(
            f"{path.name} is a file of the memory in {memory}; nothing was ingested.",
            code="own_file",
            recovery="To copy memories to another agent, run agent-memory export, then agent-memory import.",
        )
