"""Memories, candidates and observations that may become memories, statements, and the scratchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.identifiers import MAX_PROJECT_CHARS, RULE_CATEGORIES, derived_id, new_id, new_memory_id
from agent_memory.models.kind import Kind
from agent_memory.models.record import (
    GROUP,
    MAX_GROUP_CHARS,
    Fraction,
    IdOf,
    OriginText,
    Record,
    Source,
    Trust,
    group_facets,
    may_stand_for,
    new_list,
    offered_values,
)
from agent_memory.models.text import check_content, check_text, flatten, get_duplicate_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from agent_memory.models.record import Facet


MAX_CONTENT_CHARS: Final = 10_000
PROJECT: Final = "project"
"""Name of the facet of a project's memories."""
CHOSEN_NAMES: Final = frozenset({"category", "topic"})
"""Fields with a chosen name; without it a memory is an ordinary one, of no topic."""
MemoryId = Annotated[str, IdOf("mem")]
CandidateId = Annotated[str, IdOf("cnd")]
Category = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
DIGEST: Final = "digest"
"""`source.detail` of a statement that a session's agent made of a passage."""
PASSAGE: Final = "passage"
"""`source.detail` of a passage, and key of the metadata of a statement that has the ID of its passage."""
SECTION: Final = "section"
"""Key of the metadata of a statement that has the heading path of its passage."""
FROM: Final = "from"
"""Link of an item to its document or turn."""
EPISODE_PREFIX: Final = "epi-"
ALSO: Final = "also_at"
"""Key of the metadata that has the places of an item in further sources, by their IDs."""


def get_turn_id(record: Record) -> str:
    """Return the ID of an item's turn, or an empty text."""
    return next((link.id for link in record.links if link.id.startswith(EPISODE_PREFIX)), "")


def of_another_project(memory: Record, project: str) -> bool:
    """Return True if a record belongs to another project.

    False if either has no project.
    """
    memory_project = memory.project if isinstance(memory, Memory) else ""
    return bool(project and memory_project and memory_project.casefold() != project.casefold())


def may_conflict(newer: Record, older: Record) -> bool:
    """Return True if a record may conflict with an older one.

    Not across projects or groups, and not against higher trust.
    """
    groups = {record.belongs_to for record in (newer, older) if isinstance(record, Memory)} - {""}
    is_elsewhere = isinstance(newer, Memory) and of_another_project(older, newer.project)
    return len(groups) <= 1 and not is_elsewhere and may_stand_for(newer.trust, older.trust)


def is_stated(record: Memory | Observation) -> bool:
    """Return True if the user said it or vouched for it.

    A model does not reword, replace or shorten it without them, whatever its trust.
    """
    return record.source.kind == "user" or record.trust == "high"


def is_typed_rule(memory: Memory) -> bool:
    """Return True if it is a rule that the user typed."""
    is_typed = memory.source.kind == "user" and not memory.source.detail and memory.trust == "medium"
    return is_typed and memory.category in RULE_CATEGORIES


class Memory(Record):
    """One thing an agent knows.

    Immutable: change it through the service (or `MemoryStorage.update`), which writes the journal. `agent_id` names
    the memory's folder; it is not part of the journal's record.
    """

    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    category: Category = "note"
    topic: Annotated[str, Field(pattern=r"^(?:[a-z][a-z0-9_]{0,63})?$")] = ""
    id: MemoryId = Field(default_factory=new_memory_id)
    supersedes: MemoryId | None = None
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    project: str = Field(default="", max_length=MAX_PROJECT_CHARS)

    @field_validator("project")
    @classmethod
    def _clean_project(cls, name: str) -> str:
        return flatten(check_text(name))

    _check_content = field_validator("content")(check_content)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """Category, topic, project, group, tags, and `ITEM` for an item."""
        named: tuple[Facet, ...] = (("topic", self.topic),) if self.topic else ()
        if self.project:
            named = (*named, (PROJECT, self.project))
        return ("category", self.category), *named, *group_facets(self.belongs_to), *super().facets

    @property
    def belongs_to(self) -> str:
        """The group, or empty; items of earlier versions have it in `metadata`."""
        return self.group or (str(self.metadata.get(GROUP, "")) if self.is_item else "")


