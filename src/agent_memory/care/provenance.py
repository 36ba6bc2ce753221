"""Whence a record comes: who wrote it, in which session, how far it is to be trusted and why, and what it rests on."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.care.archive import Archive, archive_exists
from agent_memory.errors import StorageError, UnknownIdError
from agent_memory.knowledge.pages.subjects import is_derived
from agent_memory.memory.events import read_audit
from agent_memory.memory.trust import lowest
from agent_memory.models import (
    ACCESS,
    ANY_STATE,
    COVERS,
    EVERYTHING,
    MEMORY,
    MENTIONS,
    MERGED_INTO,
    NAMES,
    OBJECT,
    PART_OF,
    SUBJECT,
    ArchivedMemory,
    Listing,
    Topic,
    as_utc,
    is_told,
    rests_on,
    utc_now,
)
from agent_memory.models.knowledge import Entity
from agent_memory.redaction import quoted
from agent_memory.store.lookups import find_current

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from agent_memory.models import Kind, Record, RecordVersion, Trust

State = Literal["here", "expired", "replaced", "archived", "forgotten", "gone"]
"""What has become of a record; `gone`: nothing is known of it but its id."""

FROM: Final = "from"
NAMED_IN: Final = "named_in"
"""The relation of an entity to a source that names it."""
_RESTS: Final = frozenset({FROM, COVERS, SUBJECT, OBJECT})
"""Relations of a record to what its words come from, beside `derived_from`."""
MOST_STEPS: Final = 5
"""From one record to what it rests on, and on to what that rests on."""
MOST_LINKS: Final = 50
"""Records that are told of in each direction; a summary of summaries covers thousands of turns."""
_APART: Final = timedelta(seconds=5)
"""Between a change in the journal and its line in the audit, at most: the line is written behind the answer."""
_SAID: Final[dict[tuple[str, str], str]] = {
    ("user", "high"): "a person said or wrote it",
    ("user", "medium"): "it came in a person's name, from a program or in pasted text",
    ("user", "low"): "it came in a person's name, and with a stranger's text",
    ("assistant", "high"): "the program that stored it vouched for it",
    ("assistant", "medium"): "the model, or a program, wrote it",
    ("assistant", "low"): "the model wrote it while a stranger's text was in its conversation",
    ("tool", "high"): "the program that stored it vouched for it",
    ("tool", "medium"): "a tool answered it that reads what is here",
    ("tool", "low"): "a tool answered it: a stranger's words",
    ("import", "high"): "who imported it vouched for the file",
    ("import", "medium"): "it stood in a file, and what a file says of itself is not believed",
    ("import", "low"): "it was in a file that names a tool, or nothing known, as its speaker",
}
"""Why a record whose words are its own has its trust, by the kind of its source and the trust."""


@dataclass(frozen=True, slots=True)
class ProvenanceStep:
    """A record at the other end of a relation.

    Attributes:
        rel: `from`, `covers`, `replaces`, `merged_into` and the like, as the record says that has the link.
        id: Its id.
        kind: Its kind, such as `episode`; empty where none is known of this id.
        text: Its words; empty where they are gone.
        trust: None where nothing is known of it.
        state: What has become of it.
        depth: How many relations lead to it, from 1.
        detail: The detail of its source: a file, a tool or a rule.
    """

    rel: str
    id: str
    kind: str = ""
    text: str = ""
    trust: Trust | None = None
    state: State = "gone"
    depth: int = 1
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RecordChange:
    """A change of a record: when, what was done, by which session, and which fields; `trust` is what it had then."""

    at: datetime
    what: str
    session: str = ""
    fields: tuple[str, ...] = ()
    trust: Trust | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Whence a record comes.

    Attributes:
        record: It; as it was last, where it was forgotten.
        kind: Its kind's name.
        state: What has become of it.
        why: Why it has its trust, as the end of a sentence.
        rests_on: What its words come from, the nearest first, each once.
        replaces: The older ones that it replaced, the newest first.
        replaced_by: Id of the one that replaced it, or None.
        used_by: What rests on it.
        changes: What became of it, the oldest first, as far as the files still know.
    """

    record: Record
    kind: str
    state: State
    why: str
    rests_on: tuple[ProvenanceStep, ...] = ()
    replaces: tuple[ProvenanceStep, ...] = ()
    replaced_by: str | None = None
    used_by: tuple[ProvenanceStep, ...] = ()
    changes: tuple[RecordChange, ...] = ()


