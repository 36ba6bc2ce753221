"""Relations of entities that metadata declares. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    ValidationError,
    model_validator,
)

from agent_memory.knowledge.llm.grounding import place_of
from agent_memory.language.sentences import find_sentences
from agent_memory.models.knowledge import MAX_NAME_CHARS, Name
from agent_memory.models.text import flatten
from agent_memory.models.validation import describe

RELATIONS: Final = "relations"
"""Key of the metadata that declares the relations of a text."""
MOST_RELATIONS: Final = 20
"""Relations of one text; further ones are left out."""


def _read_moment(value: object) -> object:
    """Return an ISO date or moment; one without a zone is UTC."""
    if not isinstance(value, str):
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a date such as 2026-01-28") from None
    try:
        return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("is beyond the calendar") from None


_EntityName = Annotated[str, AfterValidator(flatten), Field(min_length=1, max_length=MAX_NAME_CHARS)]
_Moment = Annotated[datetime | None, Field(strict=True), BeforeValidator(_read_moment)]


class ExtractedRelationship(BaseModel):
    """A relation of two entities, as metadata declares it.

    Attributes:
        from_name, to_name: Names in the text; subject and object.
        relation_type: Identifier such as `works_at`.
        valid_from: First moment at which it holds.
        valid_to: First moment at which it does not hold any more.
        is_over: True if it ended: it ends the earlier relation of both names.
        is_functional: True if a subject has one at a time: a later one ends it.
        quote: First sentence of the text with both names, empty if there is none.
        confidence, score: Confidence by name and as a number.
    """

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True, populate_by_name=True)

    from_name: _EntityName = Field(alias="from")
    relation_type: Name = Field(alias="type")
    to_name: _EntityName = Field(alias="to")
    valid_from: _Moment = None
    valid_to: _Moment = None
    is_over: StrictBool = Field(default=False, alias="ended")
    is_functional: StrictBool = Field(default=False, alias="single")
    quote: str = ""

    confidence: ClassVar[Literal["high"]] = "high"
    score: ClassVar[float] = 1.0

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.valid_from is not None and self.valid_to is not None and self.valid_to <= self.valid_from:
            raise ValueError("valid_to is not after valid_from")
        if self.from_name == self.to_name:
            raise ValueError("from and to are the same name")
        return self

    @property
    def names(self) -> tuple[str, str]:
        """Both names, subject first."""
        return self.from_name, self.to_name


def read_relations(rows: object, text: str) -> tuple[list[ExtractedRelationship], list[str]]:
    """Return declared relations of names in a text, and reasons against others.

    Args:
        rows: Value of `RELATIONS` in metadata, None for none.
        text: Whole text that the metadata belongs to.
    """
    if rows is None:
        return [], []
    if not isinstance(rows, list):
        return [], ["relations is not a list"]
    relations: list[ExtractedRelationship] = []
    reasons: list[str] = []
    for number, row in enumerate(rows[:MOST_RELATIONS], 1):
        relation, reason = _read_row(row, text)
        if relation is not None:
            relations.append(relation)
        else:
            reasons.append(f"relation {number}: {reason}")
    if len(rows) > MOST_RELATIONS:
        reasons.append(f"relations has more than {MOST_RELATIONS} items")
    return relations, reasons


def _read_row(row: object, text: str) -> tuple[ExtractedRelationship | None, str]:
    """Return a relation with its sentence, or the reason why it is left out."""
    if not isinstance(row, dict):
        return None, "it is not a mapping"
    try:
        relation = ExtractedRelationship.model_validate(row)
    except ValidationError as error:
        return None, describe(error)
    missing = [field for field, name in zip(("from", "to"), relation.names, strict=True) if not place_of(name, text)]
    if missing:
        return None, f"{missing[0]} is not in the text"
    sentences = (text[start:end] for start, end in find_sentences(text))
    quote = next((sentence for sentence in sentences if all(place_of(name, sentence) for name in relation.names)), "")
    return relation.model_copy(update={"quote": quote}), ""
