"""`MemoryEntryType` and `ImportanceLevel`: what an entry of a memory store is, and how important; pure values.

An entry type is a view of a record: nothing is stored under it, `type_of` tells it from what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.models import EPISODE, RESOURCE, SUMMARY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import Record

ENTRY_TYPE: Final = "entry_type"
"""Key of `metadata` that says the type where nothing else of a record does."""
OUTCOME: Final = "outcome"
"""Key of `metadata` that says how something went: `error` or `success`."""


class MemoryEntryType:
    """The ten types of entries.

    An interaction is an episode, a context a resource, all others are memories: insight, pattern and preference by
    their category, learning as a discovery, knowledge as a note, an error as a bugfix and a success as a discovery with
    that `outcome` in `metadata`, and a correction is a memory that supersedes another.
    """

    INTERACTION: Final = "interaction"
    INSIGHT: Final = "insight"
    CORRECTION: Final = "correction"
    CONTEXT: Final = "context"
    LEARNING: Final = "learning"
    ERROR: Final = "error"
    SUCCESS: Final = "success"
    PATTERN: Final = "pattern"
    PREFERENCE: Final = "preference"
    KNOWLEDGE: Final = "knowledge"


class ImportanceLevel:
    """Five values of an importance, 0..1; what is critical, as what is pinned, is never proposed for deletion."""

    CRITICAL: Final = 1.0
    HIGH: Final = 0.8
    MEDIUM: Final = 0.6
    LOW: Final = 0.4
    MINIMAL: Final = 0.2


_Type = MemoryEntryType
ENTRY_TYPES: Final = (
    _Type.INTERACTION, _Type.INSIGHT, _Type.CORRECTION, _Type.CONTEXT, _Type.LEARNING, _Type.ERROR, _Type.SUCCESS,
    _Type.PATTERN, _Type.PREFERENCE, _Type.KNOWLEDGE,
)  # fmt: skip
"""All of them."""

CATEGORY_OF: Final[Mapping[str, str]] = {
    _Type.INSIGHT: "insight",
    _Type.CORRECTION: "note",
    _Type.LEARNING: "discovery",
    _Type.ERROR: "bugfix",
    _Type.SUCCESS: "discovery",
    _Type.PATTERN: "pattern",
    _Type.PREFERENCE: "preference",
    _Type.KNOWLEDGE: "note",
}
"""The category of a memory that is stored for an entry of each type; an interaction and a context are no memories."""

_BY_CATEGORY: Final[Mapping[str, str]] = {
    "insight": _Type.INSIGHT,
    "pattern": _Type.PATTERN,
    "preference": _Type.PREFERENCE,
    "discovery": _Type.LEARNING,
    "bugfix": _Type.ERROR,
    "note": _Type.KNOWLEDGE,
    "decision": _Type.KNOWLEDGE,
}
"""Others, such as a task or a question, say what is going on: a context."""
_BY_KIND: Final[Mapping[str, str]] = {
    EPISODE.prefix: _Type.INTERACTION,
    RESOURCE.prefix: _Type.CONTEXT,
    SUMMARY.prefix: _Type.CONTEXT,
}


def type_of(record: Record) -> str:
    """Return the entry type of a record.

    A memory that supersedes another is a correction, whatever its category; one with an outcome is that. What stands in
    `metadata` as `entry_type` comes first.
    """
    by_kind = _BY_KIND.get(record.id[: len(EPISODE.prefix)])
    if by_kind is not None:
        return by_kind
    said = record.metadata.get(ENTRY_TYPE)
    if said in ENTRY_TYPES:
        return str(said)
    if record.supersedes is not None:
        return _Type.CORRECTION
    outcome = record.metadata.get(OUTCOME)
    if outcome in {_Type.ERROR, _Type.SUCCESS}:
        return str(outcome)
    return _BY_CATEGORY.get(str(getattr(record, "category", "")), _Type.CONTEXT)
