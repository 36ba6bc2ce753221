"""Records: common fields, links, facets, and the indexed document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, Self, cast, get_args

import pydantic
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator
from pydantic_core.core_schema import str_schema

from agent_memory.errors import ValidationError
from agent_memory.models.clock import UtcDatetime, to_own_zone, to_text, utc_now
from agent_memory.models.identifiers import (
    AFTER_PROJECT,
    ID_DIGITS,
    MAX_ORIGIN_CHARS,
    VIA,
    OriginKind,
    TextOrigin,
    check_agent_id,
)
from agent_memory.models.text import MARK_CHARS, check_metadata, check_text, remove_invisible
from agent_memory.models.validation import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pydantic._internal._model_construction import ModelMetaclass as _CheckedMeta
    from pydantic_core import CoreSchema

MAX_TAGS: Final = 50
MAX_TAG_CHARS: Final = 64
MAX_GROUP_CHARS: Final = 200

Trust = Literal["high", "medium", "low"]
"""Origin of a record's words: a person (high), the model (medium), or after untrusted input (low)."""
TRUST_ORDER: Final[tuple[Trust, ...]] = ("low", "medium", "high")
SourceKind = Literal["user", "assistant", "tool", "import", "extraction"]
"""Origin of a record's words; `extraction`: an item, extracted from a document or a conversation."""

IDENTITY: Final = frozenset({"id", "agent_id", "timestamp", "created_by_session"})
"""Fields set when a record is stored; no change touches them."""
ACCESS: Final = frozenset({"access_count", "last_accessed"})
"""Fields about how often a record was found; counted, never set by a caller."""
PLACE: Final = frozenset({"pinned", "expires_at", "promoted_at", "evicted_at"})
"""Fields about where and how long a record is shown; changing them makes no statement."""
ESTIMATES: Final = frozenset({"confidence", "importance"})
"""Fields with numbers about a record's content."""

Facet = tuple[str, str]
"""Name and value for filters, such as ("tag", "db")."""
ITEM: Final[Facet] = ("item", "")
"""Facet of items, extracted from documents and conversations; an empty value adds no word to the index."""
GROUP: Final = "group"
"""Name of the facet of one group, `tenant:session`, of those that an agent serves."""
GROUPED: Final[Facet] = ("grouped", "")
"""Facet of records of any group."""
LISTED_BY: Final = "topic"
"""Name of the facet by which records are looked up: a page is made of the records of a topic."""

DERIVED_FROM: Final = "derived_from"
"""Relation of a record to its source: when the source changes, the record is in doubt."""
SUSPECT: Final = "_suspect"
"""Relation of a memory to an older one that may conflict with it; not yet decided."""
BESIDE: Final = "_beside"
"""Relation to an older memory: decided that both hold."""
DISTINCT: Final = "_distinct"
"""Relation to an older memory: decided that they are about different matters."""
REPLACES: Final = "_replaces"
"""Relation to an older memory that was replaced at once by the words of this one; never asked about again."""
_OURS: Final = "_"


new_list: Final[Callable[[], list[Any]]] = lambda: []  # noqa: E731, PIE807 - see below
"""Returns an empty list. To learn how to call `list` itself, pydantic reads the text of its signature, in 4 ms."""


def may_stand_for(trust: Trust, replaced_trust: Trust) -> bool:
    """Return True if words of a trust level may replace others.

    Low trust replaces only low trust.
    """
    return trust != "low" or replaced_trust == "low"


@dataclass(frozen=True, slots=True)
class IdOf:
    """Pydantic annotation of an ID: prefix, `-` and 12 hexadecimal digits.

    The prefix is a pattern. Such a field cannot contain a secret.
    """

    prefix: str

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that checks the form."""
        return str_schema(pattern=f"^(?:{self.prefix})-{ID_DIGITS}$")


class OriginOf(IdOf):
    """Pydantic annotation of a printed `TextOrigin`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that checks the form."""
        pattern = rf"^(?:(?:{self.prefix})(?: [\w.:@ +-]{{1,{MAX_ORIGIN_CHARS}}})?)?\Z"
        return str_schema(pattern=pattern, regex_engine="python-re")  # `TextOrigin` prints with the same `\w`


RecordId = Annotated[str, IdOf("[a-z]{3}")]
OriginText = Annotated[str, OriginOf("|".join(get_args(OriginKind)))]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


if not TYPE_CHECKING:

    class _CheckedMeta(type(BaseModel)):
        """Metaclass of models whose calls raise our errors, not pydantic's.

        `model_validate` raises pydantic's. Hidden from type checkers, which would take its `__call__` for the
        signature of every model.
        """

        def __call__(cls, *args: Any, **fields: Any) -> Any:
            """Create a model.

            Raises:
                ValidationError: Names the field and the rule, not the value (also a ValueError).
            """
            try:
                return super().__call__(*args, **fields)
            except pydantic.ValidationError as error:
                raise ValidationError(f"{cls.__name__}: {describe(error)}.") from None


class ValueModel(BaseModel, metaclass=_CheckedMeta):
    """Immutable model without unknown fields: a mistyped name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Source(ValueModel):
    """Origin of a record; `detail` is the tool, file or rule."""

    kind: SourceKind = "assistant"
    detail: str = Field(default="", max_length=200)


