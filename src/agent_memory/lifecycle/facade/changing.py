"""What can be changed of an entry, and the fields of its record that say so. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.lifecycle.facade.entries import (
    CHANGED_AT,
    CHILD,
    PARENT,
    RELATED,
    entry_of,
    labels_of,
    links_of,
    metadata_of,
)
from agent_memory.lifecycle.facade.entries import text_of as words_of
from agent_memory.models import Memory, to_text
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from agent_memory.models import Record

_IN_METADATA: Final = frozenset(
    {"content", "summary", "keywords", "temporal_context", "related_entries", "parent_entry", "child_entries"}
)
_LINKED: Final = frozenset({"related_entries", "parent_entry", "child_entries"})
_LABELS: Final = frozenset({"keywords", "semantic_tags"})
_OWN: Final = {"importance_score": "importance", "expires_at": "expires_at", "pinned": "pinned"}
CHANGEABLE: Final = _IN_METADATA | _LABELS | _OWN.keys()
"""What `update_entry` takes; all other fields are given by the store, or counted."""
_KEPT: Final = frozenset({"external_id", "summary", "keywords", "content", "temporal_context", "elsewhere"})
_OF_TYPE: Final = frozenset({"outcome", "entry_type"})
_ENDS: Final = frozenset({RELATED, PARENT, CHILD})


def changes_of(record: Record, updates: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the changes to a record that some updates of its entry mean; `now` is noted as when it was changed.

    Raises:
        ValidationError: A field cannot be changed, or has a value of a wrong type.
    """
    if not isinstance(updates, dict):
        raise ValidationError(f"Nothing was changed: updates are a mapping, got {type(updates).__name__}.")
    if closed := sorted(set(updates) - CHANGEABLE, key=str):
        raise ValidationError(
            f"Nothing was changed: {quoted(str(closed[0]))} of an entry cannot be changed.",
            code="not_changeable",
            recovery=f"Changeable are: {', '.join(sorted(CHANGEABLE))}.",
        )
    entry = entry_of(record, record.timestamp)
    before = _as_it_stands(record)
    entry.keywords, entry.summary = before["keywords"], before["summary"]
    for name, value in updates.items():
        _check(name, value)
        setattr(entry, name, value)
    changes = {_OWN[name]: value for name, value in updates.items() if name in _OWN}
    changes["metadata"] = dict(record.metadata)
    if updates.keys() & _IN_METADATA:
        kept = {key: value for key, value in record.metadata.items() if key not in before["keys"]}
        entry.entry_id = before["external_id"]
        changes["metadata"] = kept | metadata_of(entry, corrects=record.supersedes is not None)
    changes["metadata"] |= {CHANGED_AT: to_text(now)}
    if updates.keys() & _LABELS:
        changes["tags"] = labels_of(entry)
    if updates.keys() & _LINKED:
        others = [link for link in record.links if link.rel not in _ENDS]
        changes["links"] = [*others, *links_of(entry)]
    if "content" in updates:
        changes["content"] = words_of(entry.content, entry.summary)
    return changes


def _as_it_stands(record: Record) -> dict[str, Any]:
    """Return what a record itself says: no keyword and no summary that the view made of its words."""
    said = record.metadata
    words, summary = said.get("keywords"), said.get("summary")
    return {
        "keywords": [each for each in words if isinstance(each, str)] if isinstance(words, list) else [],
        "summary": summary if isinstance(summary, str) else "",
        "external_id": str(said.get("external_id") or record.id),
        "keys": _KEPT | _OF_TYPE if isinstance(record, Memory) else _KEPT,
    }


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "content": (dict,),
    "summary": (str,),
    "keywords": (list,),
    "semantic_tags": (list,),
    "temporal_context": (dict,),
    "related_entries": (list,),
    "child_entries": (list,),
    "parent_entry": (str, type(None)),
}


def _check(name: str, value: object) -> None:
    """Refuse a value of another type; the rest is checked with the record.

    Raises:
        ValidationError: Names the field.
    """
    wanted = _TYPES.get(name)
    if wanted is not None and not isinstance(value, wanted):
        raise ValidationError(f"Nothing was changed: {name} is a {wanted[0].__name__}, got {type(value).__name__}.")
