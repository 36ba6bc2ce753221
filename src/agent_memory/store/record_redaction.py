"""Records and fields without secrets; everything that is stored has passed here.

The only module that makes `Redacted`. Storage cleans everything that is not marked so. Secrets are found by
`redaction`.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import pydantic

from agent_memory.errors import ValidationError
from agent_memory.late import compile_late
from agent_memory.models import Kind, Record, describe
from agent_memory.models.record import IdOf
from agent_memory.redaction import Redactor, SecretRedactor, redact_label, redact_path, redact_value
from agent_memory.redaction.findings import MARKER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.models import Link

T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R", bound=Record)

Aim = typing.Literal["stored", "changed"]
"""Intended operation, which an error says was not done."""

_REDACTOR: Final = SecretRedactor()
_PUNCTUATION: Final = compile_late(r"[\W_]+")
_WORD: Final = compile_late(r"(?<!\w)\w*[^\W\d_]\w*")
_FEW_WORDS: Final = 2
"""Words such as "my" and "is" next to a label; from three on a text may say what the secret is for."""
_MAX_LABEL: Final = 160
"""Characters of a text that may be a label and its secret alone."""
_CLOSED_TYPES: Final = (datetime, bool, int, float, type(None))
# A name that a person or a model invents: words, perhaps with a number. Not a password or a key.
_NAME: Final = compile_late(r"(?=.{1,40}$)[a-z]{1,24}\d?(?:_(?:[a-z]{1,24}\d?|\d{1,4}))*")
_DRAFT: Final = "draft_of_this"
"""A value that every required field takes, names and sentences alike."""
_SESSIONS: Final = frozenset({"created_by_session", "group"})
"""Fields that name sessions, or a person and a session."""
_PATHS: Final = frozenset({"path", "path_parts"})
"""Keys of metadata that have the absolute path of a file, as a text or as its names."""
_FIXED_LABEL: Final = compile_late(
    r"rel|id|said|kind|detail|[a-z]{3}-[0-9a-f]{12}|user|assistant|tool|import|extraction"
    r"|from|part_of|covers|names|subject|object|quotes|rules|passage"
)
"""Names of fields in links and sources, IDs of records, and words that this package writes there."""
_ROOT: Final = compile_late(r"[/~]|[A-Za-z]:[/\\]")
_SESSION: Final = compile_late(
    # UUIDs, hex with an agent's name, ULIDs: generated, but not to keep anything secret
    r"(?i)(?:[a-z]{1,16}[-_:])?(?:[0-9a-f]{6,64}(?:-[0-9a-f]{4,64}){0,7}|[0-9A-HJKMNP-TV-Z]{26})(?:[_-][a-z][a-z_-]{0,63})?"
    # words and a number, such as session-12: known without the redactor, which takes 70 ms to load
    r"|(?-i:(?=.{1,40}$)[a-z]{1,24}(?:[_-][a-z]{1,24})*(?:[_-]?\d{1,4})?)"
)


@dataclass(frozen=True, slots=True)
class Redacted(Generic[T_co]):
    """A value without secrets; only the functions below make one.

    Attributes:
        value: A record, or fields of one.
        kinds: Kinds of secrets that were taken out of it.
    """

    value: T_co
    kinds: tuple[str, ...] = ()


@functools.cache
def text_fields(kind: Kind[Any]) -> tuple[str, ...]:
    """Return the fields of a kind that can hold a secret.

    Found in the model, so that a new field is cleaned without further code. Without `agent_id`, which names the folder:
    a record of another agent is refused.
    """
    fields = kind.model.model_fields.items()
    return tuple(name for name, field in fields if name != "agent_id" and _takes_text(field))


@functools.cache
def _prose(kind: Kind[Any]) -> frozenset[str]:
    """Return the fields with prose around a secret; the others are labels."""
    return frozenset({kind.text, *kind.prose, "metadata"})


def redact_record(kind: Kind[R], record: R, redactor: Redactor | None = None) -> Redacted[R]:
    """Return a record without secrets; itself if there are none.

    Raises:
        ValidationError: It is nothing but a secret, or the rest breaks the data model.
    """
    if not isinstance(record, kind.model):
        name = kind.model.__name__
        raise ValidationError(
            f"A storage keeps a {name}, got {type(record).__name__}.",
            recovery=f"Make one with {name}(agent_id=…, {kind.text}=…), or give the fields to MemoryService.store.",
        )
    values = record.model_dump(include=set(text_fields(kind)), exclude_defaults=True)
    cleaned, kinds = _remove_secrets(kind, values, redactor or _REDACTOR)
    if not kinds:
        return Redacted(record)
    return Redacted(validate_record(kind.model, {**record.model_dump(), **cleaned}), kinds)


def redact_fields(
    kind: Kind[Any], values: Mapping[str, Any], redactor: Redactor | None = None
) -> Redacted[dict[str, Any]]:
    """Return fields, in any form the model takes, without secrets.

    Raises:
        ValidationError: A value is wrong, or the text is nothing but a secret.
    """
    if not isinstance(values, Mapping):
        raise ValidationError(
            f"Nothing was changed: the new fields of a {kind.name} are a mapping, got {type(values).__name__}.",
            recovery=f"Give the fields and their values, as in {{'{kind.text}': '…'}}.",
        )
    texts = {name: values[name] for name in text_fields(kind) if values.get(name)}
    drafts = {name: _DRAFT for name, field in kind.model.model_fields.items() if field.is_required()}
    checked = validate_record(kind.model, {**drafts, "id": kind.new_id(), **texts}, "changed")
    cleaned, kinds = _remove_secrets(kind, _get_texts(kind, texts, checked), redactor or _REDACTOR)
    return Redacted({**values, **cleaned}, kinds)


def make_record(
    kind: Kind[R],
    values: Mapping[str, Any],
    agent_id: str,
    redactor: Redactor | None = None,
    *,
    is_text_clean: bool = False,
) -> Redacted[R]:
    """Build a record without secrets from fields of any form.

    Validated first, so that the redacted text is bounded, and again only if a secret was removed.

    Args:
        kind: Kind of the record.
        values: Fields of the record.
        agent_id: Name of the agent.
        redactor: Removes secrets; the default one if omitted.
        is_text_clean: True if the text is the beginning of one that was redacted.

    Raises:
        ValidationError: Names the field and the rule, not the value; or the content is nothing but a secret.
    """
    owned = {**values, "agent_id": agent_id}
    record = validate_record(kind.model, owned)
    texts = _get_texts(kind, owned, record)
    if is_text_clean:
        texts.pop(kind.text, None)
    cleaned, kinds = _remove_secrets(kind, texts, redactor or _REDACTOR)
    return Redacted(validate_record(kind.model, {**owned, **cleaned}) if kinds else record, kinds)


def make_unchanged(
    kind: Kind[R], values: Mapping[str, Any], agent_id: str, names: Iterable[str], *, may_redact: bool = True
) -> Redacted[R]:
    """Build a record that is unchanged except for markers of secrets.

    Names are never changed, since two of them could become equal.

    Args:
        kind: Kind of the record.
        values: Fields. The text field may be a value of JSON, which is stored as text.
        agent_id: Name of the agent.
        names: Names that are in the fields.
        may_redact: False to refuse a content with a secret.

    Raises:
        ValidationError: A field breaks a rule, a name has a secret, or the content has one and may not be redacted.
    """
    parts = {name: redact_value(values[name], _REDACTOR) for name in (kind.text, "metadata") if name in values}
    kinds = tuple(dict.fromkeys(secret for _, secrets in parts.values() for secret in secrets))
    named = [secret for name in names for secret in redact_path(name, _REDACTOR).kinds]
    if named or (kinds and not may_redact):
        what = "name" if named else "content"
        raise ValidationError(
            f"Nothing was stored: the {what} has a secret ({', '.join(dict.fromkeys(named) or kinds)}).",
            code="secret_refused",
            recovery="Store it without the secret, and where the secret is kept.",
        )
    cleaned = {name: value for name, (value, _) in parts.items()}
    if not isinstance(cleaned[kind.text], str):
        cleaned[kind.text] = _write_json(cleaned[kind.text])
    return Redacted(validate_record(kind.model, {**values, **cleaned, "agent_id": agent_id}), kinds)


def _write_json(value: Any) -> str:
    """Return JSON, with escapes only for half surrogate pairs."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def with_fields(record: Redacted[R], **values: Any) -> Redacted[R]:
    """Return a record with other values in fields without text."""
    assert not any(_takes_text(type(record.value).model_fields[name]) for name in values)
    return Redacted(record.value.model_copy(update=values), record.kinds)


