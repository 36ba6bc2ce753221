"""Every error this project raises on purpose.

    AgentMemoryError
    ├── ConfigurationError             a setting is wrong, or two modules have different values for it
    │   ├── IdentityError              no agent is active, or a change needs the user's own words
    │   └── DeclarationError           a workspace's declaration is wrong, or rows might not fit it
    ├── ValidationError                an input breaks a rule of the data model; nothing was written
    │   ├── UnknownIdError             no memory has this ID; nothing was changed
    │   │   ├── ResourceNotFoundError  no resource has this ID; nothing was changed
    │   │   ├── CategoryNotFoundError  no topic has this name; nothing was changed
    │   │   └── RowNotFoundError       no row, step or snapshot has this name; nothing was changed
    │   ├── CategoryExistsError        a topic has this name already; nothing was changed
    │   ├── ConflictError              the memory was changed since the caller read it; nothing was changed
    │   │   └── LeaseError             another agent has claimed it, or the claim ended; nothing was written
    │   └── NotAllowedError            the workspace's declaration forbids this write; nothing was written
    ├── StorageError                   the journal or a derived index could not be read or written
    │   ├── BusyError                  another process held the lock too long; nothing was written
    │   ├── ReadOnlyError              the folder, file system or journal format forbids writing; reading still works
    │   ├── DiskFullError              the disk is full; the write was undone, earlier records are safe
    │   └── VectorIndexError           a vector index is damaged or missing; search by words still works
    ├── UnsupportedError               this storage does not support the operation; nothing was changed
    ├── MigrationError                 a move between storage backends failed; the journal is untouched
    ├── SystemRefusedError             the system has no file, thread or memory left; records are safe
    ├── EmbeddingError                 an embedder is missing or broken; search by words still works
    ├── IngestionError                 a turn or an event could not be ingested; nothing was stored
    ├── ExtractionError                nothing could be extracted from a stored resource or episode
    ├── SummarizationError             no summary could be made; its sources are stored
    ├── ConsolidationError             a topic's page could not be rebuilt; the previous one stays
    └── RetrievalError                 knowledge could not be searched; nothing was changed

Each has a `code`, a stable word for programs; `recovery`, one sentence for people about what to do next; `number`, such
as MEM-009; and `recovery_suggestions`, all advice. The root is not called `MemoryError`: that name is Python's own.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

_Text: TypeAlias = str | None


class AgentMemoryError(Exception):
    """Root of all errors of this project.

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
        """The name of the error's class."""
        return type(self).__name__

    @property
    def context(self) -> dict[str, object]:
        """Details by name; empty if the message has them."""
        return {}

    @property
    def recovery_suggestions(self) -> list[str]:
        """All advice: the recovery first, then suggestions for this number."""
        return list(dict.fromkeys([self.recovery, *self.suggestions]))

    def as_dict(self) -> dict[str, str]:
        """Return `{"message", "code", "recovery"}`, the shape of a failed tool result."""
        return {"message": self.message, "code": self.code, "recovery": self.recovery}


class ConfigurationError(AgentMemoryError):
    """A setting is wrong, or two modules have different values for it."""

    number = "MEM-010"
    default_code = "configuration"
    default_recovery = "Correct the named setting and start a new session; memory stays off until then."


class IdentityError(ConfigurationError):
    """No agent is active, or a change needs the user's own words."""

    number = "MEM-011"
    default_code = "no_identity"
    default_recovery = (
        "Say 'start as NAME with memory enabled', or set agent_id below overrides: tool-memory-semantic: config: in "
        "~/.amplifier/settings.yaml."
    )


class DeclarationError(ConfigurationError):
    """A workspace's declaration is wrong, or rows might not fit it."""

    number = "MEM-023"
    default_code = "declaration"
    default_recovery = "Correct the named lines; `agent-memory workspace check FILE` checks them again."


class ValidationError(AgentMemoryError, ValueError):
    """An input breaks a rule of the data model; nothing was written."""

    number = "MEM-012"
    default_code = "invalid"
    default_recovery = "Correct the input and try again."


