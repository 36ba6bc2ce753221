"""The kinds of record that agents keep: the one place where a package that declares a kind is registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.models import (
    ARCHIVED,
    CANDIDATE,
    ENTITY_KINDS,
    EPISODE,
    MARK,
    MEMORY,
    RESOURCE,
    TIDY_RUN,
    TOPIC,
)

if TYPE_CHECKING:
    from agent_memory.models import Kind

KINDS: Final[tuple[Kind[Any], ...]] = (
    MEMORY,
    RESOURCE,
    TOPIC,
    EPISODE,
    MARK,
    *ENTITY_KINDS,
    ARCHIVED,
    TIDY_RUN,
    CANDIDATE,
)
"""What the doctor, and so the command line, looks at unless told otherwise."""