class Sources:
    """Looks up whence the records of one agent come. Changes nothing, and counts as no access.

    Args:
        service: The agent's memories.
        knowledge: What the agent was given; None for memories alone, as a server keeps them.
    """

    def __init__(self, service: MemoryService, knowledge: Knowledge | None) -> None:
        self._service, self._knowledge = service, knowledge

    async def of(self, record_id: str) -> Provenance:
        """Return whence a record comes.

        Raises:
            UnknownIdError: Nothing is known of this id.
            StorageError: The files cannot be read.
        """
        kind = self._kind_of(record_id)
        record, state = (None, "gone") if kind is None else await self._found(kind, record_id)
        if kind is None or record is None:
            raise UnknownIdError(f"Nothing is known of {quoted(record_id)}.")
        rests = await self._rests_on(record, await self._naming(record))
        replaced_by = (await find_current(self._storage(kind).replaced_by, [record_id])).get(record_id)
        return Provenance(
            record,
            "item" if kind is MEMORY and record.is_item else kind.name,
            state,
            _why(record, rests),
            tuple(rests),
            tuple(await self._replaces(kind, record)),
            replaced_by,
            tuple(await self._used_by(record_id)),
            tuple(await self._changes(kind, record_id)),
        )

    async def meant(self, word: str) -> list[str]:
        """Return the ids that begin with a word such as `epi-12ab`, at most ten; all those there are of a whole id."""
        kind = self._kind_of(word)
        if kind is None:
            return []
        listing = Listing("oldest", EVERYTHING, ANY_STATE, beginning=word, limit=10)
        return [each.id for each in (await self._storage(kind).browse(listing)).records]

    def _kind_of(self, record_id: str) -> Kind[Any] | None:
        if record_id.startswith(MEMORY.prefix):
            return MEMORY
        known = self._knowledge.storages if self._knowledge is not None else ()
        return next((each.kind for each in known if record_id.startswith(each.kind.prefix)), None)

    def _storage(self, kind: Kind[Any]) -> Any:
        if kind is MEMORY or self._knowledge is None:
            return self._service.storage
        return self._knowledge.of(kind.name)

    async def _found(self, kind: Kind[Any], record_id: str) -> tuple[Record | None, State]:
        """Return a record, and what has become of it."""
        storage = self._storage(kind)
        record = await storage.get(record_id)
        if record is not None:
            replaced = await storage.replaced_by([record_id])
            return record, "replaced" if replaced else "expired" if record.is_expired(utc_now()) else "here"
        if kind is MEMORY and archive_exists(self._service.agent_id, self._service.settings):
            archive = Archive(self._service)
            try:
                if (archived := await archive.get(record_id)) is not None:
                    return archived, "archived"
            finally:
                await archive.close()
        versions = [each.record for each in await self._history(kind, record_id) if each.record is not None]
        return (versions[-1], "forgotten") if versions else (None, "gone")

    async def _history(self, kind: Kind[Any], record_id: str) -> list[RecordVersion[Any]]:
        past: Any = self._service.history if kind is MEMORY else self._storage(kind)
        versions: list[RecordVersion[Any]] = await past.history(record_id)
        return versions

    async def _step(self, rel: str, record_id: str, depth: int = 1) -> tuple[ProvenanceStep, Record | None]:
        kind = self._kind_of(record_id)
        if kind is None:
            return ProvenanceStep(rel, record_id, depth=depth), None
        record, state = await self._found(kind, record_id)
        if record is None:
            return ProvenanceStep(rel, record_id, kind.name, depth=depth), None
        text = record.name if isinstance(record, Topic) else kind.text_of(record)
        return ProvenanceStep(rel, record_id, kind.name, text, record.trust, state, depth, record.source.detail), record

    async def _naming(self, record: Record) -> list[tuple[str, str]]:
        """Return of an entity the sources that name it."""
        if self._knowledge is None or not isinstance(record, Entity):
            return []
        mentions = await self._knowledge.mentions.linked_to(record.id)
        return [(NAMED_IN, link.id) for each in mentions for link in each.links if link.rel == FROM]

    async def _rests_on(self, record: Record, more: list[tuple[str, str]]) -> list[ProvenanceStep]:
        """Return what the words of a record come from, and what those come from, each once, the nearest first."""
        found: list[ProvenanceStep] = []
        seen, waiting = {record.id}, [(1, rel, one) for rel, one in (*_sources_of(record), *more)]
        while waiting and len(found) < MOST_LINKS:
            depth, rel, one = waiting.pop(0)
            if one in seen:
                continue
            seen.add(one)
            step, other = await self._step(rel, one, depth)
            found.append(step)
            if other is not None and depth < MOST_STEPS:
                waiting += [(depth + 1, rel, each) for rel, each in _sources_of(other)]
        return found

    async def _replaces(self, kind: Kind[Any], record: Record) -> list[ProvenanceStep]:
        found: list[ProvenanceStep] = []
        older, seen = record.supersedes, {record.id}
        while older is not None and older not in seen and len(found) < MOST_LINKS:
            seen.add(older)
            step, other = await self._step("replaces", older, len(found) + 1)
            found.append(step if step.kind else replace(step, kind=kind.name))
            older = None if other is None else other.supersedes
        return found

    async def _used_by(self, record_id: str) -> list[ProvenanceStep]:
        """Return what rests on a record: what is drawn from it, covers it, or has it on a page."""
        found: dict[str, ProvenanceStep] = {}
        memories: Any = self._service.storage
        for storage in (memories, *(self._knowledge.storages if self._knowledge is not None else ())):
            kind: Kind[Any] = MEMORY if storage is memories else storage.kind
            for each in await storage.linked_to(record_id):
                rels = [link.rel for link in each.links if link.id == record_id and is_told(link.rel)]
                if rels and kind is not MENTIONS and len(found) < MOST_LINKS:
                    text = each.name if isinstance(each, Topic) else kind.text_of(each)
                    found[each.id] = ProvenanceStep(
                        rels[0], each.id, kind.name, text, each.trust, "here", 1, each.source.detail
                    )
        if self._knowledge is not None and record_id.startswith(MEMORY.prefix):
            for topic in (await self._knowledge.topics.browse(Listing())).records:
                if record_id in topic.item_ids:
                    found[topic.id] = ProvenanceStep("on_page", topic.id, "topic", topic.name, topic.trust, "here")
        return list(found.values())

    async def _changes(self, kind: Kind[Any], record_id: str) -> list[RecordChange]:
        """Return what became of a record; of memories the audit says by which session."""
        audited = await asyncio.to_thread(self._audited, record_id) if kind is MEMORY else []
        found: list[RecordChange] = []
        before: Record | None = None
        for version in await self._history(kind, record_id):
            now = version.record
            fields = _changed(before, now) if before is not None and now is not None else ()
            if before is None or fields or now is None:
                what = _what(version.op, before, found)
                first = now.created_by_session if now is not None and not found else ""
                by = first or _nearest(audited, what, version.at)
                found.append(RecordChange(version.at, what, by, fields, None if now is None else now.trust))
            before = now
        return found

    def _audited(self, record_id: str) -> list[tuple[str, datetime, str]]:
        """Return what the audit says of a memory: what was done, when, and by which session."""
        folder = self._service.folder
        found: list[tuple[str, datetime, str]] = []
        if folder is None:
            return found
        with suppress(OSError, StorageError):
            for entry in read_audit(folder.audit):
                if entry.get("memory_id") == record_id and (what := _EVENTS.get(str(entry.get("event")))):
                    with suppress(ValueError, TypeError):
                        at = as_utc(datetime.fromisoformat(str(entry.get("at"))))
                        found.append((what, at, str(entry.get("session_id") or "")))
        return found


