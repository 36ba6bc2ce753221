"""The folder of an agent: its paths, and checks of its place."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agent_memory.errors import ConfigurationError, StorageError, ValidationError
from agent_memory.files import names
from agent_memory.files.atomic import translated
from agent_memory.models.identifiers import DEFAULT_ROOT, MAX_PROJECT_CHARS, check_agent_id
from agent_memory.models.text import flatten

_HEADER: Final = b'--- {"journal":'


class _FolderPath:
    """A path in an agent's folder, by its name there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: AgentFolder, _: type[AgentFolder]) -> Path:
        return folder.path / self._name


@dataclass(frozen=True, slots=True)
class AgentFolder:
    """The files of one agent. Creating this object touches nothing on disk."""

    path: Path

    journal = _FolderPath(names.JOURNAL)
    """Journal of memories; other files are derived from journals."""
    scratchpad = _FolderPath(names.SCRATCHPAD)
    """Rendered view of the journal, which people may edit."""
    metadata = _FolderPath(names.METADATA)
    """Schema, backend and, after a migration, the name of the current shard."""
    vectors = _FolderPath(names.VECTORS)
    """Derived: embeddings by content hash."""
    index = _FolderPath(names.INDEX)
    """Derived: shards of the vector engine."""
    shortlist = _FolderPath(names.SHORTLIST)
    """Derived: candidates of the scratchpad."""
    blobs = _FolderPath(names.BLOBS)
    """Texts that are too long for a journal line, each under its SHA-256."""
    topics = _FolderPath(names.TOPICS)
    """Pages of topics, which people may edit."""
    lock = _FolderPath(names.LOCK)
    """Locked by the process that writes."""
    tasks = _FolderPath(names.TASKS)
    """Journal of the progress of background work."""
    tasks_lock = _FolderPath(names.TASKS_LOCK)
    """Locked by the process that does background work."""
    audit = _FolderPath(names.AUDIT)
    """Log of changes: IDs and kinds, no content."""

    @property
    def agent_id(self) -> str:
        """ID of the agent: the folder's name."""
        return self.path.name

    def segments(self, kind: str) -> Path:
        """Return the folder of derived segments of one kind."""
        return self.path / names.DERIVED / kind

    def has_segments(self, kind: str) -> bool:
        """Return True if segments of a kind are listed."""
        return os.access(self.segments(kind) / names.SEGMENTS, os.F_OK)

    def journals(self) -> list[Path]:
        """Return the journals in the folder, that of memories first.

        Raises:
            OSError: The folder cannot be listed.
        """
        paths = sorted(path for path in self.path.iterdir() if names.may_be_journal(path.name))
        other_journals = [path for path in paths if path != self.journal and _begins_journal(path)]
        return [*([self.journal] if self.journal in paths else []), *other_journals]

    def list_pages(self) -> list[Path]:
        """Return the files of topics; none behind a link."""
        is_folder = self.topics.is_dir() and not self.topics.is_symlink()
        return sorted(self.topics.glob("*.md")) if is_folder else []

    def look_where(self) -> None:
        """Check that the folder does not link to a forbidden place.

        Raises:
            StorageError: It is a link that leads out of the storage root, or to the memories of another agent.
        """
        if not self.path.is_symlink():
            return
        root, target = self.path.parent, _resolve_links(self.path)
        if not target.is_relative_to(root):
            raise StorageError(
                f"The folder of agent {self.agent_id!r} is a link that leads out of the storage root.",
                code="outside_root",
                recovery="Replace the link by a folder, or set storage_root to where the memories are.",
                path=self.path,
            )
        agent = target.relative_to(root).parts[:1]
        if agent and agent[0] != self.agent_id and is_agent_id(agent[0]):
            raise StorageError(
                f"The folder of agent {self.agent_id!r} is a link to that of agent {agent[0]!r}.",
                code="symlink",
                recovery=f"Use the name {agent[0]}, or replace the link by a copy of the folder.",
                path=self.path,
            )


def resolve_root(storage_root: str | Path) -> Path:
    """Return the storage root, with `~` expanded and links resolved.

    Raises:
        ConfigurationError: It cannot be made a path, for instance without a home to replace `~`.
        StorageError: It exists and is not a folder.
    """
    root = _expand_root(storage_root)
    with translated(root, "open"):
        root = _resolve_links(root)
        if root.exists() and not root.is_dir():
            raise StorageError(
                f"The storage root {root.name!r} is not a folder.",
                recovery="Set storage_root to a folder of its own.",
                path=root,
            )
    return root


def build_command(root: Path, *words: str) -> str:
    """Return an `agent-memory` command line that works on a storage root.

    Args:
        root: Folder of all agents; named by `--root` unless it is the default.
        words: Command and arguments, quoted where the shell needs it.
    """
    is_default = False
    with contextlib.suppress(ConfigurationError):  # no home, and so no default
        is_default = _resolve_links(root) == _resolve_links(_expand_root(DEFAULT_ROOT))
    return " ".join(["agent-memory", *words, *(() if is_default else ("--root", shlex.quote(str(root))))])


