"""Every error this project raises on purpose, and nothing else.

    AgentMemoryError
    ├── ConfigurationError     a setting is wrong, or two settings contradict each other
    │   └── IdentityError      no agent is active, or a switch needs the user's own words
    ├── ValidationError        an input breaks a rule of the data model (also a ValueError)
    │   ├── UnknownIdError     no memory has that id
    │   └── ConflictError      it was changed by somebody else since it was read
    ├── StorageError           the journal or an index could not be read or written
    │   ├── BusyError          another process held the lock longer than we wait
    │   ├── ReadOnlyError      the folder, the disk or the journal's format forbids writing
    │   └── DiskFullError      the disk, or a quota, has no room; what was stored before is safe
    ├── UnsupportedError       what was asked for is nothing this storage can do
    ├── EmbeddingError         an embedder is missing, broken or answered nonsense
    ├── MigrationError         a move between backends failed and was rolled back
    └── SystemRefusedError     the operating system has no file, thread or memory left for what was to be done

Each carries `code`, a stable word for programs, and `recovery`, one sentence for people that says what to do next.
The root is not called `MemoryError`: that name is Python's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pathlib import Path


class AgentMemoryError(Exception):
    """Root of all errors raised by this project.

    Args:
        message: What failed, and what still works.
        code: Stable machine-readable word; the class default when omitted.
        recovery: One sentence: what the reader can do now.
    """

    default_code: ClassVar[str] = "error"
    default_recovery: ClassVar[str] = "Run memory_status for details."

    def __init__(self, message: str, *, code: str | None = None, recovery: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.recovery = recovery or self.default_recovery

    def as_dict(self) -> dict[str, str]:
        """Return `{"message", "code", "recovery"}`, the shape of a failed tool result."""
        return {"message": self.message, "code": self.code, "recovery": self.recovery}


class ConfigurationError(AgentMemoryError):
    """A setting has a wrong value, or two modules were given different values for a shared one."""

    default_code = "configuration"
    default_recovery = "Correct the named setting and start a new session; memory stays off until then."


class IdentityError(ConfigurationError):
    """No agent is active in this session, or a change of agent needs the user's own words."""

    default_code = "no_identity"
    default_recovery = (
        "Say 'start as NAME with memory enabled', or set session.capabilities.agent_identity in the configuration."
    )


class ValidationError(AgentMemoryError, ValueError):
    """An input breaks a rule of the data model; nothing was written."""

    default_code = "invalid"
    default_recovery = "Correct the input and try again."


class UnknownIdError(ValidationError):
    """No memory has the given id; nothing was changed."""

    default_code = "unknown_id"
    default_recovery = "Find the right id with memory_search or memory_list_recent."


class ConflictError(ValidationError):
    """The memory was changed since the caller read it; nothing was changed."""

    default_code = "conflict"
    default_recovery = "Read it again, decide anew, and give the number of the change that it has now."


class StorageError(AgentMemoryError):
    """The journal or a derived index could not be read or written.

    Args:
        message: What failed, and what still works.
        code: Stable machine-readable word; the class default when omitted.
        recovery: One sentence: what the reader can do now.
        path: The file or folder it is about. Shown where a person asked; a model gets its name alone.
    """

    default_code = "storage"
    default_recovery = "Check the folder's permissions and free space, then try again."

    def __init__(
        self, message: str, *, code: str | None = None, recovery: str | None = None, path: Path | None = None
    ) -> None:
        super().__init__(message, code=code, recovery=recovery)
        self.path = path


class BusyError(StorageError):
    """The lock was held by another process for longer than the bounded wait; nothing was written."""

    default_code = "busy"
    default_recovery = "Another process is writing to this memory; try again in a moment."


class ReadOnlyError(StorageError):
    """The folder, file system or journal format forbids writing; reading still works."""

    default_code = "read_only"
    default_recovery = "Make the folder writable, or upgrade this package if the journal is of a newer format."


class DiskFullError(StorageError):
    """There is no room left; the write was undone and everything stored before is safe."""

    default_code = "disk_full"
    default_recovery = "Free some disk space and try again."


class UnsupportedError(AgentMemoryError):
    """What was asked for is nothing that this storage can do; nothing was changed."""

    default_code = "unsupported"
    default_recovery = "Use a storage that can, such as the files."


class EmbeddingError(AgentMemoryError):
    """An embedder is missing, broken or returned something that is not a vector; keyword search still works."""

    default_code = "embedding"
    default_recovery = "Search continues by keyword; check the embedder with memory_status."


class MigrationError(AgentMemoryError):
    """A move between storage backends failed; the journal is untouched."""

    default_code = "migration"
    default_recovery = "The previous backend is still active; see the message and try again."


class SystemRefusedError(AgentMemoryError):
    """The operating system gave no file descriptor, thread or memory; what was acknowledged is safe."""

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
