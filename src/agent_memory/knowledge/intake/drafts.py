"""Records that may be stored, made of texts that came in.

Texts are bounded, normalized and redacted. An ID is made of what the record is part of, its place and its text, so that
ingesting the same again finds the stored record.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Generic

from agent_memory.errors import ValidationError
from agent_memory.models import (
    EPISODE,
    MAX_LINE_CHARS,
    MAX_TEXT_CHARS,
    PART_OF,
    RESOURCE,
    Episode,
    Resource,
    build_offset,
    check_text,
    derived_id,
)
from agent_memory.models.kind import R
from agent_memory.store.record_redaction import Redacted, make_record, redact_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, tzinfo

    from agent_memory.journal.purge_list import PurgeIndex
    from agent_memory.models import Kind, SourceKind, Trust
    from agent_memory.redaction import Redactor


RESOURCE_TYPES: Final = ("conversation", "document", "config", "feedback")
"""Types of what a user gives. Texts of another type, such as mails and web pages, have low trust."""
UNKNOWN: Final = "unknown"
"""Role of words without a known speaker: they are untrusted."""
PERSON: Final = "person"
"""Role of a named person, not known to be the user."""
FORMAT: Final = "format"
"""Key of the metadata that names the format of a conversation."""
PURGED: Final = "purged"
"""Code of a text that was purged, and of a draft without its purged words."""
_TITLE, _SPEAKER = 300, 200
"""Characters of a title and of a name that are kept."""
_SEEN: Final = 20
"""How many times as many are looked at for secrets."""
_SOURCES: Final[Mapping[str, SourceKind]] = {"user": "user", "assistant": "assistant", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class ReceivedTurn:
    """One turn of a conversation, or one event, as it came in.

    Attributes:
        text: What was said, at most 1,000,000 characters.
        role: user, assistant, tool, system, person (a named person, not known to be the user) or unknown.
        speaker: Name of the speaker.
        said_at: When it was said.
        event_type: Type of an event; empty for a message.
        trust: Highest trust of the words, whatever the speaker.
        metadata: What else is known of it, as plain JSON.
        tags: Words it is about.
    """

    text: str
    role: str = UNKNOWN
    speaker: str = ""
    said_at: datetime | None = None
    event_type: str = ""
    trust: Trust = "high"
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceivedDocument:
    """A text as it came in, at most 1,000,000 characters.

    Attributes:
        text: Whole text of the document.
        title: Title of the document.
        resource_type: Type of the resource; of another type than `RESOURCE_TYPES` it has low trust.
        said_at: When it was written.
        tags: Words it is about.
        metadata: What else is known of it, as plain JSON; `path` is the absolute path of its file.
    """

    text: str
    title: str = ""
    resource_type: str = "document"
    said_at: datetime | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SkippedPart:
    """Unreadable part of a file; the rest is ingested.

    Attributes:
        place: Where it is, such as "line 3".
        code: Why it cannot be read.
        detail: Reason with names from the file; if empty, the code has the reason.
    """

    place: str
    code: str = "damaged_part"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """Common fields of ingested records.

    Attributes:
        trust: Of the words at most.
        session: In which it came.
        group: To which it belongs: `tenant:session`.
        file: Name of the file that it was read from; empty for what was handed over.
        now: Present moment, UTC.
        zone: Time zone of moments without an offset, or None for UTC.
        tags, metadata: Of the resource.
        keeps_purged: False to leave out words that were purged.
        text_origin: Way by which the texts came in, as `TextOrigin` prints it; empty if unknown.
    """

    trust: Trust
    now: datetime
    session: str = ""
    group: str = ""
    file: str = ""
    zone: tzinfo | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    keeps_purged: bool = True
    text_origin: str = ""


@dataclass(frozen=True, slots=True)
class RecordDraft(Generic[R]):
    """A record that may be stored.

    Attributes:
        record: Record to store.
        text: All of its text where that is longer than the record can hold; else empty.
        redacted: Kinds of secrets that were taken out of it.
        parts: Of what its id is made.
        has_name: Whether its place alone tells it from others, whatever its text is by now: a conversation's title
            may change.
    """

    record: Redacted[R]
    text: str = ""
    redacted: tuple[str, ...] = ()
    parts: tuple[object, ...] = ()
    has_name: bool = False


def draft_resource(
    agent_id: str, document: ReceivedDocument, origin: Origin, redactor: Redactor
) -> RecordDraft[Resource]:
    """Return the resource of a text.

    Raises:
        ValidationError: It is too long, empty, no text, or nothing but a secret.
    """
    long_text, fields, redacted = _texts(document.text, redactor)
    values = _head(origin, document.said_at, "import" if origin.file else "user") | fields
    values |= {} if is_local(document.resource_type) else {"trust": "low"}
    values |= {
        "resource_type": document.resource_type,
        "title": _cut(document.title, _TITLE, redactor),
        "tags": [*origin.tags, *document.tags],
    }
    values["metadata"] = {**origin.metadata, **document.metadata}
    record = make_record(RESOURCE, values, agent_id, redactor, is_text_clean=bool(long_text))
    return _draft(
        record,
        (document.resource_type, origin.group, hash_text(long_text or record.value.content)),
        long_text,
        redacted,
    )


def place_draft(draft: RecordDraft[Resource], place: str, **fields: Any) -> RecordDraft[Resource]:
    """Return a draft with another ID and other fields.

    Args:
        draft: Draft of a document.
        place: What tells it from others with its text: the version before, or a path.
        fields: Values such as `supersedes` and `metadata`.
    """
    parts = (*draft.parts, place)
    record = with_fields(draft.record, id=derived_id(RESOURCE.prefix, *parts), **fields)
    return replace(draft, record=record, parts=parts)


def draft_conversation(
    agent_id: str, title: str, key: str, said_at: datetime | None, origin: Origin, redactor: Redactor
) -> RecordDraft[Resource]:
    """Return the resource of a conversation; its text is the title.

    Args:
        agent_id: Agent that owns the record.
        title: Of the conversation; may be empty.
        key: What it is called where it comes from: the same key is the same conversation.
        said_at: When it began.
        origin: Where it comes from.
        redactor: Takes secrets out of the title.

    Raises:
        ValidationError: A value is wrong.
    """
    values = _head(origin, said_at, "import" if origin.file else "user")
    title = _cut(title, _TITLE, redactor)
    values |= {"content": title or "A conversation", "title": title}
    values |= {"resource_type": "conversation", "tags": list(origin.tags), "metadata": dict(origin.metadata)}
    record = make_record(RESOURCE, values, agent_id, redactor)
    return replace(_draft(record, ("conversation", origin.group, key)), has_name=True)


def draft_episode(
    agent_id: str, turn: ReceivedTurn, part_of: str | None, order: int, origin: Origin, redactor: Redactor
) -> RecordDraft[Episode]:
    """Return the episode of a turn.

    Args:
        agent_id: Agent that owns the record.
        turn: What was said.
        part_of: Id of the resource of its conversation, if it has one.
        order: Its place there.
        origin: Where it comes from.
        redactor: Takes secrets out.

    Raises:
        ValidationError: It is too long, empty, no text, or nothing but a secret.
    """
    long_text, fields, redacted = _texts(turn.text, redactor)
    said_at = localize(turn.said_at or origin.now, origin.zone)
    source = "import" if origin.file else _SOURCES.get(turn.role, "import")
    values = _head(origin, said_at if turn.said_at else None, source) | fields
    values |= {"role": turn.role, "speaker": _cut(turn.speaker, _SPEAKER, redactor), "order": order}
    if turn.metadata or said_at.utcoffset():
        values["metadata"] = {**turn.metadata, **build_offset(said_at)}
    if turn.tags:
        values["tags"] = list(turn.tags)
    if turn.event_type:
        values |= {"content_type": "event", "event_type": turn.event_type}
    if part_of is not None:
        values["links"] = [{"rel": PART_OF, "id": part_of}]
    record = make_record(EPISODE, values, agent_id, redactor, is_text_clean=bool(long_text))
    place = (part_of, order) if part_of is not None else (origin.group, "")
    return _draft(record, (*place, hash_text(long_text or record.value.content)), long_text, redacted)


def get_turn_id(text: str, part_of: str, order: int) -> str:
    """Return the ID of a turn whose text has no secret.

    Raises:
        ValueError: The text cannot be stored.
    """
    return derived_id(EPISODE.prefix, part_of, order, hash_text(_normalize(text)))


def rename_draft(draft: RecordDraft[R], prefix: str, attempt: int) -> RecordDraft[R]:
    """Return a draft with another ID, since its own is taken."""
    return replace(draft, record=with_fields(draft.record, id=derived_id(prefix, *draft.parts, attempt)))


def leave_out_purged(draft: RecordDraft[R], kind: Kind[R], purges: PurgeIndex) -> RecordDraft[R]:
    """Return a draft without purged words, under the same ID.

    Raises:
        ValidationError: Nothing else is in it (`purged`).
    """
    values = draft.record.value.model_dump(mode="json", exclude_defaults=True)
    long_text = purges.spans.hide(draft.text)
    hidden = purges.spans.hide_in(values, 0.0) | ({"content": long_text[:MAX_LINE_CHARS]} if long_text else {})
    changes = {name: value for name, value in hidden.items() if value != values[name]}
    is_purged = bool(changes) and not any(map(str.isalnum, long_text or hidden[kind.text]))
    if is_purged or purges.has(kind.text_of(draft.record.value)):
        raise ValidationError("Nothing was stored: the text was purged.", code=PURGED)
    if not changes and long_text == draft.text:
        return draft
    changes |= {"blob": hash_text(long_text)} if long_text else {}
    record = redact_record(kind, kind.model.model_validate(draft.record.value.model_dump() | changes))
    return replace(draft, record=record, text=long_text, redacted=(*draft.redacted, PURGED))


def _draft(
    record: Redacted[R], parts: tuple[object, ...], long_text: str = "", redacted: tuple[str, ...] = ()
) -> RecordDraft[R]:
    """Return a draft with an ID made of its parts."""
    named = with_fields(record, id=derived_id(record.value.id[:4], *parts))
    return RecordDraft(named, long_text, tuple(dict.fromkeys((*redacted, *record.kinds))), parts)


def _head(origin: Origin, said_at: datetime | None, source: SourceKind) -> dict[str, Any]:
    return {
        "timestamp": origin.now,
        "observed_at": said_at,
        "created_by_session": origin.session,
        "source": {"kind": source, "detail": origin.file},
        "origin": origin.text_origin,
        "trust": origin.trust,
        "group": origin.group,
    }


def localize(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return a moment with its own offset or that of a zone."""
    if moment.tzinfo is None:
        return moment.replace(tzinfo=zone) if zone else moment.astimezone()
    return moment.astimezone(zone) if zone and not moment.utcoffset() else moment


