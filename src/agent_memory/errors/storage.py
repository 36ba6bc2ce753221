"""Errors of what is kept: files, indexes, databases, and the system they are on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from agent_memory.errors.root import AgentMemoryError

if TYPE_CHECKING:
    from pathlib import Path


class StorageError(AgentMemoryError):
    """The journal or a derived index could not be read or written.

    Args:
        message: What failed, and what still works.
        code: Stable machine-readable word; the class default when omitted.
        recovery: One sentence: what the reader can do now.
        path: The file or folder it is about. Shown where a person asked; a model gets its name alone.
    """

    number = "MEM-009"
    default_code = "storage"
    default_recovery = "Check the folder's permissions and free space, then try again."
    suggestions: ClassVar[tuple[str, ...]] = (
        "Check the free space.",
        "Check the folder's permissions.",
        "Check storage_dir.",
    )

    def __init__(
        self, message: str, *, code: str | None = None, recovery: str | None = None, path: Path | None = None
    ) -> None:
        super().__init__(message, code=code, recovery=recovery)
        self.path = path


class BusyError(StorageError):
    """The lock was held by another process for longer than the bounded wait; nothing was written."""

    number = "MEM-015"
    default_code = "busy"
    default_recovery = "Another process is writing to this memory; try again in a moment."


class ReadOnlyError(StorageError):
    """The folder, file system or journal format forbids writing; reading still works."""

    number = "MEM-016"
    default_code = "read_only"
    default_recovery = "Make the folder writable, or upgrade this package if the journal is of a newer format."


class DiskFullError(StorageError):
    """There is no room left; the write was undone and everything stored before is safe."""

    number = "MEM-017"
    default_code = "disk_full"
    default_recovery = "Free some disk space and try again."


class VectorIndexError(StorageError):
    """An index of vectors is damaged or missing; it is derived, and words still find everything."""

    number = "MEM-008"
    default_code = "vector_index"
    default_recovery = "Rebuild it with rebuild_index()."
    suggestions: ClassVar[tuple[str, ...]] = (
        "Check that the engine is installed.",
        "Run `agent-memory doctor`, which looks at its files.",
    )


class UnsupportedError(AgentMemoryError):
    """What was asked for is nothing that this storage can do; nothing was changed."""

    number = "MEM-018"
    default_code = "unsupported"
    default_recovery = "Use a storage that can, such as the files."


class MigrationError(AgentMemoryError):
    """A move between storage backends failed; the journal is untouched."""

    number = "MEM-019"
    default_code = "migration"
    default_recovery = "The previous backend is still active; see the message and try again."


class SystemRefusedError(AgentMemoryError):
    """The operating system gave no file descriptor, thread or memory; what was acknowledged is safe."""

    number = "MEM-020"
    default_code = "system"
    default_recovery = "Close other programs, or raise the limits of this one (files, threads, memory), then try again."


def unknown_outcome(what: str) -> StorageError:
    """Return the error for a change that may or may not have been made: `what` says why, as a sentence."""
    return StorageError(
        f"{what} It is not known whether the change was made.",
        code="unknown",
        recovery="Search before you store it again; storing the same text twice keeps it once.",
    )


def refused_by_system(error: Exception) -> SystemRefusedError | None:
    """Return an error of ours for one that the system raises from anywhere, even from an import; None for any other.

    For the edges, where a person or a model reads it: below, what reads or writes files has better words.
    """
    is_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    is_system = isinstance(error, OSError | MemoryError) and not isinstance(error, BrokenPipeError)
    if not (is_thread or is_system):
        return None
    what = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return SystemRefusedError(f"The system refused what this needs: {what}. What was stored before is safe.")
