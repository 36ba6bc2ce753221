"""Shards of an agent's index on disk, and `metadata.json`, which says which one is in use.

A shard is built in a folder of its own and renamed when it is complete; then one rename replaces `metadata.json`. So
an index is either complete or absent; the journal needs neither. What is in a shard belongs to the engine.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import uuid
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.embeddings import EmbeddingService, get_provider, make_embedder
from agent_memory.errors import BusyError, ConfigurationError, StorageError
from agent_memory.files.atomic import (
    make_private_folder,
    read_json,
    replace_file,
    signature,
    sync_folder,
    sync_tree,
    translated,
)
from agent_memory.files.concerns import Concern, is_begun
from agent_memory.files.entries import get_lock_state, kind_of, names_in, size_of
from agent_memory.files.lock import folder_lock, index_lock
from agent_memory.files.names import BUILD_LOCK, HOLDER_LOCK, UNFINISHED
from agent_memory.models import describe
from agent_memory.registry import ENGINES
from agent_memory.settings import OPENAI_DIMENSIONS, ServiceSettings
from agent_memory.settings.installation import Part, advice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.files.entries import LockState, PathType
    from agent_memory.files.layout import AgentFolder

FORMAT: Final = 3
"""Of a shard's folder; one of another format is built anew."""
ENGINE: Final = "qdrant-edge 0.9"
SCHEMA: Final = 1
_SHARD: Final = re.compile(r"[0-9a-f]{12}")
_SHARD_KEY: Final = "generation"  # so older versions find the shard; the journal's generation is something else
_SWEEP_SECONDS: Final = 1.0
"""What a build waits for a process that sweeps: removing an index of 100,000 memories takes a tenth of it."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """What a shard was made of; a file in its folder.

    Attributes:
        embedder: Identity of the embedder.
        dimension: Numbers in a vector.
        journal: Generation of the journal, and
        seq: sequence number, up to which the shard holds every change. Later ones may be in it as well.
        engine: Name and version of the engine.
        format: Of the folder.
    """

    embedder: str
    dimension: int
    journal: str
    seq: int
    engine: str = ENGINE
    format: int = FORMAT


class Shards:
    """The index folder of one agent.

    Args:
        folder: The agent's folder. Nothing is created before a build.
    """

    def __init__(self, folder: AgentFolder) -> None:
        self._folder = folder
        self.path = folder.index
        self._seen: tuple[tuple[int, int, int], dict[str, Any]] | None = None

    # -- the switch ---------------------------------------------------------------------------------------------------

    def active(self) -> tuple[str, str | None]:
        """Return (backend, shard) as the switch stands; `file` and None where there is none or it is unreadable.

        Costs a look at the file's date unless it changed.
        """
        note = self._note()
        shard = note.get(_SHARD_KEY)
        if note.get("backend") != "vector" or not isinstance(shard, str) or not _is_name(shard):
            return ("vector" if note.get("backend") == "vector" else "file"), None
        return "vector", shard

    def switch(self, backend: str, shard: str | None, embedder: str | None = None) -> None:
        """Change the backend and the shard in use, durably: a reader sees the old state or the new one.

        Raises:
            StorageError: It is as it was.
        """
        self._change_note({"backend": backend, _SHARD_KEY: shard, "embedder": embedder}, durable=True)

    def note(self) -> dict[str, Any] | None:
        """Return what stands in `metadata.json`; None if there is no such file, or it cannot be read."""
        return read_json(self._folder.metadata)

    @property
    def is_begun(self) -> bool:
        """Whether a migration was begun that has neither ended nor failed, in whatever session."""
        return self._note().get("migration") == "begun"

    def note_begun(self, *, begun: bool) -> None:
        """Note that a migration has begun, or has come to an end.

        Raises:
            StorageError: It could not be noted.
        """
        if begun != self.is_begun:
            self._change_note({"migration": "begun" if begun else None}, durable=False)

    def _change_note(self, changes: dict[str, str | None], *, durable: bool) -> None:
        make_private_folder(self._folder.path)
        with folder_lock(self._folder.path), translated(self._folder.metadata, "write"):
            note = {"schema": SCHEMA, "journal": self._folder.journal.name, **(self.note() or {}), **changes}
            note = {key: value for key, value in note.items() if value is not None}
            replace_file(self._folder.metadata, json.dumps(note, indent=2).encode() + b"\n", durable=durable)
        self._seen = None

    # -- shards --------------------------------------------------------------------------------------------------

    def path_of(self, shard: str) -> Path:
        """Return the folder of a shard's files that are the engine's own."""
        return self.path / shard / "shard"

    def state(self, shard: str) -> ShardState | None:
        """Return what a shard was made of; None when it is missing, damaged or of another format or engine."""
        note = read_json(self.path / shard / "state.json") or {}
        try:
            state = ShardState(**{key: note[key] for key in ShardState.__slots__ if key in note})
        except TypeError:
            return None
        whole = state.format == FORMAT and state.engine == ENGINE and self.path_of(shard).is_dir()
        sound = isinstance(state.seq, int) and isinstance(state.dimension, int)
        return state if whole and sound else None

    @contextlib.contextmanager
    def building(self) -> Iterator[tuple[str, Path]]:
        """Hold the right to build, for the block, and yield a new shard's name and unfinished folder.

        Without `finish` the folder is gone when the block ends, or when the next build begins.

        Raises:
            BusyError: Another process is building.
            StorageError: The folder cannot be made.
        """
        make_private_folder(self.path)
        with index_lock(self.path / BUILD_LOCK, "build", _SWEEP_SECONDS):
            self.remove_unused()
            shard = uuid.uuid4().hex[:12]
            unfinished = self.path / f"{UNFINISHED}{shard}"
            make_private_folder(unfinished / "shard")
            try:
                yield shard, unfinished
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def finish(self, shard: str, unfinished: Path, state: ShardState) -> None:
        """Make a whole and closed build a shard; it is not in use before `switch`.

        Raises:
            StorageError: It is no shard.
        """
        path = unfinished / "state.json"
        with translated(path, "write"):
            replace_file(path, json.dumps(asdict(state), indent=2).encode() + b"\n", durable=True)
        with translated(unfinished, "rename"):
            sync_tree(unfinished)  # the engine leaves names unsynced; a shard full of gaps might open, and find nothing
            unfinished.rename(self.path / shard)
            sync_folder(self.path)

    def sweep(self) -> None:
        """Remove shards that are not in use and that no process holds, unless a build is under way.

        What cannot be removed now stays for the next time.

        Raises:
            StorageError: The folder cannot be locked.
        """
        if self._unused():
            with contextlib.suppress(BusyError), index_lock(self.path / BUILD_LOCK, "remove"):
                self.remove_unused()

    def remove_unused(self) -> None:
        """As `sweep`, for a process that builds."""
        for each in self._unused():
            if not each.name.startswith(UNFINISHED):
                with contextlib.suppress(StorageError), index_lock(each / HOLDER_LOCK, "remove"):
                    shutil.rmtree(each, ignore_errors=True)
            elif each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:  # no program of ours made it, and opening a pipe would wait for its other end
                with contextlib.suppress(OSError):
                    each.unlink()

    def _unused(self) -> list[Path]:
        """Return unfinished builds and shards that are not in use: asked at each start, and mostly there are none."""
        if self.path.is_symlink() or not self.path.is_dir():  # what lies behind a link is not ours to remove
            return []
        in_use = self.active()[1]
        is_known = "backend" in self._note()  # a switch that cannot be read does not say which shard is in use
        with translated(self.path, "list"):
            return [
                each
                for each in self.path.iterdir()
                if each.name.startswith(UNFINISHED)
                or (is_known and _is_name(each.name) and each.name != in_use and each.is_dir())
            ]

    def _note(self) -> dict[str, Any]:
        seen = signature(self._folder.metadata)
        if seen is None:
            return {}
        if self._seen is None or self._seen[0] != seen:
            self._seen = (seen, (self.note() or {}))
        return self._seen[1]


def describe_folder(folder: AgentFolder) -> None:
    """Leave a note for people and other versions, if there is none; derived, so a failure costs nothing."""
    with contextlib.suppress(OSError):
        if not folder.metadata.exists():
            note = {"schema": SCHEMA, "backend": "file", "journal": folder.journal.name}
            replace_file(folder.metadata, json.dumps(note, indent=2).encode() + b"\n", durable=False)


def roll_back(folder: AgentFolder) -> bool:
    """Answer from the files alone from now on; return True if searches did not before.

    Raises:
        StorageError: Nothing has changed.
    """
    shards = Shards(folder)
    if shards.active()[0] != "vector":
        return False
    shards.switch("file", None)
    shards.sweep()
    return True


def _is_name(shard: str) -> bool:
    """Tell whether this can name a shard's folder; the switch is a file, which a person may have edited."""
    return _SHARD.fullmatch(shard) is not None