def _cut(text: str, most: int, redactor: Redactor) -> str:
    """Return the beginning of a text, redacted before the cut."""
    bare = text.strip()
    return bare if len(bare) <= most else redactor.redact(bare[: most * _SEEN]).text[:most]


def _texts(text: str, redactor: Redactor) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """Return the redacted long text, the record fields, and the secret kinds."""
    if not isinstance(text, str):
        raise ValidationError(f"Nothing was stored: a text was wanted, got {type(text).__name__}.")
    if len(text) > MAX_TEXT_CHARS:
        raise ValidationError(
            f"Nothing was stored of a text with {len(text):,} characters; one record holds {MAX_TEXT_CHARS:,}.",
            code="too_long",
            recovery="Split it, at its chapters for instance, and take in the parts one by one.",
        )
    try:
        normal = _normalize(text)
    except ValueError as error:
        raise ValidationError(f"Nothing was stored: {error}.") from None
    if len(normal) <= MAX_LINE_CHARS:
        return "", {"content": normal, "chars": len(normal)}, ()  # the record is redacted as a whole
    clean = redactor.redact(normal)
    if len(clean.text) > MAX_TEXT_CHARS:  # markers may be longer than the secrets
        raise ValidationError("Nothing was stored: without its secrets the text is too long.", code="too_long")
    long_text = clean.text if len(clean.text) > MAX_LINE_CHARS else ""
    fields = {"content": clean.text[:MAX_LINE_CHARS], "chars": len(clean.text)}
    return long_text, fields | ({"blob": hash_text(long_text)} if long_text else {}), tuple(clean.kinds)


def _normalize(text: str) -> str:
    return check_text(text.replace("\r\n", "\n"), "the text").strip()


def hash_text(text: str) -> str:
    """Return the SHA-256 of a text, hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_local(resource_type: str) -> bool:
    """Return True for a type of text that a user gives."""
    return resource_type in RESOURCE_TYPES
