"""A memory, or fields of one, without secrets: `storage.cleaning` for this kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.models import MEMORY, Memory
from agent_memory.storage import cleaning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.redaction import Redactor
    from agent_memory.storage.cleaning import Redacted


def redact_memory(memory: Memory, redactor: Redactor | None = None) -> Redacted[Memory]:
    """Return `memory` without secrets; itself if there are none.

    Raises:
        ValidationError: It is nothing but a secret, or what is left breaks the data model.
    """
    return cleaning.redact_record(MEMORY, memory, redactor)


def redact_fields(values: Mapping[str, Any], redactor: Redactor | None = None) -> Redacted[dict[str, Any]]:
    """Return `values`, fields of a memory in any form that its model takes, without secrets.

    Raises:
        ValidationError: A value is wrong, or the content is nothing but a secret.
    """
    return cleaning.redact_fields(MEMORY, values, redactor)


def make_memory(values: Mapping[str, Any], agent_id: str, redactor: Redactor | None = None) -> Redacted[Memory]:
    """Return the memory that `values`, fields in any form that its model takes, make without their secrets.

    Raises:
        ValidationError: Names the field and the rule, not the value; or the content is nothing but a secret.
    """
    return cleaning.make_record(MEMORY, values, agent_id, redactor)
