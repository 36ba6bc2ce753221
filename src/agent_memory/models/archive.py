"""`Archived` and `TidyRun`: memories that were put away, each whole, and what was put away at once. Plain values."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field

from agent_memory.models.clock import UtcDatetime, utc_now
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind, R
from agent_memory.models.memory import Memory, MemoryId
from agent_memory.models.record import IdOf, Record, Value

MAX_WHY_CHARS: Final = 300
RunId = Annotated[str, IdOf("run")]
TidyAction = Literal["archive", "merge", "expire", "delete"]
"""What becomes of a memory: it goes to the archive because it is not used, because another one says the same, or
because its time is over; or it leaves the archive for good."""


class Archived(Memory):
    """A memory in the archive: all its fields as they were, and why and when it was put there.

    `merged_into` is the memory that says the same and stayed; `run` what put it there together with others.
    """

    archived_at: UtcDatetime = Field(default_factory=utc_now)
    rule: str = Field(default="", max_length=100)
    why: str = Field(default="", max_length=MAX_WHY_CHARS)
    run: RunId | None = None
    merged_into: MemoryId | None = None

    @classmethod
    def of(cls, memory: Memory, **said: object) -> Self:
        """Return a memory as the archive keeps it, with what is said of that."""
        return cls.model_validate({**memory.model_dump(), **said})

    @property
    def memory(self) -> Memory:
        """The memory as it was."""
        return Memory.model_validate(self.model_dump(exclude=_OWN))


_OWN: Final = set(Archived.model_fields) - set(Memory.model_fields)


class TidyEntry(Value):
    """What was done with one memory: `into` is the one that it was merged into, `tags` those that one got by it."""

    action: TidyAction
    id: MemoryId
    rule: str = Field(default="", max_length=100)
    into: MemoryId | None = None
    tags: list[str] = Field(default_factory=list)


class TidyRun(Record):
    """What was put away at once, so that all of it can be brought back: `begun`, `done` or `undone`."""

    said: str = Field(min_length=1, max_length=1000)
    state: Literal["begun", "done", "undone"] = "begun"
    entries: list[TidyEntry] = Field(default_factory=list)
    id: RunId = Field(default_factory=lambda: new_id("run-"))
    supersedes: RunId | None = None


def _both() -> tuple[Kind[Any], ...]:
    return ARCHIVED, TIDY_RUN


def _kind(name: str, model: type[R], prefix: str, text: str, **more: Any) -> Kind[R]:
    def beside() -> tuple[Kind[Any], ...]:
        return tuple(kind for kind in _both() if kind.name != name)

    own: dict[str, Any] = {"journal": "archive.yaml", "beside": beside, "read_ahead": False, **more}
    return Kind(name=name, model=model, prefix=prefix, text=text, **own)


ARCHIVED: Final[Kind[Archived]] = _kind("archived", Archived, "mem-", "content", prose=("why",))
TIDY_RUN: Final[Kind[TidyRun]] = _kind("tidy_run", TidyRun, "run-", "said")