def _build_view(memory: Memory) -> dict[str, Any]:
    head = {"id": memory.id, "content": memory.content, "category": memory.category, "tags": list(memory.tags)}
    if memory.project:
        head[PROJECT] = memory.project
    return head | offered_values(memory)


MEMORY: Final = Kind(
    name="memory", model=Memory, prefix="mem-", journal="memories.yaml", text="content", view=_build_view
)


MAX_ACT_IDS: Final = 100
"""Memories of one proposed act."""


class Candidate(Memory):
    """Memory that waits for a yes; no search finds it.

    Attributes:
        via: Source of the candidate: capture, the model by a tool, or an import.
        rule: Rule of capture that found it.
        replaces: Memory that it would supersede.
        is_note: True for a waiting note, captured without a cue; False if the mode `ask` requires a yes.
        waits_since: Moment of a restore, from which its waiting time is counted.
        act: Act that a session was refused without a yes; empty for a memory to store.
        act_ids: Memories that it forgets or changes.
        act_values: Fields that it stores or changes.
        batch: ID of the import that it came with; such a candidate waits without a limit.
    """

    id: CandidateId = Field(default_factory=lambda: new_id("cnd-"))
    supersedes: CandidateId | None = None
    via: Literal["capture", "tool", "import"] = "capture"
    rule: str = Field(default="", max_length=100)
    replaces: MemoryId | None = None
    is_note: bool = False
    waits_since: UtcDatetime | None = None
    act: Literal["", "forget", "store", "update"] = ""
    act_ids: list[MemoryId] = Field(default_factory=new_list, max_length=MAX_ACT_IDS)
    act_values: dict[str, JsonValue] = Field(default_factory=dict)
    batch: str = Field(default="", max_length=MAX_GROUP_CHARS)

    @classmethod
    def of(cls, memory: Memory, **fields: object) -> Candidate:
        """Return a memory as a candidate with a new ID."""
        values = memory.model_dump(exclude={"id", "supersedes"})
        return cls.model_validate({**values, "replaces": memory.supersedes, **fields})

    def wanted(self) -> dict[str, Any]:
        """Return the fields of the future memory, without ID and time."""
        excluded = {*_INBOX_FIELDS, "id", "agent_id", "timestamp", "supersedes"}
        values = self.model_dump(exclude=excluded, exclude_defaults=True)
        if self.observed_at is None:
            values["observed_at"] = self.timestamp
        return values | ({} if self.replaces is None else {"supersedes": self.replaces})

    def is_over(self, now: datetime, waiting_time: timedelta) -> bool:
        """Return True if it expired or waited too long for a yes."""
        return self.is_expired(now) or (not self.is_note and self._has_waited(now, waiting_time))

    def is_archived(self, now: datetime, waiting_time: timedelta) -> bool:
        """Return True for a note that waited its full time."""
        return self.is_note and self._has_waited(now, waiting_time)

    def _has_waited(self, now: datetime, waiting_time: timedelta) -> bool:
        return not self.batch and (self.waits_since or self.timestamp) + waiting_time <= now


_INBOX_FIELDS: Final = set(Candidate.model_fields) - set(Memory.model_fields)


PASTED: Final = "pasted"
"""Detail of the source of a text in a user's message that another may have written."""
CANDIDATE: Final = Kind(
    name="candidate", model=Candidate, prefix="cnd-", journal="inbox.yaml", text="content", read_ahead=False,
    withdraw="agent_memory.memory.inbox_access:InboxWithdrawal",
)  # fmt: skip


