"""Every error this project raises on purpose, and nothing else.

    AgentMemoryError
    ├── ConfigurationError     a setting is wrong, or two settings contradict each other
    │   └── IdentityError      no agent is active, or a switch needs the user's own words
    ├── ValidationError        an input breaks a rule of the data model (also a ValueError)
    │   ├── UnknownIdError     no memory has that id
    │   │   ├── ResourceNotFoundError   no resource has that id
    │   │   └── CategoryNotFoundError   no topic has that name
    │   ├── CategoryExistsError         a topic has that name already
    │   └── ConflictError      it was changed by somebody else since it was read
    ├── StorageError           the journal or an index could not be read or written
    │   ├── BusyError          another process held the lock longer than we wait
    │   ├── ReadOnlyError      the folder, the disk or the journal's format forbids writing
    │   ├── DiskFullError      the disk, or a quota, has no room; what was stored before is safe
    │   └── VectorIndexError   an index of vectors is damaged or missing; words still find everything
    ├── UnsupportedError       what was asked for is nothing this storage can do
    ├── EmbeddingError         an embedder is missing, broken or answered nonsense
    ├── IngestionError         a turn or an event could not be taken in; nothing of it was stored
    ├── ExtractionError        nothing could be drawn from a resource or an episode, which is stored
    ├── SummarizationError     no summary could be made; what it was to cover is stored
    ├── ConsolidationError     a topic's page could not be made anew; the one before stays
    ├── RetrievalError         knowledge could not be searched
    ├── MigrationError         a move between backends failed and was rolled back
    └── SystemRefusedError     the operating system has no file, thread or memory left for what was to be done

Each carries `code`, a stable word for programs, and `recovery`, one sentence for people that says what to do next; and
`number`, such as MEM-009, with `recovery_suggestions`, all that may help.
The root is not called `MemoryError`: that name is Python's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path


_Text: TypeAlias = str | None


class AgentMemoryError(Exception):
    """Root of all errors raised by this project.

    Args:
        message: What failed, and what still works.
        code: Stable machine-readable word; the class default when omitted.
        recovery: One sentence: what the reader can do now.
    """

    default_code: ClassVar[str] = "error"
    default_recovery: ClassVar[str] = "Run memory_status for details."
    number: ClassVar[str] = "MEM-000"
    suggestions: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str, *, code: str | None = None, recovery: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.recovery = recovery or self.default_recovery

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self).__name__

    @property
    def context(self) -> dict[str, object]:
        """What it is about, by name; nothing where the message says all."""
        return {}

    @property
    def recovery_suggestions(self) -> list[str]:
        """All that may help: the recovery, and what else is known for errors of this number."""
        return list(dict.fromkeys([self.recovery, *self.suggestions]))

    def as_dict(self) -> dict[str, str]:
        """Return `{"message", "code", "recovery"}`, the shape of a failed tool result."""
        return {"message": self.message, "code": self.code, "recovery": self.recovery}


class ConfigurationError(AgentMemoryError):
    """A setting has a wrong value, or two modules were given different values for a shared one."""

    number = "MEM-010"
    default_code = "configuration"
    default_recovery = "Correct the named setting and start a new session; memory stays off until then."


class IdentityError(ConfigurationError):
    """No agent is active in this session, or a change of agent needs the user's own words."""

    number = "MEM-011"
    default_code = "no_identity"
    default_recovery = (
        "Say 'start as NAME with memory enabled', or set session.capabilities.agent_identity in the configuration."
    )


class ValidationError(AgentMemoryError, ValueError):
    """An input breaks a rule of the data model; nothing was written."""

    number = "MEM-012"
    default_code = "invalid"
    default_recovery = "Correct the input and try again."


class UnknownIdError(ValidationError):
    """No memory has the given id; nothing was changed."""

    number = "MEM-013"
    default_code = "unknown_id"
    default_recovery = "Find the right id with memory_search or memory_list_recent."