def folder_of(agent_id: str, storage_root: str | Path = DEFAULT_ROOT) -> AgentFolder:
    """Return an agent's folder, ignoring case if it exists.

    Raises:
        ValidationError: `agent_id` cannot name a folder.
        StorageError: The folder links out of the storage root or to another agent, or is not a folder.
    """
    check_agent_id(agent_id)
    root = resolve_root(storage_root)
    path = root / _existing_name(root, agent_id)
    with translated(path, "open"):
        AgentFolder(path).look_where()
        usable = not path.exists() or path.is_dir()
    if not usable:
        raise StorageError(f"The folder of agent {agent_id!r} is a file.", recovery="Move that file away.", path=path)
    if path.is_symlink() and not path.exists():
        raise StorageError(
            f"The folder of agent {agent_id!r} is a link to nowhere.",
            code="symlink",
            recovery="Restore its target (is a disk not mounted?), or remove the link.",
            path=path,
        )
    return AgentFolder(path)


def agents_under(root: Path) -> list[str]:
    """Return the sorted names of agents with a present or missing journal.

    Empty if `root` does not exist.

    Raises:
        StorageError: The folder cannot be listed.
    """
    with translated(root, "list"):
        entries = sorted(root.iterdir()) if root.is_dir() else []
        return [entry.name for entry in entries if is_agent_id(entry.name) and _has_journal(AgentFolder(entry))]


def read_used_agent(root: Path) -> str:
    """Return the agent that `agents use` chose under `root`, or ""."""
    try:
        return (root / names.USED_AGENT).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def find_memory(path: Path) -> Path | None:
    """Return the agent's folder at or above a path, or None.

    Args:
        path: Resolved path of a file or folder.
    """
    return next((folder for folder in (path, *path.parents) if _is_memory(folder)), None)


def remove_derived(folder: AgentFolder) -> bool:
    """Remove segments and vector index; return True if there were any.

    Raises:
        StorageError: They could not be removed.
    """
    is_removed = False
    for name in (names.DERIVED, names.INDEX):
        path = folder.path / name
        with translated(path, "remove"):
            if path.is_symlink():
                path.unlink()
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                continue
            is_removed = True
    return is_removed


def is_agent_id(name: str) -> bool:
    """Return True if an agent's folder can have this name."""
    try:
        check_agent_id(name)
    except ValidationError:
        return False
    return True


def _is_memory(folder: Path) -> bool:
    """Return True if a folder is an agent's, by its journal."""
    try:
        is_named = (folder / names.AGENT).is_file() and bool(AgentFolder(folder).journals())
        return is_named or _begins_journal(folder / names.JOURNAL)
    except OSError:  # it cannot be listed, and so not ingested
        return False


def _has_journal(folder: AgentFolder) -> bool:
    if folder.journal.exists() or (folder.path / names.AGENT).exists():
        return True
    try:
        return bool(folder.journals())
    except OSError:  # no folder, or none of ours
        return False


def _begins_journal(path: Path) -> bool:
    """Return True if a file begins like a journal."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER


def _expand_root(storage_root: str | Path) -> Path:
    text = str(storage_root)
    try:
        root = Path(storage_root).expanduser()
        usable = b"\0" not in os.fsencode(root)
    except (RuntimeError, ValueError):  # no home is known; characters that no name of a file has in this locale
        root, usable = Path(), False
    if text.startswith("~") and not Path(os.environ.get("HOME", "/")).is_absolute():
        usable = False
    if not usable:
        raise ConfigurationError(
            f"The storage root {text[:80]!r} is not a valid path on this system.",
            code="storage_root",
            recovery="Set storage_root to a folder by its whole path, or HOME to your home.",
        )
    return root


def _resolve_links(path: Path) -> Path:
    """Resolve links; unlike `Path.resolve` before 3.13, loops are not an error."""
    return Path(os.path.realpath(path))


def _existing_name(root: Path, agent_id: str) -> str:
    """Return the name on disk: agent names ignore case."""
    with translated(root, "list"):
        if (root / agent_id).exists():
            return agent_id
        present = [entry.name for entry in root.iterdir()] if root.is_dir() else []
    return next((name for name in sorted(present) if name.lower() == agent_id.lower()), agent_id)


def find_project_root(folder: Path) -> Path | None:
    """Return the repository around a folder, else the folder itself.

    None for the home of a person, for the folders around it, and for a path that is a loop of links.
    """
    try:
        place, home = folder.expanduser().resolve(), Path.home().resolve()
        around = {home, *home.parents}
        for parent in (place, *place.parents):
            if parent not in around and (parent / ".git").exists():
                return parent
    except (OSError, RuntimeError):
        return None
    return None if place in around else place


def find_project_name(folder: Path | None) -> str:
    """Return the name of a folder's repository, else the folder's own.

    Empty for a user's home, the folders around it, and the root of the file system.
    """
    root = find_project_root(folder) if folder is not None else None
    return "" if root is None else flatten(root.name)[:MAX_PROJECT_CHARS]
