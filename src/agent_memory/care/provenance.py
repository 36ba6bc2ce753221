"""Provenance of a record: author, session, trust with reason, sources, and uses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.care.archive import Archive
from agent_memory.errors import StorageError, UnknownIdError
from agent_memory.knowledge.pages.subjects import is_derived
from agent_memory.memory.events import get_moment, read_audit
from agent_memory.memory.inbox_access import has_journal
from agent_memory.memory.trust import lowest
from agent_memory.models import (
    ACCESS,
    ANY_STATE,
    ARCHIVED,
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
    Resource,
    Topic,
    is_told,
    rests_on,
    utc_now,
)
from agent_memory.models.identifiers import TextOrigin
from agent_memory.models.knowledge import Entity
from agent_memory.models.record import describe_origin, get_origin, view_fields
from agent_memory.redaction import quoted
from agent_memory.store.deletion_states import DeletionState, get_state_after
from agent_memory.store.lookups import find_current

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from agent_memory.models import Kind, Record, RecordVersion, Trust

State = Literal["here", "expired", "replaced", "archived", "forgotten", "gone"]
"""State of a record; `gone`: only its ID is known."""

FROM: Final = "from"
NAMED_IN: Final = "named_in"
"""The relation of an entity to a source that names it."""
_RESTS: Final = frozenset({FROM, COVERS, SUBJECT, OBJECT})
"""Relations of a record to its sources, except `derived_from`."""
MOST_STEPS: Final = 5
"""Most links in a chain from a record to its sources, their sources and so on."""
MOST_LINKS: Final = 50
"""Reported records in each direction; a summary of summaries covers thousands of turns."""
_APART: Final = timedelta(seconds=5)
"""Maximum time between a change in the journal and its audit line, which is written in the background."""
_MODEL_KINDS: Final = frozenset({"model", "model via MCP"})
_SAID: Final[dict[tuple[str, str], str]] = {
    ("user", "high"): "a person said or wrote it",
    ("user", "medium"): "a person typed it, or a program gave it in their name; only a yes, pin or edit confirms it",
    ("user", "low"): "it came in a person's name, and with untrusted text",
    ("assistant", "high"): "the program that stored it vouched for it",
    ("assistant", "medium"): "the model, or a program, wrote it",
    ("assistant", "low"): "the model wrote it, and untrusted text was in the conversation",
    ("tool", "high"): "the program that stored it vouched for it",
    ("tool", "medium"): "a tool answered it that reads what is here",
    ("tool", "low"): "an untrusted tool returned it",
    ("import", "high"): "who imported it vouched for the file",
    ("import", "medium"): "it was in a file, and a person, or an earlier version, accepted it",
    ("import", "low"): "it was in a file, and what a file says of itself is not believed",
}
"""Why a record whose words are its own has its trust, by the kind of its source and the trust."""


@dataclass(frozen=True, slots=True)
class ProvenanceStep:
    """Record at the other end of a relation.

    Attributes:
        rel: Relation in the record with the link, such as `from` or `replaces`.
        id: ID of the record.
        kind: Kind such as `episode`, empty if unknown.
        text: Words of the record, empty if deleted.
        trust: Trust of the record, or None.
        state: State of the record.
        depth: Number of relations to it, from 1.
        detail: Detail of its source, such as a file, tool or rule.
        origin: Way by which its words came in, see `TextOrigin`; empty if unknown or derived.
    """

    rel: str
    id: str
    kind: str = ""
    text: str = ""
    trust: Trust | None = None
    state: State = "gone"
    depth: int = 1
    detail: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class ProvenanceChange:
    """Change of a record: moment, action, session, fields, and trust after it."""

    at: datetime
    what: str
    session: str = ""
    fields: tuple[str, ...] = ()
    trust: Trust | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """Provenance of one record.

    Attributes:
        record: The record, or its last version if forgotten.
        kind: Name of its kind.
        state: State of the record.
        why: Reason of its trust, as the end of a sentence.
        rests_on: Direct and indirect sources, nearest first.
        replaces: Older records that it replaced, newest first.
        replaced_by: ID of its replacement, or None.
        used_by: Records that depend on it.
        changes: Known changes, oldest first.
    """

    record: Record
    kind: str
    state: State
    why: str
    rests_on: tuple[ProvenanceStep, ...] = ()
    replaces: tuple[ProvenanceStep, ...] = ()
    replaced_by: str | None = None
    used_by: tuple[ProvenanceStep, ...] = ()
    changes: tuple[ProvenanceChange, ...] = ()


class SourceLookup:
    """Looks up provenance of one agent's records. Counts no access.

    Args:
        service: Service of the agent's memories.
        knowledge: Documents and turns of the agent, or None.
    """

    def __init__(self, service: MemoryService, knowledge: Knowledge | None) -> None:
        self._service, self._knowledge = service, knowledge

    async def of(self, record_id: str) -> Provenance:
        """Return the provenance of a record.

        Raises:
            UnknownIdError: Nothing is known of this id.
            StorageError: The files cannot be read.
        """
        kind, record, state = await self._find(record_id)
        if kind is None or record is None:
            raise UnknownIdError(f"Nothing is known of {quoted(record_id)}.")
        rests = await self._rests_on(record, await self._naming(record))
        replaced_by = (await find_current(self._storage(kind).replaced_by, [record_id])).get(record_id)
        return Provenance(
            record,
            "item" if kind is MEMORY and record.is_item else kind.name,
            state,
            explain_trust(record, rests),
            tuple(rests),
            tuple(await self._replaces(kind, record)),
            replaced_by,
            tuple(await self._used_by(record_id)),
            tuple(await self._changes(kind, record_id)),
        )

    async def meant(self, word: str) -> list[str]:
        """Return at most ten IDs with a beginning such as `epi-12ab`."""
        kind = self._find_kind(word)
        if kind is None:
            return []
        listing = Listing("oldest", EVERYTHING, ANY_STATE, beginning=word, limit=10)
        return [record.id for record in (await self._storage(kind).browse(listing)).records]

    def _find_kind(self, record_id: str) -> Kind[Any] | None:
        if record_id.startswith(MEMORY.prefix):
            return MEMORY
        storages = self._knowledge.storages if self._knowledge is not None else ()
        return next((storage.kind for storage in storages if record_id.startswith(storage.kind.prefix)), None)

    def _storage(self, kind: Kind[Any]) -> Any:
        if kind is MEMORY or self._knowledge is None:
            return self._service.storage
        return self._knowledge.of(kind.name)

    async def _find(self, record_id: str) -> tuple[Kind[Any] | None, Record | None, State]:
        """Return the kind, the last version and the state of a record."""
        kind = self._find_kind(record_id)
        return (None, None, "gone") if kind is None else (kind, *await self._found(kind, record_id))

    async def _found(self, kind: Kind[Any], record_id: str) -> tuple[Record | None, State]:
        storage = self._storage(kind)
        record = await storage.get(record_id)
        if record is not None:
            replaced = await storage.replaced_by([record_id])
            return record, "replaced" if replaced else "expired" if record.is_expired(utc_now()) else "here"
        if kind is MEMORY and has_journal(self._service.agent_id, self._service.settings, ARCHIVED):
            async with Archive(self._service) as archive:
                if (archived := await archive.get(record_id)) is not None:
                    return archived, "archived"
        versions = [version.record for version in await self._history(kind, record_id) if version.record is not None]
        return (versions[-1], "forgotten") if versions else (None, "gone")

    async def _history(self, kind: Kind[Any], record_id: str) -> list[RecordVersion[Any]]:
        past: Any = self._service.history if kind is MEMORY else self._storage(kind)
        versions: list[RecordVersion[Any]] = await past.history(record_id)
        return versions

    async def _step(self, rel: str, record_id: str, depth: int = 1) -> tuple[ProvenanceStep, Record | None]:
        kind, record, state = await self._find(record_id)
        if kind is None or record is None:
            return ProvenanceStep(rel, record_id, "" if kind is None else kind.name, depth=depth), None
        return _describe_step(rel, record, kind, state, depth), record

    async def _naming(self, record: Record) -> list[tuple[str, str]]:
        """Return the sources that name an entity."""
        if self._knowledge is None or not isinstance(record, Entity):
            return []
        mentions = await self._knowledge.mentions.linked_to(record.id)
        return [(NAMED_IN, link.id) for mention in mentions for link in mention.links if link.rel == FROM]

    async def _rests_on(self, record: Record, more: list[tuple[str, str]]) -> list[ProvenanceStep]:
        """Return direct and indirect sources of a record, nearest first."""
        steps = dict[str, ProvenanceStep]()
        waiting = [(1, rel, source_id) for rel, source_id in (*_list_sources(record), *more)]
        while waiting and len(steps) < MOST_LINKS:
            depth, rel, source_id = waiting.pop(0)
            if source_id not in {record.id, *steps}:
                steps[source_id], source = await self._step(rel, source_id, depth)
                if source is not None and depth < MOST_STEPS:
                    waiting += [(depth + 1, rel, next_id) for rel, next_id in _list_sources(source)]
        return list(steps.values())

    async def _replaces(self, kind: Kind[Any], record: Record) -> list[ProvenanceStep]:
        steps: list[ProvenanceStep] = []
        older, seen = record.supersedes, {record.id}
        while older is not None and older not in seen and len(steps) < MOST_LINKS:
            seen.add(older)
            step, replaced = await self._step("replaces", older, len(steps) + 1)
            steps.append(step if step.kind else replace(step, kind=kind.name))
            older = None if replaced is None else replaced.supersedes
        return steps

    async def _used_by(self, record_id: str) -> list[ProvenanceStep]:
        """Return records that depend on a record."""
        steps: dict[str, ProvenanceStep] = {}
        memories: Any = self._service.storage
        for storage in (memories, *(self._knowledge.storages if self._knowledge is not None else ())):
            kind: Kind[Any] = MEMORY if storage is memories else storage.kind
            for user in await storage.linked_to(record_id):
                rels = [link.rel for link in user.links if link.id == record_id and is_told(link.rel)]
                if rels and kind is not MENTIONS and len(steps) < MOST_LINKS:
                    steps[user.id] = _describe_step(rels[0], user, kind, "here")
        if self._knowledge is not None and record_id.startswith(MEMORY.prefix):
            for topic in (await self._knowledge.topics.browse(Listing())).records:
                if record_id in topic.item_ids:
                    steps[topic.id] = ProvenanceStep("on_page", topic.id, "topic", topic.name, topic.trust, "here")
        return list(steps.values())

    async def _changes(self, kind: Kind[Any], record_id: str) -> list[ProvenanceChange]:
        """Return changes of a record, with sessions from the audit log."""
        audited = await asyncio.to_thread(self._read_audit, record_id) if kind is MEMORY else []
        changes: list[ProvenanceChange] = []
        before: Record | None = None
        for version in await self._history(kind, record_id):
            now = version.record
            fields = _list_changed_fields(before, now) if before is not None and now is not None else ()
            if before is None or fields or now is None:
                what = _what(version.op, before, changes)
                first = now.created_by_session if now is not None and not changes else ""
                by = first or _nearest(audited, what, version.at)
                changes.append(ProvenanceChange(version.at, what, by, fields, None if now is None else now.trust))
            before = now
        return changes

    def _read_audit(self, record_id: str) -> list[tuple[str, datetime, str]]:
        """Return action, moment and session of a memory's audit entries."""
        folder, events = self._service.folder, list[tuple[str, datetime, str]]()
        with suppress(OSError, StorageError):
            for entry in read_audit(folder.audit) if folder is not None else ():
                what, moment = _EVENTS.get(str(entry.get("event"))), get_moment(entry)
                if what and moment is not None and entry.get("memory_id") == record_id:
                    events.append((what, moment, str(entry.get("session_id") or "")))
        return events