def with_own_links(record: Redacted[R], links: Sequence[Link]) -> Redacted[R]:
    """Return a record with other links, which have no secrets.

    They are the record's own, or this program made them.
    """
    return Redacted(record.value.model_copy(update={"links": list(links)}), record.kinds)


def join_fields(fields: Redacted[dict[str, Any]], further: Redacted[dict[str, Any]]) -> Redacted[dict[str, Any]]:
    """Join two mappings of fields; the second has priority."""
    return Redacted({**fields.value, **further.value}, tuple(dict.fromkeys((*fields.kinds, *further.kinds))))


def clean_record(kind: Kind[R], record: R | Redacted[R]) -> R:
    """Return a record without secrets; a `Redacted` one is unchanged.

    Raises:
        ValidationError: It is nothing but a secret, or the rest breaks the data model.
    """
    return (record if isinstance(record, Redacted) else redact_record(kind, record)).value


def clean_records(kind: Kind[R], records: Iterable[R | Redacted[R]]) -> list[R]:
    """Return records that may be stored; see `clean_record`.

    Raises:
        ValidationError: The first record that may not be stored; or these are not records.
    """
    if not isinstance(records, Iterable):
        raise ValidationError(
            f"Nothing was stored: the records of one change are a list, got {type(records).__name__}.",
            recovery=f"Give a list of each {kind.model.__name__} to be stored; an empty one stores nothing.",
        )
    return [clean_record(kind, record) for record in records]


