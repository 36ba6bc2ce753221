"""The kinds of what is known from talk: entities, where they are mentioned, relations in time, and summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from agent_memory.models.clock import UtcDatetime  # noqa: TC001 - pydantic reads it
from agent_memory.models.document import group_facets
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind, R
from agent_memory.models.knowledge import Name  # noqa: TC001 - pydantic reads it
from agent_memory.models.record import MAX_GROUP_CHARS, IdOf, Record
from agent_memory.models.text import check_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agent_memory.models.document import Facet

EntityType = Literal[
    "person", "place", "organisation", "product", "package", "host", "file", "service", "order", "issue", "concept",
    "url", "mail", "version", "name", "other",
]  # fmt: skip
"""A closed list: it labels metrics, and an open one would make a series of each word of a model."""
ENTITY_STAGE: Final = "entities"
"""Name of the stage that extracts entities."""
UNTYPED: Final = frozenset({"name", "other"})
"""Types that say nothing of an entity: `name` where neither a form nor a declaration gives a type."""
RELATION_TYPES: Final = (
    "works_at", "lives_in", "located_in", "reports_to", "married_to", "replaced_by", "manages", "owns", "depends_on",
    "uses", "deployed_on", "member_of", "version_of",
)  # fmt: skip
"""Relations with a series of metrics. Earlier versions read these, and no others, by rules."""
MERGED_INTO: Final = "merged_into"
"""Name of the link of an entity to the one that it is the same as; without the link it is one of its own again."""
NAMES: Final = "names"
SUBJECT: Final = "subject"
OBJECT: Final = "object"
COVERS: Final = "covers"
"""Names of the links of mentions and of relations to entities, and of summaries to what they cover."""
MAX_NAME_CHARS: Final = 200
_MAX_VALUE_CHARS, _MAX_VALUES = 1_000, 50

Value = Annotated[str, Field(max_length=_MAX_VALUE_CHARS)]


class Grouped(Record):
    """A record that may belong to a group, and whose words hold from one moment to another.

    `valid_from` is the first moment at which it holds, `valid_to` the first at which it does not any more; None where
    that is not known.
    """

    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    valid_from: UtcDatetime | None = None
    valid_to: UtcDatetime | None = None

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.valid_from is not None and self.valid_to is not None and self.valid_to < self.valid_from:
            raise ValueError("valid_to is before valid_from")
        return self

    def holds_at(self, moment: datetime) -> bool:
        """Tell whether it holds at a moment."""
        return (self.valid_from is None or self.valid_from <= moment) and (
            self.valid_to is None or moment < self.valid_to
        )

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The group, if there is one, and the tags."""
        return (*group_facets(self.group), *[("tag", tag) for tag in self.tags])


class Entity(Grouped):
    """A person, a place or a thing that was spoken of, and what is known of it.

    One that turned out to be the same as another has a link `merged_into` that one; why stands in `metadata.merge`.
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
    def _name(cls, name: str) -> str:
        if not check_text(name, "a name").strip():
            raise ValueError("a name is only white space")
        return name

    @property
    def merged_into(self) -> str | None:
        """The id of the entity that it is the same as."""
        return next((link.id for link in self.links if link.rel == MERGED_INTO), None)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The type, the group, if there is one, and the tags."""
        return ("entity_type", self.entity_type), *super().facets


class Mentions(Record):
    """The entities that one source names: `content` their names as they stand there, a line each.

    `entities[n]`, a link `names`, is the one that line n names; `at[n]` the character of the source's text at which it
    begins first. Its source is the link `from`.
    """

    content: str = Field(min_length=1)
    at: list[Annotated[int, Field(ge=0)]] = Field(default_factory=list)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    id: Annotated[str, IdOf("men")] = Field(default_factory=lambda: new_id("men-"))
    supersedes: Annotated[str, IdOf("men")] | None = None

    @property
    def entities(self) -> list[str]:
        """The ids of the entities."""
        return _linked(self, NAMES)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The group, if there is one."""
        return group_facets(self.group)


class Relation(Grouped):
    """That one entity, the link `subject`, has to do with another, the link `object`.

    `content` has the words that say so, from the source that is the link `from`.
    """

    relation_type: Name
    content: str = Field(min_length=1, max_length=_MAX_VALUE_CHARS)
    attributes: dict[Annotated[str, Field(max_length=64)], Value] = Field(default_factory=dict, max_length=_MAX_VALUES)
    id: Annotated[str, IdOf("rel")] = Field(default_factory=lambda: new_id("rel-"))
    supersedes: Annotated[str, IdOf("rel")] | None = None

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if not (self.from_id and self.to_id):
            raise ValueError("a relation has a link to its subject and one to its object")
        return self

    @property
    def from_id(self) -> str:
        """The id of the entity of which it is said."""
        return next(iter(_linked(self, SUBJECT)), "")

    @property
    def to_id(self) -> str:
        """The id of the other one."""
        return next(iter(_linked(self, OBJECT)), "")

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The type, the group, if there is one, and the tags."""
        return ("relation_type", self.relation_type), *super().facets


class Summary(Record):
    """What episodes (`level` window) or summaries of them (meta) say, in fewer words; these are its links `covers`."""

    level: Literal["window", "meta"] = "window"
    content: str = Field(min_length=1, max_length=100_000)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    id: Annotated[str, IdOf("sum")] = Field(default_factory=lambda: new_id("sum-"))
    supersedes: Annotated[str, IdOf("sum")] | None = None

    @property
    def covers(self) -> list[str]:
        """The ids of what it is a summary of."""
        return _linked(self, COVERS)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The level, the group, if there is one, and the tags."""
        return ("level", self.level), *group_facets(self.group), *[("tag", tag) for tag in self.tags]


def _linked(record: Record, rel: str) -> list[str]:
    return [link.id for link in record.links if link.rel == rel]


def _others(own: str) -> Callable[[], tuple[Kind[Any], ...]]:
    return lambda: tuple(kind for kind in (ENTITY, MENTIONS, RELATION, SUMMARY) if kind.name != own)


def _kind(name: str, model: type[R], prefix: str, text: str, **more: Any) -> Kind[R]:
    return Kind(name=name, model=model, prefix=prefix, journal="entities.yaml", text=text, beside=_others(name), **more)


ENTITY: Final[Kind[Entity]] = _kind("entity", Entity, "ent-", "name", prose=("attributes",))
MENTIONS: Final[Kind[Mentions]] = _kind("mentions", Mentions, "men-", "content")
RELATION: Final[Kind[Relation]] = _kind("relation", Relation, "rel-", "content", prose=("attributes",))
SUMMARY: Final[Kind[Summary]] = _kind("summary", Summary, "sum-", "content")
ENTITY_KINDS: Final[tuple[Kind[Any], ...]] = (ENTITY, MENTIONS, RELATION, SUMMARY)
"""All of them; they lie in one journal of their own: to ask for an entity nobody reads all that was ever said."""