def _describe_step(rel: str, record: Record, kind: Kind[Any], state: State, depth: int = 1) -> ProvenanceStep:
    text = record.name if isinstance(record, Topic) else kind.text_of(record)
    return ProvenanceStep(
        rel, record.id, kind.name, text, record.trust, state, depth, record.source.detail, describe_origin(record)
    )


def _nearest(audited: list[tuple[str, datetime, str]], what: str, changed_at: datetime) -> str:
    """Return the session of an action at a moment, empty if unknown."""
    near = [(abs(moment - changed_at), session) for done, moment, session in audited if done == what]
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


def _what(op: str, before: Record | None, earlier: list[ProvenanceChange]) -> str:
    if (state := get_state_after(op)) is not DeletionState.LIVE:
        return state.value
    if before is not None:
        return "changed"
    return "brought back" if earlier else "stored"


def _list_changed_fields(before: Record, after: Record) -> tuple[str, ...]:
    names = (name for name in type(after).model_fields if name not in ACCESS)
    return tuple(name for name in names if getattr(before, name, None) != getattr(after, name, None))


def _list_sources(record: Record) -> Iterable[tuple[str, str]]:
    """Return relations and IDs of a record's sources."""
    sources = [(link.rel, link.id) for link in record.links if link.rel in _RESTS or rests_on(link.rel)]
    if isinstance(record, Topic):
        sources += [("item", item_id) for item_id in record.item_ids]
    if isinstance(record, ArchivedMemory) and record.merged_into is not None:
        sources.append((MERGED_INTO, record.merged_into))
    return sources + [(link.rel, link.id) for link in record.links if link.rel in {PART_OF, MERGED_INTO, NAMES}]