class Link(ValueModel):
    """Named relation to another record.

    Attributes:
        rel: Name of the relation.
        id: ID of the other record.
        said: Mark of that record's text at the time of linking (`content_mark`), or empty.
    """

    rel: str = Field(min_length=1, max_length=64)
    id: RecordId
    said: str = Field(default="", pattern=rf"^(?:[0-9a-f]{{{MARK_CHARS}}})?$")


class LinkedRecord(NamedTuple):
    """One end of a link, as shown with the other end.

    Attributes:
        rel: Name of the relation.
        id: ID of the record at this end.
        text: Text of that record.
        is_incoming: True if that record has the link.
    """

    rel: str
    id: str
    text: str
    is_incoming: bool = False


class Surroundings(NamedTuple):
    """Links and doubts that are shown with a record.

    Attributes:
        links: Its own links first, then those that lead to it.
        doubt: Reason why it may no longer hold, or None.
        disputed: ID of a newer record that may conflict with it, or None.
    """

    links: tuple[LinkedRecord, ...] = ()
    doubt: str | None = None
    disputed: str | None = None


def is_told(rel: str) -> bool:
    """Return True if a relation is shown; internal ones begin with `_`."""
    return not rel.startswith(_OURS)


def listed_as(links: Iterable[Link]) -> set[str]:
    """Return the lookup keys of links: linked IDs and undecided conflicts."""
    ends = [(link.id, link.rel) for link in links]
    return {record_id for record_id, _ in ends} | {rel for _, rel in ends if rel == SUSPECT}


def rests_on(rel: str) -> bool:
    """Return True if a relation, in any spelling, is to a source."""
    return rel.casefold().replace("-", "_").replace(" ", "_") == DERIVED_FROM


def group_facets(group: str) -> tuple[Facet, ...]:
    """Return the facets of a group's records; none for an empty group."""
    return ((GROUP, group), GROUPED) if group else ()


class Document(NamedTuple):
    """Indexed parts of one record.

    A named tuple is created in half the time of a frozen dataclass.

    Attributes:
        id: ID of the record.
        text: Text that is indexed by word, and embedded.
        facets: Names and values for filters; the values except the group's are indexed by word, too.
        timestamp: Aware moment of storing.
        moment: Aware moment of the content; date ranges and ages use it.
        session: Session that created the record; empty if unknown.
        access_count: Number of accesses.
        trust: Origin of the words: `low` after untrusted input.
    """

    id: str
    text: str
    facets: tuple[Facet, ...]
    timestamp: datetime
    moment: datetime
    session: str = ""
    access_count: int = 0
    trust: str = "medium"


def normalise_tags(tags: list[str]) -> list[str]:
    """Return tags in lower case, trimmed, unique, in their first order.

    Control and invisible characters are removed.

    Raises:
        ValueError: More than 50 tags, or a tag of more than 64 characters.
    """
    if len(tags) > MAX_TAGS:
        raise ValueError(f"at most {MAX_TAGS} tags, got {len(tags)}")
    cleaned = [" ".join(_clean_tag(tag).lower().split()) for tag in tags]
    for tag in cleaned:
        if len(tag) > MAX_TAG_CHARS:
            raise ValueError(f"a tag has at most {MAX_TAG_CHARS} characters, got {len(tag)}")
    return list(dict.fromkeys(tag for tag in cleaned if tag))


def _clean_tag(tag: str) -> str:
    if tag.isascii() and tag.isprintable():  # most tags; without this, loading a record takes a fifth longer
        return tag
    return remove_invisible(check_text(tag, "a tag"))


