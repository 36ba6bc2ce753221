"""`Record`: what every stored item has in common, whatever its kind, and its form in the journal.

No storage, no clock beyond defaults. A kind's own module adds the fields that are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

import pydantic
from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator
from pydantic_core.core_schema import str_schema

from agent_memory.errors import ValidationError
from agent_memory.models.clock import UtcDatetime, to_own_zone, to_text, utc_now
from agent_memory.models.document import ITEM
from agent_memory.models.identifiers import ID_DIGITS, check_agent_id
from agent_memory.models.invalid import describe
from agent_memory.models.text import MARK_CHARS, check_metadata, check_text, visible

MAX_TAGS: Final = 50
MAX_TAG_CHARS: Final = 64
MAX_GROUP_CHARS: Final = 200

Trust = Literal["high", "medium", "low"]
"""Where a record's words come from: a person (high), the model (medium), or after untrusted input (low)."""
TRUST_ORDER: Final[tuple[Trust, ...]] = ("low", "medium", "high")


def may_stand_for(trust: Trust, other: Trust) -> bool:
    """Tell whether words of one trust may take the place of those of another: low trust only that of low trust."""
    return trust != "low" or other == "low"


SourceKind = Literal["user", "assistant", "tool", "import", "extraction"]
"""Whence a record's words come; `extraction`: it was drawn from a document or a talk, and is an item."""


@dataclass(frozen=True, slots=True)
class IdOf:
    """Declares that a text is an id: a prefix of this form, `-` and 12 hexadecimal digits; it can hold no secret."""

    prefix: str

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """Check the form of the id."""
        return str_schema(pattern=f"^(?:{self.prefix})-{ID_DIGITS}$")


RecordId = Annotated[str, IdOf("[a-z]{3}")]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass as _Checked
    from pydantic_core import CoreSchema

    from agent_memory.models.document import Facet
else:

    class _Checked(type(BaseModel)):
        """Makes a model's call raise our own error for a wrong value; `model_validate` raises pydantic's.

        Unknown to type checkers, which would take its `__call__` for the signature of every model.
        """

        def __call__(cls, *args: Any, **fields: Any) -> Any:
            """Make one.

            Raises:
                ValidationError: Names the field and the rule, not the value (also a ValueError).
            """
            try:
                return super().__call__(*args, **fields)
            except pydantic.ValidationError as error:
                raise ValidationError(f"{cls.__name__}: {describe(error)}.") from None


