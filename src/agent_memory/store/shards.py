"""Shards of an agent's index on disk, and the switch `metadata.json`.

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
    read_signature,
    replace_file,
    sync_folder,
    sync_tree,
    translated,
)
from agent_memory.files.concerns import Concern, is_begun
from agent_memory.files.entries import get_disk_size, get_path_type
from agent_memory.files.lock import folder_lock, index_lock
from agent_memory.files.names import BUILD_LOCK, HOLDER_LOCK, UNFINISHED
from agent_memory.models import describe
from agent_memory.registry import ENGINES
from agent_memory.settings import OPENAI_DIMENSIONS, ServiceSettings
from agent_memory.settings.installation import Part, advice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

FORMAT: Final = 3
"""Format of a shard's folder; a shard of another format is rebuilt."""
ENGINE: Final = "qdrant-edge 0.9"
SCHEMA: Final = 1
_SHARD: Final = re.compile(r"[0-9a-f]{12}")
_SHARD_KEY: Final = "generation"  # so older versions find the shard; the journal's generation is something else
_SWEEP_SECONDS: Final = 1.0
"""Seconds that a build waits for a sweep: removing an index of 100,000 memories takes a tenth of it."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """Sources of a shard; a file in its folder.

    Attributes:
        embedder: Identity of the embedder.
        dimension: Numbers in a vector.
        journal: Generation of the journal.
        seq: Number up to which the shard has every change of the journal; it may have later ones, too.
        engine: Name and version of the engine.
        format: Format of the folder.
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
        """Return (backend, shard) in use; `file` and None without a readable switch.

        Costs one `stat` unless the file changed.
        """
        note = self._note()
        shard = note.get(_SHARD_KEY)
        if note.get("backend") != "vector" or not isinstance(shard, str) or not _is_name(shard):
            return ("vector" if note.get("backend") == "vector" else "file"), None
        return "vector", shard

    def switch(self, backend: str, shard: str | None, embedder: str | None = None) -> None:
        """Change the backend and the shard in use, atomically and durably.

        Raises:
            StorageError: It is as it was.
        """
        self._change_note({"backend": backend, _SHARD_KEY: shard, "embedder": embedder}, durable=True)

    def note(self) -> dict[str, Any] | None:
        """Return the content of `metadata.json`; None if it is missing or unreadable."""
        return read_json(self._folder.metadata)

    @property
    def is_begun(self) -> bool:
        """True if a begun migration has neither ended nor failed."""
        return self._note().get("migration") == "begun"

    def note_begun(self, *, begun: bool) -> None:
        """Record that a migration has begun or ended.

        Raises:
            StorageError: It could not be recorded.
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

    def get_path(self, shard: str) -> Path:
        """Return the folder of the engine's files of a shard."""
        return self.path / shard / "shard"

    def state(self, shard: str) -> ShardState | None:
        """Return the sources of a shard.

        None if it is missing, damaged or of another format or engine.
        """
        note = read_json(self.path / shard / "state.json") or {}
        try:
            state = ShardState(**{key: note[key] for key in ShardState.__slots__ if key in note})
        except TypeError:
            return None
        is_current = state.format == FORMAT and state.engine == ENGINE and self.get_path(shard).is_dir()
        is_sound = isinstance(state.seq, int) and isinstance(state.dimension, int)
        return state if is_current and is_sound else None

    @contextlib.contextmanager
    def building(self) -> Iterator[tuple[str, Path]]:
        """Lock builds; yield a new shard's name and unfinished folder.

        Without `finish` the folder is deleted when the block ends, or when the next build begins.

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
        """Make a complete build a shard; `switch` takes it into use.

        Raises:
            StorageError: It is not a shard.
        """
        path = unfinished / "state.json"
        with translated(path, "write"):
            replace_file(path, json.dumps(asdict(state), indent=2).encode() + b"\n", durable=True)
        with translated(unfinished, "rename"):
            sync_tree(unfinished)  # the engine syncs no names; a shard with missing files might open, and find nothing
            unfinished.rename(self.path / shard)
            sync_folder(self.path)

    def sweep(self) -> None:
        """Remove unused shards that no process holds, unless a build is running.

        Shards that cannot be removed now stay until the next sweep.

        Raises:
            StorageError: The folder cannot be locked.
        """
        if self._list_unused():
            with contextlib.suppress(BusyError), index_lock(self.path / BUILD_LOCK, "remove"):
                self.remove_unused()

    def remove_unused(self) -> None:
        """As `sweep`, for a process that builds."""
        for path in self._list_unused():
            if not path.name.startswith(UNFINISHED):
                with contextlib.suppress(StorageError), index_lock(path / HOLDER_LOCK, "remove"):
                    shutil.rmtree(path, ignore_errors=True)
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:  # another program made it, and opening a pipe would wait for its other end
                with contextlib.suppress(OSError):
                    path.unlink()

    def _list_unused(self) -> list[Path]:
        """Return unfinished builds and unused shards; mostly there are none."""
        if self.path.is_symlink() or not self.path.is_dir():  # the target of a link is not ours to remove
            return []
        in_use = self.active()[1]
        is_known = "backend" in self._note()  # an unreadable switch does not say which shard is in use
        with translated(self.path, "list"):
            return [
                path
                for path in self.path.iterdir()
                if path.name.startswith(UNFINISHED)
                or (is_known and _is_name(path.name) and path.name != in_use and path.is_dir())
            ]

    def _note(self) -> dict[str, Any]:
        seen = read_signature(self._folder.metadata)
        if seen is None:
            return {}
        if self._seen is None or self._seen[0] != seen:
            self._seen = (seen, (self.note() or {}))
        return self._seen[1]


def describe_folder(folder: AgentFolder) -> None:
    """Write `metadata.json` for people and other versions, if it is missing.

    It is derived, so a failure costs nothing.
    """
    with contextlib.suppress(OSError):
        if not folder.metadata.exists():
            note = {"schema": SCHEMA, "backend": "file", "journal": folder.journal.name}
            replace_file(folder.metadata, json.dumps(note, indent=2).encode() + b"\n", durable=False)


def roll_back(folder: AgentFolder) -> bool:
    """Answer from the files alone; return True if that is new.

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
    """Return True if a text can name a shard's folder.

    A person may have edited the switch.
    """
    return _SHARD.fullmatch(shard) is not None