class UnknownIdError(ValidationError):
    """No memory has this ID; nothing was changed."""

    number = "MEM-013"
    default_code = "unknown_id"
    default_recovery = "Find the right id with memory_search or memory_list_recent."


class ResourceNotFoundError(UnknownIdError):
    """No resource has this ID; nothing was changed.

    Args:
        resource_id: ID of the resource.
    """

    number = "MEM-001"
    default_code = "resource_not_found"
    default_recovery = "Verify that the id is right."
    suggestions: ClassVar[tuple[str, ...]] = ("Use list_by_type() to see which resources there are.",)

    def __init__(self, resource_id: str) -> None:
        super().__init__(f"Resource {resource_id!r} not found.")
        self.resource_id = resource_id

    def __reduce__(self) -> tuple[object, ...]:
        """Return the constructor and arguments for another process."""
        return type(self), (self.resource_id,)

    @property
    def context(self) -> dict[str, object]:
        """The ID of the resource."""
        return {"resource_id": self.resource_id}


class CategoryNotFoundError(UnknownIdError):
    """No topic has this name; nothing was changed.

    Args:
        category_name: Name of the topic.
        available: Names of all topics, if known.
        passages: Number of passages that mention the name.
    """

    number = "MEM-002"
    default_code = "category_not_found"
    default_recovery = "Create the category with create_category()."

    def __init__(self, category_name: str, available: list[str] | None = None, passages: int = 0) -> None:
        verb = "mentions" if passages == 1 else "mention"
        mentions = f" {passages:,} passage{'s' * (passages != 1)} {verb} it." if passages else ""
        super().__init__(f"Category {category_name!r} not found.{mentions}")
        self.category_name = category_name
        self.available = available
        self.passages = passages

    def __reduce__(self) -> tuple[object, ...]:
        """Return the constructor and arguments for another process."""
        return type(self), (self.category_name, self.available, self.passages)

    @property
    def context(self) -> dict[str, object]:
        """The name, and all names of topics."""
        return {"category_name": self.category_name, "available": self.available}

    @property
    def recovery_suggestions(self) -> list[str]:
        """Advice to create the topic, or to use an existing one."""
        topics = [f"Available categories: {', '.join(self.available)}."] if self.available else []
        return [self.recovery, *topics]


class CategoryExistsError(ValidationError):
    """A topic has this name already; nothing was changed.

    Args:
        category_name: Name of the topic.
    """

    number = "MEM-003"
    default_code = "category_exists"
    default_recovery = "Use a different name."
    suggestions: ClassVar[tuple[str, ...]] = ("Use get_by_name() to get the one that there is.",)

    def __init__(self, category_name: str) -> None:
        super().__init__(f"Category {category_name!r} already exists.")
        self.category_name = category_name

    def __reduce__(self) -> tuple[object, ...]:
        """Return the constructor and arguments for another process."""
        return type(self), (self.category_name,)

    @property
    def context(self) -> dict[str, object]:
        """The name of the topic."""
        return {"category_name": self.category_name}


class ConflictError(ValidationError):
    """The memory was changed since the caller read it; nothing was changed."""

    number = "MEM-014"
    default_code = "conflict"
    default_recovery = "Read it again, decide again, and give the number of its present change."


class NotAllowedError(ValidationError):
    """The workspace's declaration forbids this write; nothing was written."""

    number = "MEM-024"
    default_code = "not_allowed"
    default_recovery = "Leave this to an agent that may write it, or change the declaration."


class RowNotFoundError(UnknownIdError):
    """No row, step or snapshot has this name; nothing was changed."""

    number = "MEM-025"
    default_code = "row_not_found"
    default_recovery = "List what there is, and use a name from there."


class LeaseError(ConflictError):
    """Another agent has claimed it, or the claim ended; nothing was written."""

    number = "MEM-026"
    default_code = "leased"
    default_recovery = "Ask for the next steps, and claim one that is free."


