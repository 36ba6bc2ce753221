"""`Memory`: one thing an agent knows, and the value that says what it is to every layer below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, field_validator

from agent_memory.models.document import GROUP, group_facets
from agent_memory.models.fields import offered_values
from agent_memory.models.identifiers import new_memory_id
from agent_memory.models.kind import Kind
from agent_memory.models.record import MAX_GROUP_CHARS, IdOf, Record, may_stand_for
from agent_memory.models.text import check_text, visible

if TYPE_CHECKING:
    from agent_memory.models.document import Facet

MAX_CONTENT_CHARS: Final = 10_000
MAX_PROJECT_CHARS: Final = 100
PROJECT: Final = "project"
"""Name of the facet of what belongs to a project."""
CHOSEN_NAMES: Final = frozenset({"category", "topic"})
"""Fields with a name that somebody chose, and without which a memory is a common one, of no topic."""
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
    """Tell whether a record belongs to a project, and not to this one; to an empty one all are alike."""
    own = memory.project if isinstance(memory, Memory) else ""
    return bool(project and own and own.casefold() != project.casefold())


def may_conflict(newer: Record, older: Record) -> bool:
    """Return True if a record may conflict with an older one.

    Not across projects or groups, and not against higher trust.
    """
    groups = {record.belongs_to for record in (newer, older) if isinstance(record, Memory)} - {""}
    is_elsewhere = isinstance(newer, Memory) and of_another_project(older, newer.project)
    return len(groups) <= 1 and not is_elsewhere and may_stand_for(newer.trust, older.trust)


class Memory(Record):
    """One thing an agent knows.

    Immutable: change it through the service (or `MemoryStorage.update`), which writes the journal.
    `agent_id` is the folder the memory lies in; it is not part of the journal's record.
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
    def _project(cls, name: str) -> str:
        return " ".join(visible(check_text(name)).split())

    @field_validator("content")
    @classmethod
    def _text(cls, content: str) -> str:
        if not check_text(content).strip():
            raise ValueError("content is only white space")
        return content

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The category, the topic, the project, the group, the tags, and `ITEM` where it is one."""
        own: tuple[Facet, ...] = (("topic", self.topic),) if self.topic else ()
        if self.project:
            own = (*own, (PROJECT, self.project))
        return ("category", self.category), *own, *group_facets(self.belongs_to), *super().facets

    @property
    def belongs_to(self) -> str:
        """The group it belongs to, empty for none; of items of before the field it stands in `metadata`."""
        return self.group or (str(self.metadata.get(GROUP, "")) if self.is_item else "")


def _view(memory: Memory) -> dict[str, Any]:
    head = {"id": memory.id, "content": memory.content, "category": memory.category, "tags": list(memory.tags)}
    if memory.project:
        head[PROJECT] = memory.project
    return head | offered_values(memory)


MEMORY: Final = Kind(name="memory", model=Memory, prefix="mem-", journal="memories.yaml", text="content", view=_view)
