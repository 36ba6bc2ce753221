"""`MemoryEntry`: what a `MemoryStore` takes and gives, a view of a record; and the fields of a record made of one."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.importance import (
    CATEGORY_OF,
    ENTRY_TYPE,
    ENTRY_TYPES,
    OUTCOME,
    MemoryEntryType,
    importance_of,
    type_of,
)
from agent_memory.errors import ValidationError
from agent_memory.language.words import STOP_WORDS
from agent_memory.models import as_utc, check_id, derived_id, is_memory_id, is_told, utc_now
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import Record

RELATED, PARENT, CHILD = "related", "parent", "child"
"""Names of the links of an entry to others."""
EXTERNAL_ID: Final = "external_id"
"""Key of `metadata` with the id that a program gave an entry."""
TEXT: Final = "text"
"""The key of an entry's content with its words."""
CHANGED_AT: Final = "changed_at"
"""Key of `metadata` that says when an entry was changed."""
_SUMMARY, _KEYWORDS, _CONTENT, _TEMPORAL, _OUTSIDE = "summary", "keywords", "content", "temporal_context", "elsewhere"
_FROM_CATEGORY: Final = frozenset({MemoryEntryType.ERROR, MemoryEntryType.SUCCESS})
_MOST_KEYWORDS: Final = 10
_WORD: Final = re.compile(r"[^\W_][\w'.-]*[^\W_]|[^\W\d_]")
_SUMMARY_CHARS: Final = 120