def clean_fields(kind: Kind[Any], values: Mapping[str, Any] | Redacted[dict[str, Any]]) -> Mapping[str, Any]:
    """Return fields that may be stored; see `clean_record`.

    Raises:
        ValidationError: A value is wrong, or the text is nothing but a secret.
    """
    return (values if isinstance(values, Redacted) else redact_fields(kind, values)).value


def redact_session(name: Any, redactor: Redactor = _REDACTOR) -> tuple[Any, tuple[str, ...]]:
    """Return the name of a session without secrets, and their kinds.

    It may have a tenant before it.

    Generated names stay: two groups with redacted names would be one.
    """
    if isinstance(name, str) and ":" in name and not redactor.redact(name).kinds:
        parts = [redact_label(part, redactor, _SESSION) for part in name.split(":", 1)]
        return ":".join(text for text, _ in parts), tuple(dict.fromkeys(kind for _, kinds in parts for kind in kinds))
    return redact_label(name, redactor, _SESSION)


def _remove_secrets(
    kind: Kind[Any], values: Mapping[str, Any], redactor: Redactor
) -> tuple[dict[str, Any], tuple[str, ...]]:
    cleaned: dict[str, Any] = {}
    kinds: dict[str, None] = {}
    for name, value in values.items():
        if name == "metadata":
            cleaned[name], secret_kinds = _redact_metadata(value, redactor)
        elif name == "source" and _is_file(value, redactor):
            cleaned[name], secret_kinds = value, ()
        elif name in _prose(kind):
            cleaned[name], secret_kinds = redact_value(value, redactor)
        elif name in _names(kind):
            cleaned[name], secret_kinds = _clean_name(value, _names(kind)[name])
        elif name in _SESSIONS:
            cleaned[name], secret_kinds = redact_session(value, redactor)
        else:
            allowed = _FIXED_LABEL if name in {"links", "source"} else None
            cleaned[name], secret_kinds = redact_label(value, redactor, allowed)
        if name == kind.text and secret_kinds and _is_only_secret(str(cleaned[name])):
            raise ValidationError(
                f"The text is only a secret ({', '.join(secret_kinds)}); secrets are never stored.",
                code="only_secret",
                recovery="Store what the secret is for and where it is kept, without its value.",
            )
        kinds.update(dict.fromkeys(secret_kinds))
    return cleaned, tuple(kinds)


def _redact_metadata(value: Any, redactor: Redactor) -> tuple[Any, tuple[str, ...]]:
    """Return metadata without secrets; a path is checked by its names."""
    if not isinstance(value, Mapping):
        return redact_value(value, redactor)
    rest = {key: entry for key, entry in value.items() if not _is_path(key, entry)}
    cleaned, secret_kinds = redact_value(rest, redactor)
    kinds = dict.fromkeys(secret_kinds)
    for key in _PATHS & value.keys():
        if _is_path(key, value[key]):
            names = value[key] if isinstance(value[key], list) else [value[key]]
            redactions = [redact_path(name, redactor) for name in names]
            texts = [redaction.text for redaction in redactions]
            cleaned[key] = texts if isinstance(value[key], list) else texts[0]
            kinds.update(dict.fromkeys(kind for redaction in redactions for kind in redaction.kinds))
    return cleaned, tuple(kinds)


