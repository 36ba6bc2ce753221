"""Errors of what is made of what is kept: vectors, what is drawn from texts, pages, answers."""

from __future__ import annotations

import secrets
from functools import cached_property
from typing import ClassVar, TypeAlias

from agent_memory.errors.root import AgentMemoryError

_Text: TypeAlias = str | None


class AskedError(AgentMemoryError):
    """An error of one call; `request_id` is that of the call, by which its line in the log is found."""

    @cached_property
    def request_id(self) -> str:
        """`req-` and 12 hexadecimal digits."""
        return f"req-{secrets.token_hex(6)}"


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


class IngestionError(AskedError):
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


class ExtractionError(AskedError):
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


class SummarizationError(AskedError):
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
