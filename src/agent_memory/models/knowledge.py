"""Kinds of knowledge: ingested texts, topics, stage checkpoints, entities, relations and summaries.

A long text is in its own file, named by its sha256; the record has its beginning and the name of the file
(`agent_memory.encryption.blobs`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core.core_schema import str_schema

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind, R
from agent_memory.models.memory import EPISODE_PREFIX
from agent_memory.models.record import (
    MAX_GROUP_CHARS,
    Facet,
    IdOf,
    Record,
    RecordId,
    ValueModel,
    group_facets,
    new_list,
)
from agent_memory.models.text import check_content, check_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import pydantic
    from pydantic_core import CoreSchema


MAX_TEXT_CHARS: Final = 1_000_000
"""Maximum characters of one resource or episode."""
MAX_LINE_CHARS: Final = 8_192
"""Maximum characters of a text in the journal; the rest of a longer one is in a blob."""
PART_OF: Final = "part_of"
"""Name of the link of an episode to the resource of its conversation."""
_TOPIC_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_MAX_TOPIC_CHARS: Final = 64
DERIVED_TOPICS: Final = frozenset({"entity", "hidden_entity", "kept_entity", "document", "conversation", "person"})
"""`source.detail` of topics from documents and conversations, not declared by a person."""
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
EntityType = Literal[
    "person", "place", "organisation", "product", "package", "host", "file", "service", "order", "issue", "concept",
    "url", "mail", "version", "name", "other",
]  # fmt: skip
"""A closed list, since it labels metrics."""
ENTITY_STAGE: Final = "entities"
"""Name of the stage that extracts entities."""
UNTYPED: Final = frozenset({"name", "other"})
"""Types without information: `name` if neither a form nor a declaration gives a type."""
RELATION_TYPES: Final = (
    "works_at", "lives_in", "located_in", "reports_to", "married_to", "replaced_by", "manages", "owns", "depends_on",
    "uses", "deployed_on", "member_of", "version_of",
)  # fmt: skip
"""Relations with a series of metrics. Earlier versions read these, and no others, by rules."""
MERGED_INTO: Final = "merged_into"
"""Name of the link of an entity to the one that it was merged into; removing the link splits them."""
NAMES: Final = "names"
SUBJECT: Final = "subject"
OBJECT: Final = "object"
COVERS: Final = "covers"
"""Names of the links of mentions and of relations to entities, and of summaries to what they cover."""
MAX_NAME_CHARS: Final = 200
_MAX_VALUE_CHARS, _MAX_VALUES = 1_000, 50
Value = Annotated[str, Field(max_length=_MAX_VALUE_CHARS)]


@dataclass(frozen=True, slots=True)
class BlobName(IdOf):
    """Pydantic annotation of a hexadecimal sha256, or empty."""

    prefix: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that checks the form."""
        return str_schema(pattern="^(?:[0-9a-f]{64})?$")


class IngestedText(Record):
    """Ingested text, complete or its beginning."""

    content: str = Field(min_length=1, max_length=MAX_LINE_CHARS)
    blob: Annotated[str, BlobName()] = ""
    chars: int = Field(default=0, ge=0, le=MAX_TEXT_CHARS)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)

    _check_content = field_validator("content")(check_content)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The group, if there is one, and the tags."""
        return (*group_facets(self.group), *[("tag", tag) for tag in self.tags])


class Resource(IngestedText):
    """Ingested document, or a conversation whose turns are episodes.

    `resource_type` is conversation, document, config, feedback or any other name. Its names in other programs are in
    `metadata`.
    """

    resource_type: Name = "document"
    title: str = Field(default="", max_length=300)
    id: Annotated[str, IdOf("res")] = Field(default_factory=lambda: new_id("res-"))
    supersedes: Annotated[str, IdOf("res")] | None = None

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The type, the group, if there is one, and the tags."""
        return ("resource_type", self.resource_type), *super().facets


class Episode(IngestedText):
    """Turn of a conversation, or an event; `order` is its position."""

    content_type: Name = "message"
    event_type: str = Field(default="", max_length=64)
    speaker: str = Field(default="", max_length=200)
    role: Name = "user"  # journals leave defaults out, so this is what stored turns of a user mean; readers state it
    order: int = Field(default=0, ge=0)
    id: Annotated[str, IdOf("epi")] = Field(default_factory=lambda: new_id("epi-"))
    supersedes: Annotated[str, IdOf("epi")] | None = None

    @property
    def conversation(self) -> str | None:
        """The ID of its conversation's resource, or None."""
        return next((link.id for link in self.links if link.rel == PART_OF), None)