class Record(ValueModel):
    """Common fields of stored records.

    The model of a kind adds its own fields and its form of ID. Immutable: changed through the service or the storage,
    which write the journal. `agent_id` names the record's folder; it is not part of the journal's record.
    """

    agent_id: str
    id: RecordId
    tags: list[str] = Field(default_factory=new_list)
    timestamp: UtcDatetime = Field(default_factory=utc_now)
    observed_at: UtcDatetime | None = None
    last_accessed: UtcDatetime | None = None
    access_count: int = Field(default=0, ge=0)
    created_by_session: str = Field(default="", max_length=200)
    source: Source = Source()
    origin: OriginText = ""
    trust: Trust = "medium"
    confidence: Fraction | None = None
    importance: Fraction | None = None
    links: list[Link] = Field(default_factory=new_list, max_length=100)
    supersedes: RecordId | None = None
    expires_at: UtcDatetime | None = None
    pinned: bool = False
    promoted_at: UtcDatetime | None = None
    evicted_at: UtcDatetime | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    _check_agent = field_validator("agent_id")(check_agent_id)
    _normalise_tags = field_validator("tags")(normalise_tags)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Move the fields of a kind to the front.

        They follow the agent's name. The journal and every answer have this order.
        """
        super().__pydantic_init_subclass__(**kwargs)
        for name in Record.model_fields:
            if name != "agent_id":
                cls.model_fields[name] = cls.model_fields.pop(name)

    @field_validator("metadata", mode="before")
    @classmethod
    def _check_metadata(cls, metadata: object) -> object:
        return check_metadata(metadata) if isinstance(metadata, dict) else metadata

    @field_validator("created_by_session")
    @classmethod
    def _check_session(cls, text: str) -> str:
        return check_text(text)

    def to_record(self) -> dict[str, Any]:
        """Return the journal's `data`: plain JSON without agent, ID and default values."""
        return encode_datetimes(
            self.model_dump(exclude={"agent_id", "id"}, exclude_defaults=True) | {"timestamp": self.timestamp}
        )

    @classmethod
    def from_record(cls, agent_id: str, record_id: str, record: dict[str, Any]) -> Self:
        """Load a record from the journal without fields of newer versions.

        Raises:
            pydantic.ValidationError: The record breaks the data model.
        """
        fields = cls.model_fields  # a local: the lookup costs as much as the rest
        values = {key: value for key, value in record.items() if key in fields}
        return cls.model_validate({**values, "agent_id": agent_id, "id": record_id})

    @property
    def is_item(self) -> bool:
        """True if extracted from a document or conversation, unlike a note."""
        return self.source.kind == "extraction"

    @property
    def is_of_document(self) -> bool:
        """True if extracted from a document."""
        return self.is_item and "speaker" not in self.metadata

    @property
    def belongs_to(self) -> str:
        """The group of the record, or empty."""
        return str(getattr(self, "group", ""))

    @property
    def moment(self) -> datetime:
        """The moment of saying, else of storing."""
        return self.observed_at or self.timestamp

    @property
    def said_at(self) -> datetime:
        """The moment in the zone of its message, else the local one."""
        return to_own_zone(self.moment, self.metadata, None)

    def is_expired(self, now: datetime) -> bool:
        """Return True if `expires_at` has passed."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def facets(self) -> tuple[Facet, ...]:
        """Names and values for filters: tags and `ITEM`; kinds add their own."""
        return *[("tag", tag) for tag in self.tags], *([ITEM] if self.is_item else ())


def get_origin(record: Record) -> TextOrigin:
    """Return the origin of a record's words.

    A record of an earlier version names none. What it says of a user may be pasted, so its origin is unknown then.
    """
    if record.origin:
        return TextOrigin.parse(record.origin)
    source = record.source
    if source.kind == "import":
        return TextOrigin("pasted") if source.detail == "pasted" else TextOrigin("import", source.detail)
    if source.kind == "tool":
        return TextOrigin("tool", source.detail)
    return TextOrigin("model") if source.kind == "assistant" else TextOrigin()


def describe_origin(record: Record) -> str:
    """Return a record's origin; empty if derived or unknown."""
    origin = get_origin(record)
    return "" if origin.kind == "unknown" or (record.is_item and not record.origin) else str(origin)


def mark_origin(record: Record, template: str) -> str:
    """Return a template filled with an origin, except the model's.

    Empty for the model's own words, which most are, and for an unknown origin.

    Args:
        record: Record whose words are quoted.
        template: Text with `{}` for the origin.
    """
    origin = describe_origin(record)
    return template.format(origin) if origin not in {"", "model"} else ""


def is_project_finding(record: Record, project: str) -> bool:
    """Return True if a record comes from output of this project."""
    return (
        bool(project)
        and record.origin.partition(VIA)[0] == AFTER_PROJECT
        and getattr(record, "project", None) == project
    )


def encode_datetimes(values: dict[str, Any]) -> dict[str, Any]:
    """Return values with datetimes as ISO 8601 text, the journal's form."""
    return {key: to_text(value) if isinstance(value, datetime) else value for key, value in values.items()}


def offered_fields(model: type[BaseModel]) -> dict[str, tuple[Any, str]]:
    """Return the fields that tools and commands offer as declared.

    These are fields with a description, which an agent and the help of a command read. A field with more
    operations, such as tags that are added and removed, has no description; its arguments and options are written out.

    Returns:
        Type of an argument that may be left out, and description, by name.
    """
    return {
        name: (cast("Any", field.annotation) | None, field.description)
        for name, field in model.model_fields.items()
        if field.description
    }


def offered_values(record: BaseModel) -> dict[str, Any]:
    """Return a record's values of the offered fields as JSON, without defaults."""
    return record.model_dump(mode="json", include=set(offered_fields(type(record))), exclude_defaults=True)


def view_fields(record: Any, *names: str, **renamed: str) -> dict[str, Any]:
    """Return attributes of a record as JSON values.

    Args:
        record: Any object.
        names: Attributes, which are the keys as well.
        renamed: Attributes by other keys.
    """
    attributes = {**dict(zip(names, names, strict=True)), **renamed}
    return {key: _to_json_value(getattr(record, name)) for key, name in attributes.items()}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return to_text(value)
    if isinstance(value, PurePath):
        return str(value)
    return list(value) if isinstance(value, tuple) else dict(value) if isinstance(value, Mapping) else value