ENGINE_PACKAGE: Final = "qdrant_edge"
"""Package of the vector engine."""


def is_installed() -> bool:
    """Return True if the vector engine can be loaded; loads nothing."""
    return ENGINES.is_installed and find_spec(ENGINE_PACKAGE) is not None


def with_model(settings: ServiceSettings | None, model: str | None) -> ServiceSettings | None:
    """Return settings with another embedding model: one of OpenAI's by its name, else a local one's name or folder.

    Raises:
        ConfigurationError: There is no such model.
    """
    if model is None:
        return settings
    given = (settings or ServiceSettings()).model_dump(exclude_unset=True)
    embedder = "openai" if model in OPENAI_DIMENSIONS else "local"
    try:
        return ServiceSettings(**{**given, "embedder": embedder, "embedding_model": model})
    except pydantic.ValidationError as error:
        raise ConfigurationError(describe(error)) from None


def can_grow(settings: ServiceSettings) -> bool:
    """Tell whether the vector engine and an embedder are there, and vectors may be kept in files."""
    return settings.enable_caching and is_installed() and make_embedder(settings) is not None


def cannot_migrate_error(settings: ServiceSettings) -> ConfigurationError:
    """Return the error that names what a memory in files lacks for being moved to the vector engine."""
    packages: list[Part] = [] if is_installed() else ["vector"]
    lacking = [] if is_installed() else ["the vector engine is not installed"]
    if settings.embedder == "none":
        lacking.append("the setting embedder is 'none'")
    elif make_embedder(settings) is None:
        packages += [part] if (part := get_provider(settings.embedder).part) else []
        lacking.append(f"the embedder {settings.embedder!r} is not installed")
    if not settings.enable_caching:
        lacking.append("the setting enable_caching is false")
    if settings.backend != "auto":
        lacking.append(f"the setting backend is {settings.backend!r}, not 'auto'")
    why = "; ".join(lacking) or "it was opened as a memory in files alone"
    return ConfigurationError(
        f"This memory cannot be moved to the vector engine: {why}.",
        code="cannot_migrate",
        recovery=advice(*packages) if packages else "Change that, then try again; until then the files are searched.",
    )


def no_engine_error(embeddings: EmbeddingService[Any]) -> ConfigurationError:
    """Return the error that says why there is no vector backend here."""
    if not is_installed():
        return ConfigurationError(
            "The vector backend needs a package that is not installed.",
            code="engine_missing",
            recovery=f"Set backend to 'file', or install it. {advice('vector')}",
        )
    return ConfigurationError(
        "The vector backend needs vectors, but there is no embedder.",
        code="no_embedder",
        recovery=f"Set embedder to 'local' or 'openai', or backend to 'file'. Now: {embeddings.describe()['reason']}",
    )


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
    builder: LockState
    holder: LockState
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
        get_lock_state(index / BUILD_LOCK),
        get_lock_state(index / (active or "") / HOLDER_LOCK),
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