def _nearest(audited: list[tuple[str, datetime, str]], what: str, at: datetime) -> str:
    """Return the session that did something at that time; empty where nothing says so."""
    near = [(abs(moment - at), session) for done, moment, session in audited if done == what]
    distance, session = min(near, default=(_APART, ""))
    return session if distance < _APART else ""


_EVENTS: Final = {
    "memory:stored": "stored",
    "memory:captured": "stored",
    "memory:imported": "stored",
    "memory:updated": "changed",
    "memory:forgotten": "forgotten",
    "memory:restored": "brought back",
}
"""What was done, by the event of it in the audit."""


def _what(op: str, before: Record | None, earlier: list[RecordChange]) -> str:
    if op in {"delete", "move"}:
        return "forgotten" if op == "delete" else "archived"
    if before is not None:
        return "changed"
    return "brought back" if earlier else "stored"


def _changed(before: Record, after: Record) -> tuple[str, ...]:
    names = (name for name in type(after).model_fields if name not in ACCESS)
    return tuple(name for name in names if getattr(before, name, None) != getattr(after, name, None))


def _sources_of(record: Record) -> Iterable[tuple[str, str]]:
    """Return the relations of a record to what its words come from, with the ids there."""
    own = [(link.rel, link.id) for link in record.links if link.rel in _RESTS or rests_on(link.rel)]
    if isinstance(record, Topic):
        own += [("item", one) for one in record.item_ids]
    if isinstance(record, ArchivedMemory) and record.merged_into is not None:
        own.append((MERGED_INTO, record.merged_into))
    return own + [(link.rel, link.id) for link in record.links if link.rel in {PART_OF, MERGED_INTO, NAMES}]


def _why(record: Record, rests: list[ProvenanceStep]) -> str:
    """Return why a record has its trust."""
    if named := [each for each in rests if each.rel == NAMED_IN and each.trust is not None]:
        one = next((each for each in named if each.trust == record.trust), None)
        told = "more than what names it now" if one is None else f"as {one.id}, which names it"
        return f"it is trusted {told}; what each text says of it has the trust of that text"
    words = [each for each in rests if each.depth == 1 and (each.rel in {FROM, COVERS, "item"} or rests_on(each.rel))]
    if isinstance(record, Topic) and not is_derived(record):
        words = []  # its name and its description are the words of who declared it; each line of its page has its own
    if known := [each for each in words if each.trust is not None]:
        return _why_drawn(record, known)
    if words:
        return "it was drawn from what is here no longer"
    if record.source.kind == "extraction":
        return "it was drawn from what had this trust"
    return _SAID[record.source.kind, record.trust]


def _why_drawn(record: Record, known: list[ProvenanceStep]) -> str:
    least = next(each for each in known if each.trust == lowest(*(one.trust or "low" for one in known)))
    if least.trust == record.trust:
        return f"the least trusted of what it rests on, {least.id}, has {least.trust} trust"
    if record.trust == lowest(record.trust, least.trust or "low"):
        return f"its own words count for less than what it rests on, {least.id}, which has {least.trust} trust"
    return f"it was trusted before what it rests on, {least.id}, had {least.trust} trust"
