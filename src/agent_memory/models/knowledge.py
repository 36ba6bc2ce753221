"""Kinds of ingested texts: resources, episodes, topics, and checkpoints of background stages.

A long text is in its own file, named by its sha256; the record has its beginning and the name of the file
(`agent_memory.encryption.blobs`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field, field_validator
from pydantic_core.core_schema import str_schema

from agent_memory.models.clock import UtcDatetime
from agent_memory.models.identifiers import new_id
from agent_memory.models.kind import Kind
from agent_memory.models.record import MAX_GROUP_CHARS, IdOf, Record, RecordId, ValueModel, group_facets
from agent_memory.models.text import check_content, check_text

if TYPE_CHECKING:
    import pydantic
    from pydantic_core import CoreSchema

    from agent_memory.models.record import Facet

MAX_TEXT_CHARS: Final = 1_000_000
"""Maximum characters of one resource or episode."""
MAX_LINE_CHARS: Final = 8_192
"""Maximum characters of a text in the journal; the rest of a longer one is in a blob."""
PART_OF: Final = "part_of"
"""Name of the link of an episode to the resource of its conversation."""

_TOPIC_NAME: Final = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
MAX_NAME_CHARS: Final = 64
DERIVED_TOPICS: Final = frozenset({"entity", "hidden_entity", "kept_entity", "document", "conversation", "person"})
"""`source.detail` of topics from documents and conversations, not declared by a person."""


@dataclass(frozen=True, slots=True)
class BlobName(IdOf):
    """Pydantic annotation of a hexadecimal sha256, or empty; it cannot contain a secret."""

    prefix: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: pydantic.GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema that checks the form."""
        return str_schema(pattern="^(?:[0-9a-f]{64})?$")


Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


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
    """Turn of a conversation, or an event; `order` is its position in the conversation."""

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
    failures: list[StageFailure] = Field(default_factory=list)
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
MARK: Final = Kind(
    name="stage_mark", model=StageCheckpoint, prefix="mrk-", journal="tasks.yaml", text="stage", read_ahead=False
)