class Value(BaseModel, metaclass=_Checked):
    """Immutable, closed to unknown fields: a mistyped name is an error, not a silent loss."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Source(Value):
    """Who said it: `kind`, and in `detail` the tool, file or rule it came from."""

    kind: SourceKind = "assistant"
    detail: str = Field(default="", max_length=200)


class Link(Value):
    """A named relation to another record; `said` is a mark of what that said then (see `content_mark`), or empty."""

    rel: str = Field(min_length=1, max_length=64)
    id: RecordId
    said: str = Field(default="", pattern=rf"^(?:[0-9a-f]{{{MARK_CHARS}}})?$")


def normalise_tags(tags: list[str]) -> list[str]:
    """Return tags in lower case, trimmed, unique, in their first order, without what steers or cannot be seen.

    Raises:
        ValueError: More than 50 tags, or one that is longer than 64 characters.
    """
    if len(tags) > MAX_TAGS:
        raise ValueError(f"at most {MAX_TAGS} tags, got {len(tags)}")
    cleaned = [" ".join(_shown(tag).lower().split()) for tag in tags]
    for tag in cleaned:
        if len(tag) > MAX_TAG_CHARS:
            raise ValueError(f"a tag has at most {MAX_TAG_CHARS} characters, got {len(tag)}")
    return list(dict.fromkeys(tag for tag in cleaned if tag))


def _shown(tag: str) -> str:
    if tag.isascii() and tag.isprintable():  # nearly all: reading a record takes a fifth longer without this
        return tag
    return visible(check_text(tag, "a tag"))


class Record(Value):
    """The common head of everything that is stored. A kind's model adds its own fields and its form of id.

    Immutable: changed through the service or the storage, which write the journal. `agent_id` names the folder the
    record lies in; it is not part of the journal's record.
    """

    agent_id: str
    id: RecordId
    tags: list[str] = Field(default_factory=list)
    timestamp: UtcDatetime = Field(default_factory=utc_now)
    observed_at: UtcDatetime | None = None
    last_accessed: UtcDatetime | None = None
    access_count: int = Field(default=0, ge=0)
    created_by_session: str = Field(default="", max_length=200)
    source: Source = Source()
    trust: Trust = "medium"
    confidence: Fraction | None = None
    importance: Fraction | None = None
    links: list[Link] = Field(default_factory=list, max_length=100)
    supersedes: RecordId | None = None
    expires_at: UtcDatetime | None = None
    pinned: bool = False
    promoted_at: UtcDatetime | None = None
    evicted_at: UtcDatetime | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    _agent = field_validator("agent_id")(check_agent_id)
    _tags = field_validator("tags")(normalise_tags)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Put a kind's own fields first, behind the agent's name: so they stand in the journal and in every answer."""
        super().__pydantic_init_subclass__(**kwargs)
        for name in Record.model_fields:
            if name != "agent_id":
                cls.model_fields[name] = cls.model_fields.pop(name)

    @field_validator("metadata", mode="before")
    @classmethod
    def _metadata(cls, metadata: object) -> object:
        return check_metadata(metadata) if isinstance(metadata, dict) else metadata

    @field_validator("created_by_session")
    @classmethod
    def _session(cls, text: str) -> str:
        return check_text(text)

    def to_record(self) -> dict[str, Any]:
        """Return the journal's `data`: plain JSON without agent, id and whatever equals its default."""
        return record_of(
            self.model_dump(exclude={"agent_id", "id"}, exclude_defaults=True) | {"timestamp": self.timestamp}
        )

    @classmethod
    def from_record(cls, agent_id: str, record_id: str, record: dict[str, Any]) -> Self:
        """Rebuild a record from the journal; fields of a newer version are left aside.

        Raises:
            pydantic.ValidationError: The record breaks the data model.
        """
        fields = cls.model_fields  # once: looking it up costs as much as the rest
        known = {key: value for key, value in record.items() if key in fields}
        return cls.model_validate({**known, "agent_id": agent_id, "id": record_id})

    @property
    def is_item(self) -> bool:
        """Whether it was drawn from a document or a talk; an agent's own notes are kept apart from items."""
        return self.source.kind == "extraction"

    @property
    def is_of_document(self) -> bool:
        """Return True if it was drawn from a document."""
        return self.is_item and "speaker" not in self.metadata

    @property
    def belongs_to(self) -> str:
        """The group it belongs to; empty for none."""
        return str(getattr(self, "group", ""))

    @property
    def moment(self) -> datetime:
        """When it was said, else when it was stored."""
        return self.observed_at or self.timestamp

    @property
    def said_at(self) -> datetime:
        """When it was said: with the offset of its message, else in the local zone."""
        return to_own_zone(self.moment, self.metadata, None)

    def is_expired(self, now: datetime) -> bool:
        """Tell whether `expires_at` has passed."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def facets(self) -> tuple[Facet, ...]:
        """Names and values that a search can be limited to: tags, and `ITEM`; a kind's model adds its own in front."""
        return *[("tag", tag) for tag in self.tags], *([ITEM] if self.is_item else ())


def record_of(values: dict[str, Any]) -> dict[str, Any]:
    """Return `values` with each datetime as ISO 8601 text, the form the journal keeps."""
    return {key: to_text(value) if isinstance(value, datetime) else value for key, value in values.items()}
