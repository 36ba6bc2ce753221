"""Facts about the indexes, the scratchpad file and the audit log of an agent."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agent_memory.errors import ValidationError
from agent_memory.files.entries import get_lock_state, get_path_type, names_in, read_regular
from agent_memory.files.names import (
    BUILD_LOCK,
    HOLDER_LOCK,
    UNFINISHED,
)
from agent_memory.memory.events import list_audit_files
from agent_memory.memory.scratchpad_file import parse_entries, read_edits
from agent_memory.store.shards import Shards, is_installed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.files.entries import LockState, PathType
    from agent_memory.files.layout import AgentFolder
    from agent_memory.store.shards import ShardState


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """Files of an agent's indexes.

    Attributes:
        kind: Type of the path `memories.db`.
        backend: Backend of searches: `file` or `vector`.
        active: Name of the index in use, or None.
        state: Sources of the index in use; None if there is none, or it is unusable.
        unfinished: Folders of unfinished builds.
        unused: Folders of unused indexes by name.
        builder: State of the lock of builds.
        holder: State of the lock of the index in use.
        is_installed: True if the engine is installed.
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
    """Return facts about an agent's indexes; opens none, since that would write."""
    index, shards = folder.index, Shards(folder)
    backend, active = shards.active()
    names = names_in(index) if get_path_type(index) == "folder" else []
    has_files = active is not None and names_in(index / active / "shard")
    return IndexFacts(
        get_path_type(index),
        backend,
        active,
        shards.state(active) if active is not None and has_files else None,
        [index / name for name in names if name.startswith(UNFINISHED)],
        {
            name: index / name
            for name in names
            if name.isalnum() and name != active and get_path_type(index / name) == "folder"
        },
        get_lock_state(index / BUILD_LOCK),
        get_lock_state(index / (active or "") / HOLDER_LOCK),
        is_installed(),
    )


@dataclass(frozen=True, slots=True)
class PadFacts:
    """State of scratchpad.yaml.

    Attributes:
        state: `broken`: unreadable; `edited`: has edits that were not applied yet.
        entries: Number of entries in the file.
        problem: Why it cannot be read.
    """

    state: Literal["missing", "broken", "edited", "stale", "current"]
    entries: int = 0
    problem: str = ""


def inspect_pad(path: Path, size: int, rendered: Callable[[int], str], *, is_empty: bool) -> PadFacts:
    """Compare a scratchpad file with what it should show; takes no lock.

    Args:
        path: Path of the file.
        size: Maximum number of entries.
        rendered: Returns the right text of the file for a number of entries.
        is_empty: True if there is no memory, so that no entry is right.
    """
    if get_path_type(path, follow=True) == "missing":
        return PadFacts("missing")
    try:
        text = read_regular(path).decode("utf-8", "surrogateescape")
        if read_edits(text):
            return PadFacts("edited")
    except ValidationError as error:
        return PadFacts("broken", problem=error.message)
    except OSError as error:
        return PadFacts("broken", problem=f"{path.name} cannot be read: {error}.")
    shown = len(parse_entries(text))
    # A session may have other limits than ours: a full pad is compared with as many entries as it has.
    is_current = text in {rendered(size), rendered(max(1, shown))} or (not shown and is_empty)
    return PadFacts("current" if is_current else "stale", shown)


def inspect_audit(path: Path) -> tuple[int, int]:
    """Return the numbers of logged changes and of unreadable lines."""
    lines: list[bytes] = []
    for file in list_audit_files(path):
        with contextlib.suppress(OSError):
            lines += [line for line in read_regular(file, follow=False).split(b"\n") if line.strip()]
    good = bad = 0
    for line in lines:
        try:
            good += isinstance(json.loads(line), dict)
        except (ValueError, RecursionError):
            bad += 1
    return good, bad
