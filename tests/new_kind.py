"""A kind of record that no file of the library knows: what is known of a person or a thing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from agent_memory.models import Clock, Kind, Record, utc_now
from agent_memory.models.record import IdOf
from agent_memory.settings import ServiceSettings
from agent_memory.storage import folder_of
from agent_memory.store.memory_storage import Files
from agent_memory.store.record_storage import RecordStorage

if TYPE_CHECKING:
    from pathlib import Path


class Thing(Record):
    """A person or a thing, and what is known of it."""

    said: str = Field(min_length=1)
    name: str = Field(default="", max_length=200)
    id: Annotated[str, IdOf("thi")] = Field(
        default_factory=lambda: THING.new_id()  # noqa: PLW0108 - it comes later
    )


THING = Kind(
    name="thing", model=Thing, prefix="thi-", journal="things.yaml", text="said",
    checks=lambda thing: [] if thing.name else ["it has no name"],
)  # fmt: skip


def open_things(root: Path, clock: Clock = utc_now, embedder: Any = None, **settings: Any) -> RecordStorage[Thing]:
    """Return bob's things."""
    files = Files(THING, folder_of("bob", root), ServiceSettings(**{"embedder": "none", **settings}), clock, embedder)
    return RecordStorage(files.backend())
