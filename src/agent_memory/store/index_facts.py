"""What lies in an agent's index folder, and what `metadata.json` says. Opens no index: that would write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.files.concerns import Concern, is_begun
from agent_memory.files.entries import kind_of, lock_at, names_in, size_of
from agent_memory.files.names import BUILD_LOCK, HOLDER_LOCK, UNFINISHED
from agent_memory.store.engine_requirements import is_installed
from agent_memory.store.shards import Shards

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.files.entries import Lock, PathType
    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.shards import ShardState


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What there is of indexes.

    Attributes:
        kind: What `memories.db` is.
        backend: What searches use: `file` or `vector`.
        active: The index in use, and what it was made of; None if there is none, or nothing usable.
        unfinished: Builds that have not come to an end.
        unused: Indexes that are not in use.
        builder, holder: How the locks of a build and of the index in use stand.
        is_installed: Whether the engine is.
    """

    kind: PathType
    backend: str
    active: str | None
    state: ShardState | None
    unfinished: list[Path]
    unused: dict[str, Path]
    builder: Lock
    holder: Lock
    is_installed: bool


def inspect_index(folder: AgentFolder) -> IndexFacts:
    """Return what there is of an agent's indexes."""
    index, shards = folder.index, Shards(folder)
    backend, active = shards.active()
    names = names_in(index) if kind_of(index) == "folder" else []
    whole = active is not None and names_in(index / active / "shard")
    return IndexFacts(
        kind_of(index),
        backend,
        active,
        shards.state(active) if active is not None and whole else None,
        [index / name for name in names if name.startswith(UNFINISHED)],
        {
            name: index / name
            for name in names
            if name.isalnum() and name != active and kind_of(index / name) == "folder"
        },
        lock_at(index / BUILD_LOCK),
        lock_at(index / (active or "") / HOLDER_LOCK),
        is_installed(),
    )


def of_metadata(folder: AgentFolder) -> Iterator[Concern]:
    """Report what `metadata.json` says; nothing about an agent that has neither a journal nor such a file."""
    note = Shards(folder).note()
    if note is not None and note.get("backend") in ("file", "vector", None):
        words = "the vector engine and the files" if note.get("backend") == "vector" else "the files"
        embedder = f"; vectors of {note['embedder']}" if isinstance(note.get("embedder"), str) else ""
        yield Concern("metadata", f"Searches are answered from {words}{embedder}.", size=size_of(folder.metadata))
    elif kind_of(folder.metadata) != "missing":
        yield Concern(
            "metadata_broken",
            "metadata.json cannot be read, so searches are answered from the files even if there is an index.",
            "`agent-memory doctor --repair` writes it anew from what lies there.",
            size_of(folder.metadata),
        )
    elif is_begun(folder):
        yield Concern("metadata_none", "There is no metadata.json; searches are answered from the files.")