class Topic(Record):
    """Subject with a page: `body` in Markdown, made of `item_ids`."""

    name: str = Field(min_length=1, max_length=_MAX_TOPIC_CHARS)
    description: str = Field(min_length=10, max_length=500)
    body: str = Field(default="", max_length=MAX_TEXT_CHARS)
    item_ids: list[RecordId] = Field(default_factory=new_list)
    consolidated_at: UtcDatetime | None = None
    edited_by: str = Field(default="", max_length=200)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    id: Annotated[str, IdOf("top")] = Field(default_factory=lambda: new_id("top-"))
    supersedes: Annotated[str, IdOf("top")] | None = None

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not _TOPIC_NAME.fullmatch(name):
            raise ValueError("a topic's name is words in lower case with _ between them, such as home_network")
        return name

    @field_validator("description", "body")
    @classmethod
    def _check_prose(cls, text: str) -> str:
        return check_text(text)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """Its name, the group, if there is one, and the tags."""
        return (("topic", self.name), *group_facets(self.group), *[("tag", tag) for tag in self.tags])


class StageFailure(ValueModel):
    """Record that a stage failed to process.

    Attributes:
        id: ID of the record.
        attempts: Number of attempts so far.
        code: Code of the last error.
        at: Second of the last attempt, since 1970.
    """

    id: RecordId
    attempts: int = Field(default=1, ge=1)
    code: str = Field(default="", max_length=64)
    at: int = Field(default=0, ge=0)


class StageCheckpoint(Record):
    """Progress of a background stage.

    Attributes:
        through: Number of the last change of its source that is processed, with all before it.
        failures: Failed records, which are retried.
        never: IDs of forgotten results, which are not created again.
    """

    stage: Name
    version: int = Field(default=1, ge=1)
    source_kind: Name
    through: int = Field(default=0, ge=0)
    failures: list[StageFailure] = Field(default_factory=new_list)
    never: list[RecordId] = Field(default_factory=new_list)
    id: Annotated[str, IdOf("mrk")] = Field(default_factory=lambda: new_id("mrk-"))


RESOURCE: Final[Kind[Resource]] = Kind(
    name="resource", model=Resource, prefix="res-", journal="knowledge.yaml", text="content", prose=("title",),
    beside=lambda: (TOPIC,),
)  # fmt: skip


EPISODE: Final = Kind(name="episode", model=Episode, prefix=EPISODE_PREFIX, journal="episodes.yaml", text="content")


TOPIC: Final[Kind[Topic]] = Kind(
    name="topic", model=Topic, prefix="top-", journal="knowledge.yaml", text="body", prose=("description",),
    beside=lambda: (RESOURCE,), withdraw="agent_memory.knowledge.intake.withdrawal:KnowledgeWithdrawal",
    read_ahead=False,
)  # fmt: skip


MARK: Final = Kind(
    name="stage_mark", model=StageCheckpoint, prefix="mrk-", journal="tasks.yaml", text="stage", read_ahead=False
)


class GroupedRecord(Record):
    """Record of a group that holds for a time.

    Attributes:
        group: Group of the record; empty for none.
        valid_from: First moment at which it holds; None if unknown.
        valid_to: First moment at which it no longer holds; None if unknown.
    """

    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    valid_from: UtcDatetime | None = None
    valid_to: UtcDatetime | None = None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.valid_from is not None and self.valid_to is not None and self.valid_to < self.valid_from:
            raise ValueError("valid_to is before valid_from")
        return self

    def holds_at(self, moment: datetime) -> bool:
        """Return True if the record holds at a moment."""
        return (self.valid_from is None or self.valid_from <= moment) and (
            self.valid_to is None or moment < self.valid_to
        )

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The group, if there is one, and the tags."""
        return (*group_facets(self.group), *[("tag", tag) for tag in self.tags])


class Entity(GroupedRecord):
    """Person, place or thing of conversations.

    A merged entity has the link `merged_into`; the reason is in `metadata.merge`.
    """

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
    entity_type: EntityType = "other"
    aliases: list[Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARS)]] = Field(
        default_factory=new_list, max_length=_MAX_VALUES
    )
    attributes: dict[Annotated[str, Field(max_length=64)], Value] = Field(default_factory=dict, max_length=_MAX_VALUES)
    id: Annotated[str, IdOf("ent")] = Field(default_factory=lambda: new_id("ent-"))
    supersedes: Annotated[str, IdOf("ent")] | None = None

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not check_text(name, "a name").strip():
            raise ValueError("a name is only white space")
        return name

    @property
    def merged_into(self) -> str | None:
        """The ID of the entity that it was merged into, or None."""
        return next((link.id for link in self.links if link.rel == MERGED_INTO), None)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The type, the group, if there is one, and the tags."""
        return ("entity_type", self.entity_type), *super().facets


