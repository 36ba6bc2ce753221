"""The first half of the one write path: bound sizes, normalise, redact, validate. Pure but for the redactor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.errors import ValidationError
from agent_memory.models import MAX_CONTENT_CHARS, MAX_TAGS, Memory, describe
from agent_memory.redaction import redact_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.redaction import Redactor

_MARKERS_AND_PUNCTUATION: Final = re.compile(r"\[redacted:[a-z0-9-]+\]|[\W_]+")
_TEXT_FIELDS: Final = ("content", "tags", "metadata")


def clean(values: Mapping[str, Any], redactor: Redactor) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return `values` (fields of a memory) bounded, normalised and without secrets, and the kinds removed.

    Raises:
        ValidationError: Too long, too many, or nothing but a secret.
    """
    cleaned = dict(values)
    kinds: dict[str, None] = {}
    _bound(cleaned)
    if isinstance(cleaned.get("content"), str):
        cleaned["content"] = cleaned["content"].replace("\r\n", "\n").strip()
    if isinstance(cleaned.get("category"), str):
        cleaned["category"] = cleaned["category"].strip().lower()
    draft({"agent_id": "draft", "content": "draft", **{key: cleaned[key] for key in _TEXT_FIELDS if cleaned.get(key)}})
    for key in _TEXT_FIELDS:
        if cleaned.get(key):
            cleaned[key], found = redact_value(cleaned[key], redactor)
            kinds.update(dict.fromkeys(found))
    content = cleaned.get("content")
    if kinds and isinstance(content, str) and not _MARKERS_AND_PUNCTUATION.sub("", content):
        raise ValidationError(
            f"That is nothing but a secret ({', '.join(kinds)}); secrets are never stored.",
            code="only_secret",
            recovery="Store what the secret is for and where it is kept, without its value.",
        )
    return cleaned, tuple(kinds)


def draft(values: Mapping[str, Any]) -> Memory:
    """Return a memory made of `values`.

    Raises:
        ValidationError: Names the field and the rule, not the value.
    """
    try:
        return Memory.model_validate(dict(values))
    except pydantic.ValidationError as error:
        raise ValidationError(f"Nothing was stored: {describe(error)}.") from None


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
