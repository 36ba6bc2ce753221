"""Memories, observations that may become memories, and the scratchpad."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, field_validator

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.identifiers import new_memory_id
from agent_memory.models.kind import Kind
from agent_memory.models.record import (
    GROUP,
    MAX_GROUP_CHARS,
    Fraction,
    IdOf,
    Record,
    Source,
    Trust,
    group_facets,
    may_stand_for,
    offered_values,
)
from agent_memory.models.text import check_content, check_text, flatten

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from agent_memory.models.record import Facet

MAX_CONTENT_CHARS: Final = 10_000
MAX_PROJECT_CHARS: Final = 100
PROJECT: Final = "project"
"""Name of the facet of a project's memories."""
CHOSEN_NAMES: Final = frozenset({"category", "topic"})
"""Fields with a chosen name; without it a memory is an ordinary one, of no topic."""
CATEGORIES: Final = (
    "preference",
    "decision",
    "discovery",
    "pattern",
    "task",
    "bugfix",
    "note",
    "question",
    "insight",
)
"""Built-in categories: closed in the tools' schema, open in the journal."""

MemoryId = Annotated[str, IdOf("mem")]
Category = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


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


class Observation(BaseModel):
    """A sentence of a conversation that may become a memory.

    Attributes:
        content: Sentence as it was said.
        category: Category of the memory to be.
        confidence: Certainty of the rule, 0 to 1.
        cue: Class of the user's explicit words (memory, standing, decision, identity, custom); without one it waits.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    content: str = Field(min_length=1, max_length=MAX_CONTENT_CHARS)
    category: Category
    confidence: Fraction
    source: Source = Source(kind="user")
    trust: Trust = "medium"
    tags: list[str] = Field(default_factory=list)
    rule: str = ""
    cue: str = ""
    expires_at: UtcDatetime | None = None
    session_id: str = ""
    observed_at: UtcDatetime | None = None


class Scratchpad(BaseModel):
    """Memories at the start of a session: pinned first, then the most recent."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    agent_id: str
    entries: list[Memory] = Field(default_factory=list)

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