class EntityMentions(Record):
    """Entities that one source, the link `from`, names.

    Attributes:
        content: Names as they are in the source, a line each.
        at: For each line the position of its first occurrence in the source's text.
        group: Group of the source; empty for none.
    """

    content: str = Field(min_length=1)
    at: list[Annotated[int, Field(ge=0)]] = Field(default_factory=new_list)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    id: Annotated[str, IdOf("men")] = Field(default_factory=lambda: new_id("men-"))
    supersedes: Annotated[str, IdOf("men")] | None = None

    @property
    def entities(self) -> list[str]:
        """The IDs of the entities, in the order of the lines."""
        return _list_linked(self, NAMES)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The group, if there is one."""
        return group_facets(self.group)


class Relation(GroupedRecord):
    """Relation of one entity, the link `subject`, to another, the link `object`.

    `content` is the quote from its source, the link `from`.
    """

    relation_type: Name
    content: str = Field(min_length=1, max_length=_MAX_VALUE_CHARS)
    attributes: dict[Annotated[str, Field(max_length=64)], Value] = Field(default_factory=dict, max_length=_MAX_VALUES)
    id: Annotated[str, IdOf("rel")] = Field(default_factory=lambda: new_id("rel-"))
    supersedes: Annotated[str, IdOf("rel")] | None = None

    @model_validator(mode="after")
    def _check_ends(self) -> Self:
        if not (self.from_id and self.to_id):
            raise ValueError("a relation has a link to its subject and one to its object")
        return self

    @property
    def from_id(self) -> str:
        """The ID of the subject."""
        return next(iter(_list_linked(self, SUBJECT)), "")

    @property
    def to_id(self) -> str:
        """The ID of the object."""
        return next(iter(_list_linked(self, OBJECT)), "")

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The type, the group, if there is one, and the tags."""
        return ("relation_type", self.relation_type), *super().facets


class Summary(Record):
    """Summary of episodes (`level` window) or of summaries (meta), the links `covers`."""

    level: Literal["window", "meta"] = "window"
    content: str = Field(min_length=1, max_length=100_000)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    id: Annotated[str, IdOf("sum")] = Field(default_factory=lambda: new_id("sum-"))
    supersedes: Annotated[str, IdOf("sum")] | None = None

    @property
    def covers(self) -> list[str]:
        """The IDs of the summarized records."""
        return _list_linked(self, COVERS)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The level, the group, if there is one, and the tags."""
        return ("level", self.level), *group_facets(self.group), *[("tag", tag) for tag in self.tags]


def _list_linked(record: Record, rel: str) -> list[str]:
    return [link.id for link in record.links if link.rel == rel]


def _get_neighbours(name: str) -> Callable[[], tuple[Kind[Any], ...]]:
    return lambda: tuple(kind for kind in (ENTITY, MENTIONS, RELATION, SUMMARY) if kind.name != name)


def _make_kind(name: str, model: type[R], prefix: str, text: str, **fields: Any) -> Kind[R]:
    beside = _get_neighbours(name)
    return Kind(name=name, model=model, prefix=prefix, journal="entities.yaml", text=text, beside=beside, **fields)


ENTITY: Final[Kind[Entity]] = _make_kind("entity", Entity, "ent-", "name", prose=("attributes",))


MENTIONS: Final[Kind[EntityMentions]] = _make_kind("mentions", EntityMentions, "men-", "content")


RELATION: Final[Kind[Relation]] = _make_kind("relation", Relation, "rel-", "content", prose=("attributes",))


SUMMARY: Final[Kind[Summary]] = _make_kind("summary", Summary, "sum-", "content")


ENTITY_KINDS: Final[tuple[Kind[Any], ...]] = (ENTITY, MENTIONS, RELATION, SUMMARY)
"""All four kinds; they have their own journal, so that a query for an entity reads no episodes."""
