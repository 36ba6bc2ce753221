"""Kinds from conversations: entities, their mentions, relations and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind, R
from agent_memory.models.knowledge import Name
from agent_memory.models.record import MAX_GROUP_CHARS, IdOf, Record, group_facets
from agent_memory.models.text import check_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agent_memory.models.record import Facet

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
        default_factory=list, max_length=_MAX_VALUES
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
    at: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
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