class StorageError(AgentMemoryError):
    """The journal or a derived index could not be read or written.

    Args:
        message: What failed, and what still works.
        code: Stable machine-readable word; the class default when omitted.
        recovery: One sentence: what the reader can do now.
        path: File or folder of the error, shown to people; a model gets its name alone.
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
    """Another process held the lock too long; nothing was written."""

    number = "MEM-015"
    default_code = "busy"
    default_recovery = "Another process is writing to this memory; try again in a moment."


class ReadOnlyError(StorageError):
    """The folder, file system or journal format forbids writing; reading still works."""

    number = "MEM-016"
    default_code = "read_only"
    default_recovery = "Make the folder writable, or upgrade this package if the journal is of a newer format."


class DiskFullError(StorageError):
    """The disk is full; the write was undone, earlier records are safe."""

    number = "MEM-017"
    default_code = "disk_full"
    default_recovery = "Free some disk space and try again."


class VectorIndexError(StorageError):
    """A vector index is damaged or missing; search by words still works."""

    number = "MEM-008"
    default_code = "vector_index"
    default_recovery = "Rebuild it with rebuild_index()."
    suggestions: ClassVar[tuple[str, ...]] = (
        "Check that the engine is installed.",
        "Run `agent-memory doctor`, which looks at its files.",
    )


class UnsupportedError(AgentMemoryError):
    """This storage does not support the operation; nothing was changed."""

    number = "MEM-018"
    default_code = "unsupported"
    default_recovery = "Use a storage that can, such as the files."


class MigrationError(AgentMemoryError):
    """A move between storage backends failed; the journal is untouched."""

    number = "MEM-019"
    default_code = "migration"
    default_recovery = "The previous backend is still active; see the message and try again."


class SystemRefusedError(AgentMemoryError):
    """The system has no file, thread or memory left; records are safe."""

    number = "MEM-020"
    default_code = "system"
    default_recovery = "Close other programs, or raise the limits of this one (files, threads, memory), then try again."


def unknown_outcome(what: str) -> StorageError:
    """Return the error for a change with an unknown outcome.

    Args:
        what: Reason for the uncertainty, as a sentence.
    """
    return StorageError(
        f"{what} It is not known whether the change was made.",
        code="unknown",
        recovery="Search before you store it again; storing the same text twice keeps it once.",
    )


def refused_by_system(error: Exception) -> SystemRefusedError | None:
    """Return our error for one of the system's, None for other errors.

    For the edges, where a person or a model reads it; code that reads or writes files has better messages.
    """
    is_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    is_system = isinstance(error, OSError | MemoryError) and not isinstance(error, BrokenPipeError)
    if not (is_thread or is_system):
        return None
    what = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return SystemRefusedError(f"The system refused what this needs: {what}. What was stored before is safe.")


class _RequestIdMixin:
    """ID of a failed call, also in its log line."""

    @cached_property
    def request_id(self) -> str:
        """`req-` and 12 hexadecimal digits."""
        return f"req-{os.urandom(6).hex()}"


class EmbeddingError(AgentMemoryError):
    """An embedder is missing or broken; search by words still works."""

    number = "MEM-004"
    default_code = "embedding"
    default_recovery = "Search continues by keyword; check the embedder with memory_status."
    suggestions: ClassVar[tuple[str, ...]] = (
        "Check the embedder's key.",
        "Check the network.",
        "Try again later, waiting longer each time.",
    )


class IngestionError(AgentMemoryError, _RequestIdMixin):
    """A turn or an event could not be ingested; nothing was stored."""

    number = "MEM-021"
    default_code = "ingestion"
    default_recovery = "Ingest it again later: an existing turn is not stored twice."

    def __init__(
        self, message: str, episode_id: _Text = None, group_id: _Text = None, cause: Exception | None = None,
        *, code: _Text = None, recovery: _Text = None,
    ) -> None:  # fmt: skip
        super().__init__(message, code=code, recovery=recovery)
        self.episode_id, self.group_id, self.cause = episode_id, group_id, cause


class ExtractionError(AgentMemoryError, _RequestIdMixin):
    """Nothing could be extracted from a stored resource or episode.

    `provider_error` contains no keys and no texts.
    """

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


class SummarizationError(AgentMemoryError, _RequestIdMixin):
    """No summary could be made; its sources are stored.

    `summary_type` is window or meta.
    """

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
    """A topic's page could not be rebuilt; the previous one stays."""

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