def explain_trust(record: Record, rests: Sequence[ProvenanceStep] = ()) -> str:
    """Return the reason of a record's trust as a clause.

    Args:
        record: Record, also one that waits for a yes.
        rests: Its direct and indirect sources.
    """
    if named := [step for step in rests if step.rel == NAMED_IN and step.trust is not None]:
        equal = next((step for step in named if step.trust == record.trust), None)
        explanation = "more than what names it now" if equal is None else f"as {equal.id}, which names it"
        return f"it is trusted {explanation}; what each text says of it has the trust of that text"
    words = [step for step in rests if step.depth == 1 and (step.rel in {FROM, COVERS, "item"} or rests_on(step.rel))]
    if isinstance(record, Topic) and not is_derived(record):
        words = []  # its name and its description are the words of who declared it; each line of its page has its own
    if trusted := [step for step in words if step.trust is not None]:
        return _why_drawn(record, trusted)
    if words:
        return "it was drawn from what is here no longer"
    if record.source.kind == "extraction":
        return "it was drawn from what had this trust"
    return _explain_model(record) or _SAID[record.source.kind, record.trust]


def _explain_model(record: Record) -> str:
    """Return the reason of a model text's trust; empty for others."""
    origin = TextOrigin.parse(record.origin)
    if record.trust == "low":
        return f"the model wrote it, and {origin.doubt}" if origin.doubt else ""
    is_accepted = origin.kind == "agent after" or (origin.kind in _MODEL_KINDS and record.source.kind == "user")
    return "the model wrote it, and the user said yes to it" if is_accepted else ""