class Observation(BaseModel):
    """A sentence of a conversation that may become a memory.

    Attributes:
        content: Sentence as it was said.
        category: Category of the memory to be.
        confidence: Certainty of the rule, 0 to 1.
        cue: Class of the user's explicit words (memory, standing, decision, identity, custom), or `sure`; without one
            it waits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    category: Category
    confidence: Fraction
    source: Source = Source(kind="user")
    origin: OriginText = ""
    trust: Trust = "medium"
    tags: list[str] = Field(default_factory=new_list)
    rule: str = ""
    cue: str = ""
    expires_at: UtcDatetime | None = None
    session_id: str = ""
    observed_at: UtcDatetime | None = None


class Scratchpad(BaseModel):
    """Memories at the start of a session, pinned ones first."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    agent_id: str
    entries: list[Memory] = Field(default_factory=new_list)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, memory_id: object) -> bool:
        return any(entry.id == memory_id for entry in self.entries)

    def ids(self) -> Iterator[str]:
        """Yield the IDs in order."""
        return (entry.id for entry in self.entries)

    def without(self, removed_ids: Collection[str]) -> Scratchpad:
        """Return a copy without these memories."""
        return self.model_copy(update={"entries": [entry for entry in self.entries if entry.id not in removed_ids]})

    def search_keywords(self, query: str) -> list[Memory]:
        """Return entries with any word of a query, most words first.

        The last resort when storage fails.
        """
        words = {word for word in query.casefold().split() if word}
        scored = [(sum(word in entry.content.casefold() for word in words), entry) for entry in self.entries]
        return [entry for hits, entry in sorted(scored, key=lambda pair: -pair[0]) if hits]


class PlacedItem(NamedTuple):
    """An item with its places in documents and turns.

    Attributes:
        id: ID of the item.
        detail: `source.detail` of the item.
        sources: IDs of the documents and turns, the first one first.
        metadata: Metadata of the item.
    """

    id: str
    detail: str
    sources: Sequence[str]
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, memory: Memory) -> PlacedItem:
        """Return a memory as a placed item."""
        detail = memory.source.detail if memory.is_item else ""
        return cls(memory.id, detail or "", [link.id for link in memory.links if link.rel == FROM], memory.metadata)

    def get_place(self, source_id: str) -> tuple[int, int] | None:
        """Return the place of the item's words in a source, or None."""
        places = self.metadata.get(ALSO)
        place = places.get(source_id) if isinstance(places, dict) else None
        if place is None and self.sources[:1] == [source_id]:
            place = self.metadata.get("at")
        match place:
            case [int(begin), int(end)]:
                return begin, end
        return None

    def follows(self, passage: PlacedItem) -> bool:
        """Return True if this statement names a passage, or quotes it."""
        if self.detail != DIGEST or passage.detail != PASSAGE:
            return False
        return self.metadata.get(PASSAGE) == passage.id or any(
            (quote := self.get_place(source)) is not None
            and (place := passage.get_place(source)) is not None
            and place[0] <= quote[0] <= quote[1] <= place[1]
            for source in self.sources
        )


def get_statement_id(group: str, trust: Trust, origin_id: str, text: str) -> str:
    """Return the ID of a statement.

    Args:
        group: Group of the passage, empty for none.
        trust: Trust of the statement.
        origin_id: ID of the passage; in statements of earlier versions that of the document or turn.
        text: Words of the statement.
    """
    return derived_id(MEMORY.prefix, DIGEST, group, trust, origin_id, get_duplicate_key(text))


def is_as_stated(memory: Memory) -> bool:
    """Return True if a statement has its first words and trust."""
    origins = (str(memory.metadata.get(PASSAGE, "")), *PlacedItem.of(memory).sources)
    group, trust = memory.belongs_to, memory.trust
    return any(memory.id == get_statement_id(group, trust, origin, memory.content) for origin in origins)


def is_untouched_statement(memory: Memory) -> bool:
    """Return True if no person pinned, edited or decided about a statement."""
    is_decided = memory.promoted_at is not None or any(link.rel != FROM for link in memory.links)
    return memory.source.detail == DIGEST and is_as_stated(memory) and not memory.pinned and not is_decided
