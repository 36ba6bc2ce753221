"""What a write begins with: sizes bounded, text normalised, ends that have passed refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pydantic

from agent_memory.errors import ValidationError
from agent_memory.models import MAX_CONTENT_CHARS, MAX_TAGS
from agent_memory.models.times import UtcDatetime

if TYPE_CHECKING:
    from datetime import datetime


def normalised(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` (fields of a memory) bounded and normalised.

    Raises:
        ValidationError: Too long, or too many.
    """
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was stored: the fields of a memory are a mapping, got {type(values).__name__}.",
            recovery="Give them as in {'content': 'Maria likes tea.'}.",
        )
    normal = dict(values)
    _bound(normal)
    if isinstance(normal.get("content"), str):
        normal["content"] = normal["content"].replace("\r\n", "\n").strip()
    if isinstance(normal.get("category"), str):
        normal["category"] = normal["category"].strip().lower()
    return normal


def stamped(values: Mapping[str, Any] | str, stamp: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a new memory, of which a text alone is the content; the stamp fills what they leave out.

    Raises:
        ValidationError: They are neither text nor a mapping.
    """
    if isinstance(values, str):
        return {**stamp, "content": values}
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was stored: a memory is a text or a mapping of its fields, got {type(values).__name__}.",
            recovery="Give it as 'Maria likes tea.' or {'content': 'Maria likes tea.', 'tags': ['drinks']}.",
        )
    return {**stamp, **values}


def check_expiry(expires_at: object, now: datetime) -> None:
    """Refuse an end that has passed: the memory would never be found.

    Raises:
        ValidationError: It has passed. A value that is no time is refused with the other fields.
    """
    if expires_at is None:
        return
    try:
        moment = pydantic.TypeAdapter(UtcDatetime).validate_python(expires_at)
    except pydantic.ValidationError:
        return
    if moment <= now:
        raise ValidationError(
            f"Nothing was stored: expires_at, {moment:%Y-%m-%d %H:%M} UTC, has passed, so no search would find it.",
            recovery="Name a date to come, or leave it out; to take a memory away, forget it.",
        )


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