def _why_drawn(record: Record, steps: list[ProvenanceStep]) -> str:
    least = next(step for step in steps if step.trust == lowest(*(other_step.trust or "low" for other_step in steps)))
    if least.trust == record.trust:
        return f"the least trusted of what it rests on, {least.id}, has {least.trust} trust"
    if record.trust == lowest(record.trust, least.trust or "low"):
        return f"its own words count for less than what it rests on, {least.id}, which has {least.trust} trust"
    return f"a person, or an earlier version, accepted it; what it rests on, {least.id}, has {least.trust} trust"


def get_words(record: Any) -> str:
    """Return the text or title of a record."""
    if isinstance(record, Topic):
        return f"{record.name}: {record.description}"
    if isinstance(record, Resource) and record.title:
        return record.title
    return str(getattr(record, "content", "") or getattr(record, "name", ""))


def view_provenance(provenance: Provenance) -> dict[str, Any]:
    """Return the provenance of a record as JSON values."""
    record = provenance.record
    return {
        "id": record.id,
        "kind": provenance.kind,
        "state": provenance.state,
        "content": get_words(record),
        "trust": record.trust,
        "why": provenance.why,
        "source": record.source.model_dump(mode="json"),
        "origin": str(get_origin(record)),
        "session": record.created_by_session,
        **view_fields(record, "timestamp", "observed_at", group="belongs_to"),
        "rests_on": [_view_step(record) for record in provenance.rests_on],
        "replaces": [_view_step(record) for record in provenance.replaces],
        "replaced_by": provenance.replaced_by,
        "used_by": [_view_step(record) for record in provenance.used_by],
        "changes": [
            view_fields(change, "at", "what", "session", "fields")
            | ({} if change.trust is None else {"trust": change.trust})
            for change in provenance.changes
        ],
    }


def _view_step(step: ProvenanceStep) -> dict[str, Any]:
    names = ("rel", "id", "kind", "trust", "state", "depth", "origin")
    return view_fields(step, *names, source="detail", content="text")