def _is_file(value: Any, redactor: Redactor) -> bool:
    """Return True for a file as source without a secret."""
    detail = value.get("detail", "") if isinstance(value, Mapping) and value.get("kind") == "import" else None
    return isinstance(detail, str) and not redact_path(detail, redactor).kinds


def _is_path(key: Any, value: Any) -> bool:
    """Return True for an absolute path in metadata."""
    names = value if isinstance(value, list) else [value]
    is_text = bool(names) and all(isinstance(name, str) for name in names)
    return key in _PATHS and is_text and _ROOT.match(names[0]) is not None


def _is_only_secret(text: str) -> bool:
    """Return True if a redacted text has only markers and labels.

    The label may have two more words.
    """
    before, marker, after = MARKER.sub("\0", text).partition("\0")
    if not _PUNCTUATION.sub("", before + after):
        return True
    if not marker or "\0" in after or len(text) > _MAX_LABEL:
        return False
    from agent_memory.redaction.keywords import remove_labels  # its patterns load only for a text with a secret

    sides = [_WORD.findall(remove_labels(side)) for side in (before, after)]
    is_labelled = sum(map(len, sides)) < len(_WORD.findall(f"{before} {after}"))
    return is_labelled and not all(sides) and sum(map(len, sides)) <= _FEW_WORDS


def _get_texts(kind: Kind[R], values: Mapping[str, Any], record: R) -> dict[str, Any]:
    """Return the text fields of `values` as plain JSON.

    `record` was made from them.

    In their original form, if possible: the model folds tags, and a key in lower case is harder to detect.
    """
    texts = {name: values[name] for name in text_fields(kind) if values.get(name)}
    odd = {name for name, value in texts.items() if not _is_json(value)}
    return {**texts, **record.model_dump(include=odd)} if odd else texts


@functools.cache
def _names(kind: Kind[Any]) -> dict[str, Any]:
    """Return the defaults of text fields with a pattern."""
    fields = ((name, kind.model.model_fields[name]) for name in text_fields(kind))
    return {
        name: field.default
        for name, field in fields
        if any(hasattr(rule, "pattern") for rule in _expand_rules(field.metadata))
    }


def _clean_name(value: Any, default: Any) -> tuple[Any, tuple[str, ...]]:
    """Return a name that cannot be a secret, or the default.

    A marker is not a name.
    """
    if not isinstance(value, str) or _NAME.fullmatch(value):
        return value, ()
    return default, ("high-entropy",)


def _expand_rules(rules: Iterable[Any]) -> list[Any]:
    return [part for rule in rules for part in getattr(rule, "metadata", None) or [rule]]


def validate_record(model: type[R], values: Mapping[str, Any], aim: Aim = "stored") -> R:
    """Build a record from values.

    Raises:
        ValidationError: With the field and the rule, not the value.
    """
    try:
        return model.model_validate(dict(values))
    except pydantic.ValidationError as error:
        raise ValidationError(f"Nothing was {aim}: {describe(error)}.") from None


def _takes_text(declared: Any, rules: Sequence[Any] = ()) -> bool:
    """Return True unless a type surely takes no free text."""
    if isinstance(declared, pydantic.fields.FieldInfo):
        return _takes_text(declared.annotation, declared.metadata)
    if any(isinstance(rule, IdOf) for rule in rules):
        return False
    origin, parts = typing.get_origin(declared), typing.get_args(declared)
    if origin is typing.Annotated:
        return _takes_text(parts[0], _expand_rules(parts[1:]))
    if origin is typing.Literal:
        return False
    if isinstance(declared, type) and issubclass(declared, pydantic.BaseModel):
        parts = tuple(declared.model_fields.values())
    elif origin not in {typing.Union, types.UnionType, list, dict}:
        return not (isinstance(declared, type) and issubclass(declared, _CLOSED_TYPES))
    return any(_takes_text(part) for part in parts)


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return isinstance(value, str | int | float) or value is None