@dataclass(slots=True)
class MemoryEntry:
    """One entry.

    Attributes:
        entry_id: The id that it was given by whoever stored it, else that of its record; empty before it is stored.
        entry_type: One of `MemoryEntryType`.
        timestamp: When it was so; a naive moment is local time.
        session_id: The session that it is of.
        content: What it says under `text`, and whatever else belongs to it; without a `text` all of it is read.
        summary: In a few words; the beginning of its text where nobody gave one.
        keywords: Words it is about; those of its text where nobody gave any.
        importance_score: 0..1. One that is given is kept and wins; with None it is calculated whenever it is asked for.
        access_count, last_accessed: How often it was retrieved, and when last.
        source: What made it, such as `cognitive_agent`.
        related_entries, parent_entry, child_entries: Ids of others.
        text_embedding: None: vectors are kept in the index.
        semantic_tags: Its tags.
        temporal_context: What is known of the time it is about.
        created_at, updated_at: When it was stored, and changed by a store; given by that.
        expires_at: From when on it is found no more.
        archived: Whether it lies in the archive.
        pinned: Whether it is critical: never proposed for deletion.
        record_id: Of the record that it is a view of; given by the store.
        relevance: How well it answers what was asked, 0..1; None where nothing was.
    """

    entry_id: str = ""
    entry_type: str = MemoryEntryType.KNOWLEDGE
    timestamp: datetime = field(default_factory=utc_now)
    session_id: str = ""
    content: dict[str, Any] = field(default_factory=dict)
    summary: str = ""
    keywords: list[str] = field(default_factory=list)
    importance_score: float | None = None
    access_count: int = 0
    last_accessed: datetime | None = None
    source: str = ""
    related_entries: list[str] = field(default_factory=list)
    parent_entry: str | None = None
    child_entries: list[str] = field(default_factory=list)
    text_embedding: list[float] | None = None
    semantic_tags: list[str] = field(default_factory=list)
    temporal_context: dict[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None
    updated_at: datetime | None = None
    expires_at: datetime | None = None
    archived: bool = False
    pinned: bool = False
    record_id: str = ""
    relevance: float | None = None

    @property
    def text(self) -> str:
        """Its words."""
        return text_of(self.content, self.summary)


def text_of(content: Mapping[str, Any], summary: str = "") -> str:
    """Return the words of an entry: its `text`, else all that its content has, a line each, else its summary."""
    text = content.get(TEXT)
    if isinstance(text, str) and text.strip():
        return text
    others = {key: value for key, value in content.items() if key != TEXT}
    lines = [
        f"{key}: {each if isinstance(each, str) else json.dumps(each, default=str)}" for key, each in others.items()
    ]
    return "\n".join(lines) or summary


def record_id_of(entry_id: str, group: str = "") -> str:
    """Return the id of the memory of an entry: its own, or one made of the id that a program gave it in a group."""
    return entry_id if is_record_id(entry_id) else derived_id("mem-", "memory_store", group, entry_id)


def is_record_id(entry_id: str) -> bool:
    """Return True if this has the form of an id of ours."""
    return re.fullmatch(r"[a-z]{3}-[0-9a-f]{12}", entry_id) is not None


def checked(entry: MemoryEntry) -> MemoryEntry:
    """Return an entry that can be stored.

    Raises:
        ValidationError: Its type is unknown, or it has no words.
    """
    if not isinstance(entry, MemoryEntry):
        raise ValidationError(f"Nothing was stored: an entry is a MemoryEntry, got {type(entry).__name__}.")
    if entry.entry_type not in ENTRY_TYPES:
        raise ValidationError(
            f"Nothing was stored: there is no entry type {quoted(str(entry.entry_type))}.",
            code="unknown_entry_type",
            recovery=f"There are: {', '.join(ENTRY_TYPES)}.",
        )
    if not isinstance(entry.content, dict) or not entry.text.strip():
        raise ValidationError(
            "Nothing was stored: an entry has words, as in content={'text': 'Maria likes tea.'}.", code="empty_entry"
        )
    return entry


def fields_of(entry: MemoryEntry, now: datetime, group: str = "") -> dict[str, Any]:
    """Return the fields of the memory that keeps an entry of a group, for `MemoryService.store`.

    A correction supersedes its parent, where that is a memory.
    """
    parent = entry.parent_entry or ""
    corrects = entry.entry_type == MemoryEntryType.CORRECTION and is_memory_id(parent)
    fields: dict[str, Any] = {
        "content": entry.text,
        "category": CATEGORY_OF[entry.entry_type],
        "tags": labels_of(entry),
        "timestamp": min(as_utc(entry.timestamp), now),
        "source": {"kind": "user" if entry.source.startswith("user") else "assistant", "detail": entry.source},
        "metadata": metadata_of(entry, corrects=corrects),
        "links": links_of(entry),
        "pinned": entry.pinned,
    }
    if entry.entry_id:
        fields["id"] = record_id_of(entry.entry_id, group)
    if corrects:
        fields["supersedes"] = parent
    optional: dict[str, Any] = {
        "group": group or None,
        "importance": entry.importance_score,
        "expires_at": entry.expires_at,
    }
    if entry.session_id:
        optional["created_by_session"] = entry.session_id
    return fields | {name: value for name, value in optional.items() if value is not None}


def metadata_of(entry: MemoryEntry, *, corrects: bool = False) -> dict[str, Any]:
    """Return what a record keeps of an entry that has no field of its own; a type where nothing else says it."""
    outside = {
        name: [one for one in ids if not is_record_id(one)]
        for name, ids in (
            (RELATED, entry.related_entries),
            (PARENT, _some(entry.parent_entry)),
            (CHILD, entry.child_entries),
        )
    }
    known: dict[str, Any] = {
        EXTERNAL_ID: "" if is_record_id(entry.entry_id) else entry.entry_id,
        _SUMMARY: entry.summary,
        _KEYWORDS: list(entry.keywords),
        _CONTENT: {key: value for key, value in entry.content.items() if key != TEXT},
        _TEMPORAL: dict(entry.temporal_context),
        _OUTSIDE: {name: ids for name, ids in outside.items() if ids},
        OUTCOME: entry.entry_type if entry.entry_type in _FROM_CATEGORY else "",
        ENTRY_TYPE: entry.entry_type if entry.entry_type == MemoryEntryType.CORRECTION and not corrects else "",
    }
    return {name: value for name, value in known.items() if value}


def labels_of(entry: MemoryEntry) -> list[str]:
    """Return the tags of the record of an entry."""
    return list(dict.fromkeys([*entry.semantic_tags, *entry.keywords]))


def said_besides(entry: MemoryEntry, record: Record) -> dict[str, Any]:
    """Return what an entry says of itself that the record of a turn or a document was not given yet."""
    links = links_of(entry)
    said: dict[str, Any] = {
        "importance": entry.importance_score,
        "expires_at": entry.expires_at,
        "pinned": entry.pinned or None,
        "links": [*record.links, *links] if links else None,
    }
    return {name: value for name, value in said.items() if value is not None}


def links_of(entry: MemoryEntry) -> list[dict[str, str]]:
    """Return the links of the record of an entry to others that have a record."""
    named = [(RELATED, entry.related_entries), (PARENT, _some(entry.parent_entry)), (CHILD, entry.child_entries)]
    return [{"rel": rel, "id": one} for rel, ids in named for one in ids if is_record_id(one)]


def entry_of(
    record: Record, now: datetime, *, text: str = "", relevance: float | None = None, archived: bool = False
) -> MemoryEntry:
    """Return the view of a record.

    Args:
        record: A memory, an episode, a resource or a summary.
        now: The present, from which its importance is calculated.
        text: All of its words, where the record holds a part.
        relevance: How well it answers what was asked.
        archived: Whether it lies in the archive.
    """
    said = record.metadata
    words = text or str(getattr(record, "content", ""))
    keywords = _strings(said.get(_KEYWORDS))
    parents = _ends(record, PARENT) or _some(record.supersedes)
    return MemoryEntry(
        entry_id=external_id_of(record),
        entry_type=type_of(record),
        timestamp=record.moment,
        session_id=record.created_by_session,
        content={TEXT: words, **_mapping(said.get(_CONTENT))},
        summary=str(said.get(_SUMMARY) or _beginning(words)),
        keywords=keywords or keywords_of(words),
        importance_score=importance_of(record, now),
        access_count=record.access_count,
        last_accessed=record.last_accessed,
        source=record.source.detail or record.source.kind,
        related_entries=_ends(record, RELATED),
        parent_entry=parents[0] if parents else None,
        child_entries=_ends(record, CHILD),
        semantic_tags=[tag for tag in record.tags if tag not in {one.casefold() for one in keywords}],
        temporal_context=_mapping(said.get(_TEMPORAL)),
        created_at=record.timestamp,
        updated_at=_changed_at(record),
        expires_at=record.expires_at,
        archived=archived,
        pinned=record.pinned,
        record_id=record.id,
        relevance=relevance,
    )


def external_id_of(record: Record) -> str:
    """Return the id that a program gave a record; its own where it gave none, or one that was taken for a secret."""
    given = record.metadata.get(EXTERNAL_ID)
    return given if isinstance(given, str) and given and "[redacted:" not in given else record.id


def keywords_of(text: str) -> list[str]:
    """Return the first ten words of a text that are no function words, in lower case, each once."""
    words = (word.casefold() for word in _WORD.findall(text))
    return list(dict.fromkeys(word for word in words if word not in STOP_WORDS and len(word) > 1))[:_MOST_KEYWORDS]


def check_entry_id(entry_id: object) -> str:
    """Return an id that may be looked up.

    Raises:
        ValidationError: It is no text, or empty.
    """
    if not isinstance(entry_id, str) or not entry_id:
        raise ValidationError(f"The id of an entry is a text, got {type(entry_id).__name__}.")
    check_id(entry_id)
    return entry_id


def _ends(record: Record, rel: str) -> list[str]:
    linked = [link.id for link in record.links if link.rel == rel and is_told(link.rel)]
    return [*linked, *_strings(_mapping(record.metadata.get(_OUTSIDE)).get(rel))]


def _changed_at(record: Record) -> datetime:
    """Return when a store changed a record last; when it was stored, if none did."""
    said = record.metadata.get(CHANGED_AT)
    try:
        return as_utc(datetime.fromisoformat(said)) if isinstance(said, str) else record.timestamp
    except ValueError:
        return record.timestamp


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SUMMARY_CHARS else f"{line[: _SUMMARY_CHARS - 1].rsplit(' ', 1)[0]}…"


def _some(value: str | None) -> list[str]:
    return [] if value is None else [value]


def _strings(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
