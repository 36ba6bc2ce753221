"""Ways to make the product lose what it acknowledged, which the judges here must find. Each is one line left out."""

from __future__ import annotations

import functools
import importlib
import os
import stat
from typing import TYPE_CHECKING, Any

from agent_memory.files import atomic
from agent_memory.journal.writer import JournalWriter

if TYPE_CHECKING:
    from collections.abc import Callable

    Put = Callable[[str, object], None]
    """Puts an object in the place that a dotted name tells, such as `monkeypatch.setattr`."""

_SYNCING = (
    "agent_memory.files.atomic",
    "agent_memory.journal.writer",
    "agent_memory.journal.salvage",
    "agent_memory.journal.rewrite",
    "agent_memory.memory.scratchpad_manager",
    "agent_memory.store.shards",
)


def replace(place: str, by: object) -> None:
    """Put an object in the place that a dotted name tells, for good."""
    owner, _, name = place.rpartition(".")
    try:
        target: Any = importlib.import_module(owner)
    except ModuleNotFoundError:
        module, _, kind = owner.rpartition(".")
        target = getattr(importlib.import_module(module), kind)
    setattr(target, name, by)


def no_file_sync(put: Put) -> None:
    """Never sync a file; folders are."""

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.fsync(descriptor)

    _instead(put, "sync_file", sync)


def no_folder_sync(put: Put) -> None:
    """Never sync a folder after something in it was created or renamed."""
    _instead(put, "sync_folder", _nothing)


def no_sync(put: Put) -> None:
    """Never sync anything."""
    _instead(put, "sync_file", _nothing)
    _instead(put, "sync_folder", _nothing)


def acknowledged_first(put: Put) -> None:
    """Sync each line with the next one, after its acknowledgement."""
    real: Any = JournalWriter._write

    def write(writer: Any, content: bytes) -> None:
        os.fsync(writer.held.descriptor)
        real(writer, content)

    def close(writer: Any) -> None:
        writer._proof.secure_name(writer._reader.path, writer.held.descriptor)

    put(f"{JournalWriter.__module__}.JournalWriter._write", write)
    put(f"{JournalWriter.__module__}.JournalWriter.close", close)


def renamed_first(put: Put) -> None:
    """Put a new file in its place without syncing its bytes: the name may be on the disk before them."""

    def replaced(path: Any, content: Any, *, durable: bool, **options: Any) -> None:
        atomic.replace_file(path, content, durable=False, **options)
        if durable:
            atomic.sync_folder(path.parent)

    put("agent_memory.journal.writer.replace_file", replaced)
    put("agent_memory.journal.rewrite.sync_file", _nothing)


def lists_first(put: Put) -> None:
    """List a segment whose arrays are not synced."""
    put("agent_memory.index.columns.sync_file", _nothing)


def trusts_the_dead(put: Put) -> None:
    """Take for durable what another process wrote."""
    real: Any = JournalWriter.close
    append: Any = JournalWriter.append

    def appended(writer: Any, changes: Any) -> Any:
        writer.wrote = True
        return append(writer, changes)

    def close(writer: Any) -> None:
        if hasattr(writer, "wrote"):
            real(writer)

    put(f"{JournalWriter.__module__}.JournalWriter.append", appended)
    put(f"{JournalWriter.__module__}.JournalWriter.close", close)


def trusts_the_way(put: Put) -> None:
    """Take for durable the folders that are there."""
    put("agent_memory.journal.writer.sync_parents", _nothing)


def trusts_the_name(put: Put) -> None:
    """Take for durable the name of a file that is there."""
    put("agent_memory.journal.writer.SyncState.secure_name", functools.partialmethod(_nothing))


def trusts_a_second_sync(put: Put) -> None:
    """After a sync that failed, take the next one that succeeds for a proof."""
    put("agent_memory.journal.writer.JournalFile.write_anew", _nothing)


def _nothing(*_args: object, **_named: object) -> None:
    """Leave it out."""


def _instead(put: Put, name: str, by: object) -> None:
    for module in _SYNCING:
        if hasattr(importlib.import_module(module), name):
            put(f"{module}.{name}", by)


SABOTAGES: dict[str, Callable[[Put], None]] = {
    each.__name__: each
    for each in (
        *(no_file_sync, no_folder_sync, no_sync, acknowledged_first, renamed_first, lists_first),
        *(trusts_the_dead, trusts_the_way, trusts_the_name, trusts_a_second_sync),
    )
}
