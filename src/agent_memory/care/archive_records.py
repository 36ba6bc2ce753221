"""Kinds of the archive: archived memories, and the runs that archived them."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field

from agent_memory.models.clock import UtcDatetime, utc_now
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind, R
from agent_memory.models.memory import Memory, MemoryId
from agent_memory.models.record import IdOf, Record, ValueModel, new_list

MAX_WHY_CHARS: Final = 300
RunId = Annotated[str, IdOf("run")]
TidyAction = Literal["archive", "merge", "expire", "delete"]
"""Action on a memory: archived because unused, a duplicate or expired; or deleted from the archive."""


class ArchivedMemory(Memory):
    """Memory in the archive, with all its fields.

    Attributes:
        archived_at: Moment of archiving.
        rule: Rule that archived it.
        why: Reason for people.
        run: Run that archived it with others, or None.
        merged_into: Duplicate that stayed active, or None.
    """

    archived_at: UtcDatetime = Field(default_factory=utc_now)
    rule: str = Field(default="", max_length=100)
    why: str = Field(default="", max_length=MAX_WHY_CHARS)
    run: RunId | None = None
    merged_into: MemoryId | None = None

    @classmethod
    def of(cls, memory: Memory, **fields: object) -> Self:
        """Return a memory in its archived form, with the archive's fields."""
        return cls.model_validate({**memory.model_dump(), **fields})

    @property
    def memory(self) -> Memory:
        """The memory before archiving."""
        return Memory.model_validate(self.model_dump(exclude=_ARCHIVE_FIELDS))


_ARCHIVE_FIELDS: Final = set(ArchivedMemory.model_fields) - set(Memory.model_fields)


class TidyEntry(ValueModel):
    """Action of a run on one memory.

    Attributes:
        action: Action on the memory.
        id: ID of the memory.
        rule: Rule of the action.
        into: Memory that it was merged into, or None.
        tags: Tags added to that memory.
    """

    action: TidyAction
    id: MemoryId
    rule: str = Field(default="", max_length=100)
    into: MemoryId | None = None
    tags: list[str] = Field(default_factory=new_list)


class TidyRun(Record):
    """Run that archived memories and can be undone."""

    said: str = Field(min_length=1, max_length=1000)
    state: Literal["begun", "done", "undone"] = "begun"
    entries: list[TidyEntry] = Field(default_factory=new_list)
    id: RunId = Field(default_factory=lambda: new_id("run-"))
    supersedes: RunId | None = None


def _make_kind(name: str, model: type[R], prefix: str, text: str, **fields: Any) -> Kind[R]:
    def get_neighbours() -> tuple[Kind[Any], ...]:
        return tuple(kind for kind in (ARCHIVED, TIDY_RUN) if kind.name != name)

    values: dict[str, Any] = {"journal": "archive.yaml", "beside": get_neighbours, "read_ahead": False, **fields}
    return Kind(name=name, model=model, prefix=prefix, text=text, **values)


ARCHIVED: Final[Kind[ArchivedMemory]] = _make_kind(
    "archived", ArchivedMemory, "mem-", "content", prose=("why",),
    withdraw="agent_memory.care.archive:ArchiveWithdrawal",
)  # fmt: skip
TIDY_RUN: Final[Kind[TidyRun]] = _make_kind("tidy_run", TidyRun, "run-", "said")
