"""Entries of an export, and records made of them.

An entry is a record with its `kind`, its whole text, and the edited page of a topic. Other pages are rebuilt from the
items. Entities, mentions, relations and summaries are exported, with merges, splits and wording.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.journal import PurgeList
from agent_memory.knowledge.intake.drafts import RecordDraft, hash_text
from agent_memory.knowledge.intake.ingest import store_new
from agent_memory.knowledge.pages.page_files import TopicFiles, put_page
from agent_memory.knowledge.pipeline.stages import StageCheckpoints, with_never
from agent_memory.models import (
    ENTITY,
    ENTITY_KINDS,
    EPISODE,
    MARK,
    MAX_LINE_CHARS,
    MAX_TEXT_CHARS,
    MERGED_INTO,
    RESOURCE,
    TOPIC,
    TRUST_ORDER,
    StageCheckpoint,
    to_text,
)
from agent_memory.redaction import SecretRedactor
from agent_memory.store.record_redaction import make_record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Topic
    from agent_memory.models.kind import Kind


_TEXTS: Final = (RESOURCE, EPISODE)
"""Kinds with texts that may lie in a file of their own."""
_CARRIED: Final[tuple[Kind[Any], ...]] = (*_TEXTS, TOPIC, *ENTITY_KINDS)
_AT_ONCE: Final = 100
_CHARACTERS_AT_ONCE: Final = 1 << 16
_REDACTOR: Final = SecretRedactor()

Entry = tuple[int, dict[str, Any]]
"""The line of a file that an entry begins on, and its fields."""


@dataclass(slots=True)
class EntryImport:
    """Outcome of an import of entries.

    Attributes:
        stored, present: How many were stored, and were there already, by kind.
        purged: How many were purged here, which they stay, by kind.
        refused: By line, why one could not be taken.
        redacted: Kinds of secrets that were taken out.
    """

    stored: Counter[str] = field(default_factory=Counter)
    present: Counter[str] = field(default_factory=Counter)
    purged: Counter[str] = field(default_factory=Counter)
    refused: dict[int, str] = field(default_factory=dict)
    redacted: dict[str, None] = field(default_factory=dict)


async def iter_entries(knowledge: Knowledge, forgotten: Collection[str] = ()) -> AsyncIterator[dict[str, Any]]:
    """Yield everything that an agent was given, and its topics, as entries.

    Args:
        knowledge: What it was given.
        forgotten: IDs of forgotten items, which are not extracted again elsewhere.

    Raises:
        StorageError: A record or a long text cannot be read.
    """
    for kind in _TEXTS:
        async for record in knowledge.of(kind.name).iter_all():
            entry = {"kind": kind.name, "id": record.id, **record.to_record()}
            if entry.pop("blob", ""):
                entry["content"] = await knowledge.text_of(record)
            yield entry
    files = TopicFiles(knowledge.folder.topics)
    async for topic in knowledge.topics.iter_all():
        saved = await asyncio.to_thread(files.read, topic.name)
        yield _topic_entry(topic, saved.text if saved is not None and saved.is_edited else "")
    for kind in ENTITY_KINDS:
        async for record in knowledge.of(kind.name).iter_all():
            yield {"kind": kind.name, "id": record.id, **record.to_record()}
    async for mark in knowledge.marks.iter_all():
        if never := sorted({*mark.never, *forgotten}):
            yield {
                "kind": MARK.name,
                "id": mark.id,
                "stage": mark.stage,
                "source_kind": mark.source_kind,
                "never": never,
            }


async def store_entries(knowledge: Knowledge, entries: Sequence[Entry], *, trusted: bool, dry_run: bool) -> EntryImport:
    """Store entries that do not exist yet, with their IDs.

    Args:
        knowledge: Records of the receiving agent.
        entries: As `iter_entries` gave them.
        trusted: Accept the trust, origin and page edits of the entries. Forgotten IDs are accepted from any file.
        dry_run: Count without storing anything.

    Raises:
        StorageError: What was stored before is there; doing it again does the rest.
    """
    done = EntryImport()
    for kind in _CARRIED:
        kind_entries = [entry for entry in entries if entry[1].get("kind") == kind.name]
        for start in range(0, len(kind_entries), _AT_ONCE):
            await _store(
                knowledge, kind, kind_entries[start : start + _AT_ONCE], done, trusted=trusted, dry_run=dry_run
            )
    for _, entry in entries:
        if entry.get("kind") == MARK.name and not dry_run:
            await _forget(knowledge, entry, trusted=trusted)
    return done


async def _store(
    knowledge: Knowledge, kind: Kind[Any], batch: Sequence[Entry], done: EntryImport, *, trusted: bool, dry_run: bool
) -> None:
    drafts: list[RecordDraft[Any]] = []
    purged = PurgeList(knowledge.folder.path)
    size, names = 0, {topic.name async for topic in knowledge.topics.iter_all()} if kind is TOPIC else set()
    for line, original in batch:
        entry = original if trusted or kind is not ENTITY else await _drop_merges(knowledge, original)
        entry = dict(await asyncio.to_thread(purged.readable, entry.get("id"), entry))
        try:
            draft = await asyncio.to_thread(_draft, knowledge, kind, entry, trusted=trusted)
        except ValidationError as error:
            done.refused[line] = error.message
            continue
        record = draft.record.value
        # An entry that does not say when it was stored counts as older than any purge.
        if await asyncio.to_thread(purged.bars, record.id, {**record.to_record(), "timestamp": entry.get("timestamp")}):
            done.purged[kind.name] += 1
            continue
        is_there = await knowledge.of(kind.name).get(record.id) is not None or getattr(record, "name", None) in names
        (done.present if is_there else done.stored)[kind.name] += 1
        done.redacted |= dict.fromkeys((*draft.redacted, *draft.record.kinds))
        if is_there or dry_run:
            continue
        drafts.append(draft)
        size += len(draft.text) or len(kind.text_of(record))
        if size > _CHARACTERS_AT_ONCE:
            await store_new(knowledge, knowledge.of(kind.name), drafts)
            drafts, size = [], 0
        if trusted and kind is TOPIC and isinstance(page := entry.get("page"), str) and page:
            clean = await asyncio.to_thread(_REDACTOR.redact, page)
            await asyncio.to_thread(put_page, knowledge.folder.topics, record.name, clean.text)
    if drafts:
        await store_new(knowledge, knowledge.of(kind.name), drafts)


def _draft(knowledge: Knowledge, kind: Kind[Any], entry: dict[str, Any], *, trusted: bool) -> RecordDraft[Any]:
    """Return the draft of an entry.

    Raises:
        ValidationError: It is not a record of its kind, or only a secret.
    """
    values = {name: value for name, value in entry.items() if name in kind.model.model_fields and name != "agent_id"}
    long_text, kinds = "", tuple[str, ...]()
    text = values.get("content")
    if kind in _TEXTS and isinstance(text, str):
        if len(text) > MAX_TEXT_CHARS:
            raise ValidationError(f"One record holds {MAX_TEXT_CHARS:,} characters, this has {len(text):,}.")
        if len(text) > MAX_LINE_CHARS:
            clean = _REDACTOR.redact(text)
            text, kinds = clean.text, tuple(clean.kinds)
            long_text = text if len(text) > MAX_LINE_CHARS else ""
        values |= {"content": text[:MAX_LINE_CHARS], "blob": hash_text(long_text) if long_text else ""}
        values["chars"] = len(text) if entry.get("chars") else 0  # of a conversation the record has the title alone
    if not trusted:
        values |= _lower_claims(values, knowledge)
        if kind is TOPIC:  # the words of a page are its own only where a person wrote them
            values |= {"body": "", "edited_by": ""}
    record = make_record(kind, values, knowledge.agent_id, _REDACTOR)
    return RecordDraft(record, long_text, kinds, (record.value.id,), has_name=True)


def _lower_claims(values: dict[str, Any], knowledge: Knowledge) -> dict[str, Any]:
    """Return the fields of an untrusted entry that are changed."""
    source = values.get("source")
    origin = dict(source) if isinstance(source, dict) else {}
    if origin.get("kind") == "user":
        origin["kind"] = "import"
    trust, now = values.get("trust"), to_text(knowledge.clock())
    return {
        "trust": "low" if trust in {None, *TRUST_ORDER} else trust,  # a wrong one is refused
        "timestamp": min(str(values.get("timestamp") or now), now),
        **({"source": origin} if origin else {}),
    }


async def _drop_merges(knowledge: Knowledge, entry: dict[str, Any]) -> dict[str, Any]:
    """Return an untrusted entity without merges into existing ones."""
    links = entry.get("links")
    if not isinstance(links, list) or not all(isinstance(link, dict) for link in links):
        return entry  # not a record
    merged = [str(link.get("id")) for link in links if link.get("rel") == MERGED_INTO]
    existing = {entity_id for entity_id in merged if await knowledge.entities.get(entity_id) is not None}
    return {**entry, "links": [link for link in links if str(link.get("id")) not in existing]} if existing else entry


async def _forget(knowledge: Knowledge, entry: dict[str, Any], *, trusted: bool) -> None:
    """Note forgotten IDs on the checkpoint of a stage."""
    named = [record_id for record_id in entry.get("never") or () if isinstance(record_id, str)]
    ids = [record_id for record_id in named if record_id.startswith(("mem-", "epi-", "res-"))]
    people = [record_id for record_id in named if record_id.startswith(ENTITY.prefix)]
    known_here = set() if trusted else set(await knowledge.entities.valid_among(people))
    ids += [
        record_id for record_id in people if record_id not in known_here
    ]  # an untrusted file hides no existing entity
    marks, checkpoint = StageCheckpoints(knowledge.marks), await knowledge.marks.get(str(entry.get("id")))
    if checkpoint is None:
        try:
            values = {name: entry[name] for name in ("id", "stage", "source_kind")}
            checkpoint = make_record(MARK, values, knowledge.agent_id).value
        except (KeyError, ValidationError):
            return
    assert isinstance(checkpoint, StageCheckpoint)
    await marks.keep(with_never(checkpoint, ids))


def _topic_entry(topic: Topic, page: str) -> dict[str, Any]:
    record = topic.to_record()
    made = {"item_ids", "consolidated_at"} if topic.edited_by else {"item_ids", "consolidated_at", "body"}
    fields = {name: value for name, value in record.items() if name not in made}
    return {"kind": TOPIC.name, "id": topic.id, **fields, **({"page": page} if page else {})}
