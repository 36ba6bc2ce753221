"""The first half of the one write path: bound sizes, normalise, redact, validate. Pure but for the redactor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.errors import ValidationError
from agent_memory.models import MAX_CONTENT_CHARS, MAX_TAGS
from agent_memory.storage.cleaning import Redacted, make_memory, redact_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import Memory
    from agent_memory.redaction import Redactor


def clean(values: Mapping[str, Any], redactor: Redactor) -> Redacted[dict[str, Any]]:
    """Return `values` (fields of a memory) bounded, normalised and without secrets, and the kinds removed.

    Raises:
        ValidationError: Too long, too many, or nothing but a secret.
    """
    normal = dict(values)
    _bound(normal)
    if isinstance(normal.get("content"), str):
        normal["content"] = normal["content"].replace("\r\n", "\n").strip()
    if isinstance(normal.get("category"), str):
        normal["category"] = normal["category"].strip().lower()
    return redact_fields(normal, redactor)


def draft(values: Mapping[str, Any], agent_id: str, redactor: Redactor) -> Redacted[Memory]:
    """Return the memory that `values` make once they are clean.

    Raises:
        ValidationError: Names the field and the rule, not the value; or it is nothing but a secret.
    """
    return make_memory(clean(values, redactor), agent_id)


def _bound(values: Mapping[str, Any]) -> None:
    """Refuse by size alone, before anything costs time."""
    content, tags = values.get("content"), values.get("tags")
    if isinstance(content, str) and len(content) > MAX_CONTENT_CHARS:
        raise ValidationError(
            f"Nothing was stored: content has {len(content)} characters, at most {MAX_CONTENT_CHARS} are kept.",
            code="too_long",
            recovery="Store the essence, or several memories.",
        )
    if isinstance(tags, list) and len(tags) > MAX_TAGS:
        raise ValidationError(f"Nothing was stored: {len(tags)} tags, at most {MAX_TAGS} are kept.", code="too_many")