class ResourceNotFoundError(UnknownIdError):
    """No resource has the given id; nothing was changed.

    Args:
        resource_id: The id.
    """

    number = "MEM-001"
    default_code = "resource_not_found"
    default_recovery = "Verify that the id is right."
    suggestions: ClassVar[tuple[str, ...]] = ("Use list_by_type() to see which resources there are.",)

    def __init__(self, resource_id: str) -> None:
        super().__init__(f"Resource {resource_id!r} not found.")
        self.resource_id = resource_id

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again in another process."""
        return type(self), (self.resource_id,)

    @property
    def context(self) -> dict[str, object]:
        """The id."""
        return {"resource_id": self.resource_id}


class CategoryNotFoundError(UnknownIdError):
    """No topic has the given name; nothing was changed.

    Args:
        category_name: The name.
        available: The names that there are.
    """

    number = "MEM-002"
    default_code = "category_not_found"
    default_recovery = "Create the category with create_category()."

    def __init__(self, category_name: str, available: list[str] | None = None) -> None:
        super().__init__(f"Category {category_name!r} not found.")
        self.category_name = category_name
        self.available = available

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again in another process."""
        return type(self), (self.category_name, self.available)

    @property
    def context(self) -> dict[str, object]:
        """The name, and those that there are."""
        return {"category_name": self.category_name, "available": self.available}

    @property
    def recovery_suggestions(self) -> list[str]:
        """To create it, or one of those that there are."""
        there = [f"Available categories: {', '.join(self.available)}."] if self.available else []
        return [self.recovery, *there]


class CategoryExistsError(ValidationError):
    """A topic has the given name already; nothing was changed.

    Args:
        category_name: The name.
    """

    number = "MEM-003"
    default_code = "category_exists"
    default_recovery = "Use a different name."
    suggestions: ClassVar[tuple[str, ...]] = ("Use get_by_name() to get the one that there is.",)

    def __init__(self, category_name: str) -> None:
        super().__init__(f"Category {category_name!r} already exists.")
        self.category_name = category_name

    def __reduce__(self) -> tuple[object, ...]:
        """Return what makes it again in another process."""
        return type(self), (self.category_name,)

    @property
    def context(self) -> dict[str, object]:
        """The name."""
        return {"category_name": self.category_name}


class ConflictError(ValidationError):
    """The memory was changed since the caller read it; nothing was changed."""

    number = "MEM-014"
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


class EmbeddingError(AgentMemoryError):
    """An embedder is missing, broken or returned something that is not a vector; keyword search still works."""

    number = "MEM-004"
    default_code = "embedding"
    default_recovery = "Search continues by keyword; check the embedder with memory_status."
    suggestions: ClassVar[tuple[str, ...]] = (
        "Check the embedder's key.",
        "Check the network.",
        "Try again later, waiting longer each time.",
    )


class IngestionError(AgentMemoryError):
    """A turn or an event could not be taken in; nothing of it was stored."""

    number = "MEM-021"
    default_code = "ingestion"
    default_recovery = "Take it in again later: what is there is not taken in twice."

    def __init__(
        self, message: str, episode_id: _Text = None, group_id: _Text = None, cause: Exception | None = None,
        *, code: _Text = None, recovery: _Text = None,
    ) -> None:  # fmt: skip
        super().__init__(message, code=code, recovery=recovery)
        self.episode_id, self.group_id, self.cause = episode_id, group_id, cause


class ExtractionError(AgentMemoryError):
    """Nothing could be drawn from a resource or an episode, which is stored; `provider_error` has no keys and texts."""

    number = "MEM-005"
    default_code = "extraction"
    default_recovery = "Try again later; the resource is stored."
    suggestions: ClassVar[tuple[str, ...]] = ("Check the model's key.", "Try smaller content.", "Try a simpler prompt.")

    def __init__(
        self, message: str, episode_id: _Text = None, provider_error: _Text = None, cause: Exception | None = None,
        *, code: _Text = None, recovery: _Text = None,
    ) -> None:  # fmt: skip
        super().__init__(message, code=code, recovery=recovery)
        self.episode_id, self.provider_error, self.cause = episode_id, provider_error, cause


class SummarizationError(AgentMemoryError):
    """No summary could be made; what it was to cover is stored. `summary_type` is window or meta."""

    number = "MEM-022"
    default_code = "summarization"
    default_recovery = "Try again later; what it was to cover is stored."

    def __init__(
        self, message: str, group_id: _Text = None, summary_type: _Text = None, cause: Exception | None = None,
        *, code: _Text = None, recovery: _Text = None,
    ) -> None:  # fmt: skip
        super().__init__(message, code=code, recovery=recovery)
        self.group_id, self.summary_type, self.cause = group_id, summary_type, cause


class ConsolidationError(AgentMemoryError):
    """A topic's page could not be made anew; the page before stays."""

    number = "MEM-006"
    default_code = "consolidation"
    default_recovery = "The page before is kept; consolidate again later."
    suggestions: ClassVar[tuple[str, ...]] = ("Check the model's key.",)


class RetrievalError(AgentMemoryError):
    """Knowledge could not be searched; nothing was changed."""

    number = "MEM-007"
    default_code = "retrieval"
    default_recovery = "Try again; a simpler query may do."
    suggestions: ClassVar[tuple[str, ...]] = (
        "Look at each item with get_by_resource() or get_by_category().",
        "Run `agent-memory doctor`.",
    )


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
