"""The kinds of what came in from outside and of what is made of it: resources, episodes, topics, and marks of stages.

A text longer than a line should be lies in a file of its own, under its sha256; the record has its beginning and the
name of that file (`agent_memory.knowledge.blobs`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, field_validator
from pydantic_core.core_schema import str_schema

from agent_memory.models.clock import UtcDatetime  # noqa: TC001 - pydantic reads it
from agent_memory.models.document import group_facets
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind
from agent_memory.models.record import MAX_GROUP_CHARS, IdOf, Record, RecordId, Value
from agent_memory.models.text import check_text

if TYPE_CHECKING:
    import pydantic
    from pydantic_core import CoreSchema

    from agent_memory.models.document import Facet

MAX_TEXT_CHARS: Final = 1_000_000
"""Characters of one resource or episode."""
MAX_LINE_CHARS: Final = 8_192
"""Characters of a text that stand in the journal; a longer one lies in a blob."""
PART_OF: Final = "part_of"
"""Name of the link of an episode to the resource of its conversation."""

_TOPIC_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
MAX_NAME_CHARS: Final = 64
DERIVED_TOPICS: Final = frozenset({"entity", "hidden_entity", "kept_entity", "document", "conversation", "person"})
"""`source.detail` of topics whose pages are made of documents and conversations, not declared by a person."""


@dataclass(frozen=True, slots=True)
class BlobName(IdOf):
    """Declares that a text is the sha256 of another one in hexadecimal digits, or empty; it can hold no secret."""

    prefix: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """Check the form."""
        return str_schema(pattern="^(?:[0-9a-f]{64})?$")


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class Text(Record):
    """A text that came in, whole or by its beginning."""

    content: str = Field(min_length=1, max_length=MAX_LINE_CHARS)
    blob: Annotated[str, BlobName()] = ""
    chars: int = Field(default=0, ge=0, le=MAX_TEXT_CHARS)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)

    @field_validator("content")
    @classmethod
    def _text(cls, content: str) -> str:
        if not check_text(content).strip():
            raise ValueError("content is only white space")
        return content

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The group, if there is one, and the tags."""
        return (*group_facets(self.group), *[("tag", tag) for tag in self.tags])


class Resource(Text):
    """A document or a conversation as it came in; of a conversation the record says what it is, its turns are episodes.

    `resource_type` is conversation, document, config, feedback or a name of one's own. What other programs call it
    stands in `metadata`.
    """

    resource_type: Name = "document"
    title: str = Field(default="", max_length=300)
    id: Annotated[str, IdOf("res")] = Field(default_factory=lambda: new_id("res-"))
    supersedes: Annotated[str, IdOf("res")] | None = None

    @property
    def facets(self) -> tuple[Facet, ...]:
        """The type, the group, if there is one, and the tags."""
        return ("resource_type", self.resource_type), *super().facets


class Episode(Text):
    """One turn of a conversation, or one event; `order` is its place in the conversation that it is `part_of`."""

    content_type: Name = "message"
    event_type: str = Field(default="", max_length=64)
    speaker: str = Field(default="", max_length=200)
    role: Name = "user"  # journals leave defaults out, so this is what stored turns of a user mean; readers state it
    order: int = Field(default=0, ge=0)
    id: Annotated[str, IdOf("epi")] = Field(default_factory=lambda: new_id("epi-"))
    supersedes: Annotated[str, IdOf("epi")] | None = None

    @property
    def conversation(self) -> str | None:
        """The id of the resource that it is part of."""
        return next((link.id for link in self.links if link.rel == PART_OF), None)


class Topic(Record):
    """A subject with a page: `body` in Markdown, made of the items in `item_ids`."""

    name: str = Field(min_length=1, max_length=MAX_NAME_CHARS)
    description: str = Field(min_length=10, max_length=500)
    body: str = Field(default="", max_length=MAX_TEXT_CHARS)
    item_ids: list[RecordId] = Field(default_factory=list)
    consolidated_at: UtcDatetime | None = None
    edited_by: str = Field(default="", max_length=200)
    group: str = Field(default="", max_length=MAX_GROUP_CHARS)
    id: Annotated[str, IdOf("top")] = Field(default_factory=lambda: new_id("top-"))
    supersedes: Annotated[str, IdOf("top")] | None = None

    @field_validator("name")
    @classmethod
    def _name(cls, name: str) -> str:
        if not _TOPIC_NAME.fullmatch(name):
            raise ValueError("a topic's name is words in lower case with _ between them, such as home_network")
        return name

    @field_validator("description", "body")
    @classmethod
    def _prose(cls, text: str) -> str:
        return check_text(text)

    @property
    def facets(self) -> tuple[Facet, ...]:
        """Its name, the group, if there is one, and the tags."""
        return (("topic", self.name), *group_facets(self.group), *[("tag", tag) for tag in self.tags])


class Failure(Value):
    """A record that a stage could not do: how often it was tried, why it failed last, and when (seconds since 1970)."""

    id: RecordId
    attempts: int = Field(default=1, ge=1)
    code: str = Field(default="", max_length=64)
    at: int = Field(default=0, ge=0)


class Mark(Record):
    """How far a stage of background work is: all changes of its source up to the number `through` are done.

    What failed among them stands in `failures`, and is tried again. What it made and somebody forgot stands in `never`,
    and is not made again.
    """

    stage: Name
    version: int = Field(default=1, ge=1)
    source_kind: Name
    through: int = Field(default=0, ge=0)
    failures: list[Failure] = Field(default_factory=list)
    never: list[RecordId] = Field(default_factory=list)
    id: Annotated[str, IdOf("mrk")] = Field(default_factory=lambda: new_id("mrk-"))


RESOURCE: Final[Kind[Resource]] = Kind(
    name="resource", model=Resource, prefix="res-", journal="knowledge.yaml", text="content", prose=("title",),
    beside=lambda: (TOPIC,),
)  # fmt: skip
EPISODE: Final = Kind(name="episode", model=Episode, prefix="epi-", journal="episodes.yaml", text="content")
TOPIC: Final[Kind[Topic]] = Kind(
    name="topic", model=Topic, prefix="top-", journal="knowledge.yaml", text="body", prose=("description",),
    beside=lambda: (RESOURCE,), read_ahead=False,
)  # fmt: skip
MARK: Final = Kind(name="stage_mark", model=Mark, prefix="mrk-", journal="tasks.yaml", text="stage", read_ahead=False)