ENGINE_PACKAGE: Final = "qdrant_edge"
"""Package of the vector engine."""


def is_installed() -> bool:
    """Return True if the vector engine can be loaded; loads nothing."""
    return ENGINES.is_installed and find_spec(ENGINE_PACKAGE) is not None


def with_model(settings: ServiceSettings | None, model: str | None) -> ServiceSettings | None:
    """Return settings with another embedding model.

    A name of OpenAI's, or the name or folder of a local model; None changes nothing.

    Raises:
        ConfigurationError: No such model.
    """
    if model is None:
        return settings
    values = (settings or ServiceSettings()).model_dump(exclude_unset=True)
    embedder = "openai" if model in OPENAI_DIMENSIONS else "local"
    try:
        return ServiceSettings(**{**values, "embedder": embedder, "embedding_model": model})
    except pydantic.ValidationError as error:
        raise ConfigurationError(describe(error)) from None


def can_grow(settings: ServiceSettings) -> bool:
    """Return True if engine, embedder and vector cache are available."""
    return settings.enable_caching and is_installed() and make_embedder(settings) is not None


def cannot_migrate_error(settings: ServiceSettings) -> ConfigurationError:
    """Return the error with the reasons against a migration."""
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
    """Return the error that names what the vector backend lacks."""
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


def report_metadata(folder: AgentFolder) -> Iterator[Concern]:
    """Report on `metadata.json`, unless an agent has neither it nor a journal."""
    note = Shards(folder).note()
    if note is not None and note.get("backend") in ("file", "vector", None):
        words = "the vector engine and the files" if note.get("backend") == "vector" else "the files"
        embedder = f"; vectors of {note['embedder']}" if isinstance(note.get("embedder"), str) else ""
        yield Concern("metadata", f"Searches are answered from {words}{embedder}.", size=get_disk_size(folder.metadata))
    elif get_path_type(folder.metadata) != "missing":
        yield Concern(
            "metadata_broken",
            "metadata.json cannot be read, so searches are answered from the files even if there is an index.",
            "`agent-memory doctor --repair` writes it anew from what lies there.",
            get_disk_size(folder.metadata),
        )
    elif is_begun(folder):
        yield Concern("metadata_none", "There is no metadata.json; searches are answered from the files.")
