"""Relations of entities that metadata declares: rows, records, and ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

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

from agent_memory.knowledge.passages.sections import find_words
from agent_memory.language.sentences import find_sentences
from agent_memory.memory.trust import lowest
from agent_memory.models import OBJECT, RELATION, SUBJECT, derived_id, to_text
from agent_memory.models.knowledge import MAX_NAME_CHARS, Name
from agent_memory.models.memory import FROM
from agent_memory.models.text import flatten
from agent_memory.models.validation import describe
from agent_memory.store.record_redaction import Redacted, make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Relation

RELATIONS: Final = "relations"
"""Key of the metadata that declares the relations of a text."""
MOST_RELATIONS: Final = 20
"""Relations of one text; further ones are left out."""
_EntityName = Annotated[str, AfterValidator(flatten), Field(min_length=1, max_length=MAX_NAME_CHARS)]
DECLARED: Final = "declared"
"""Detail of the source of entities and relations that metadata declares."""
ENDED_BY: Final = "ended_by"
"""Name of the link of a relation to the one that ended it."""
_FUNCTIONAL: Final = "functional"
_MOST_CHARS: Final = 1_000


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
        quote: First sentence of the text with both names, or empty.
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
    """Return a relation with its sentence, or a reason against it."""
    if not isinstance(row, dict):
        return None, "it is not a mapping"
    try:
        relation = ExtractedRelationship.model_validate(row)
    except ValidationError as error:
        return None, describe(error)
    missing = [field for field, name in zip(("from", "to"), relation.names, strict=True) if not find_words(name, text)]
    if missing:
        return None, f"{missing[0]} is not in the text"
    sentences = (text[start:end] for start, end in find_sentences(text))
    quote = next((sentence for sentence in sentences if all(find_words(name, sentence) for name in relation.names)), "")
    return relation.model_copy(update={"quote": quote}), ""


def make_relations(
    head: Mapping[str, Any],
    agent_id: str,
    relations: Iterable[ExtractedRelationship],
    ids: Mapping[str, str],
    source: tuple[str, str],
) -> list[Redacted[Relation]]:
    """Return the records of declared relations between known entities.

    Args:
        head: Fields that all records of the source share; `observed_at` is when it was said.
        agent_id: Agent that owns the records.
        relations: Relations that a text declares.
        ids: IDs of entities by name; a relation of others is left out.
        source: ID of the text that declares them, and of the record that it belongs to.
    """
    records: list[Redacted[Relation]] = []
    for number, relation in enumerate(relations):
        ends = [ids[name] for name in relation.names if name in ids]
        if len(set(ends)) < len(relation.names):
            continue
        first, last = _get_validity(relation, head["observed_at"] or head["timestamp"])
        links = [
            {"rel": rel, "id": value} for rel, value in zip((SUBJECT, OBJECT, FROM), (*ends, source[1]), strict=True)
        ]
        values = {
            **head,
            "links": links,
            "relation_type": relation.relation_type,
            "content": relation.quote[:_MOST_CHARS]
            or f"{relation.from_name} {relation.relation_type} {relation.to_name}",
            "confidence": relation.score,
            "valid_from": first,
            "valid_to": last,
            "metadata": {_FUNCTIONAL: True} if relation.is_functional else {},
        }
        record = make_record(RELATION, values, agent_id)
        relation_id = derived_id(RELATION.prefix, source[0], relation.relation_type, *ends, number)
        records.append(with_fields(record, id=relation_id))
    return records


async def store_relations(
    knowledge: Knowledge, relations: Iterable[Redacted[Relation]], get_cluster: Callable[[str], Collection[str]]
) -> list[Relation]:
    """Store new relations and end earlier ones; return the new ones.

    Args:
        knowledge: Records of the agent.
        relations: Records of declared relations.
        get_cluster: Returns the IDs of all entities that are the same as one, that one among them.

    Raises:
        StorageError: Some may be stored; doing it again stores none twice.
    """
    stored: list[Relation] = []
    for record in relations:
        new = record.value
        subjects = get_cluster(new.from_id)
        linked = {item.id: item for subject in subjects for item in await knowledge.relations.linked_to(subject)}
        if new.id in linked or any(_get_statement(item) == _get_statement(new) for item in linked.values()):
            continue
        await knowledge.relations.store_many([record])
        stored.append(new)
        earlier = [
            item
            for item in linked.values()
            if item.relation_type == new.relation_type and item.group == new.group and item.from_id in subjects
        ]
        await _end_relations(knowledge, find_ends(new, earlier, get_cluster(new.to_id)))
    return stored


def find_ends(
    new: Relation, earlier_relations: Sequence[Relation], same: Collection[str] = ()
) -> list[tuple[Relation, datetime, Relation]]:
    """Return ended relations, each with the moment and its successor.

    Of a functional type the next one ends the earlier ones. A relation with only an end neither ends another one nor
    is ended. One that says that it is over ends the earlier one of the same object.

    Args:
        new: A new relation.
        earlier_relations: The relations of the same type of the same subject.
        same: IDs of other names of its object.
    """
    if _has_no_beginning(new):
        return []
    begun = new.valid_from or new.timestamp
    ends: list[tuple[Relation, datetime, Relation]] = []
    for earlier in earlier_relations:
        earlier_start = earlier.valid_from or earlier.timestamp
        is_of_same = earlier.to_id == new.to_id or earlier.to_id in same
        if _is_end(new) or _is_end(earlier):
            ends += _find_end(new, earlier) if is_of_same else []
            continue
        is_single = new.metadata.get(_FUNCTIONAL) and earlier.metadata.get(_FUNCTIONAL)
        if is_of_same or not is_single or _has_no_beginning(earlier):
            continue
        if earlier_start <= begun and (earlier.valid_to is None or earlier.valid_to > begun):
            if _may_end(new, earlier):
                ends.append((earlier, begun, new))
        elif (
            earlier_start > begun and (new.valid_to is None or new.valid_to > earlier_start) and _may_end(earlier, new)
        ):
            ends.append((new, earlier_start, earlier))
    return ends


def _get_validity(
    relation: ExtractedRelationship, said_time: datetime | str
) -> tuple[datetime | None, datetime | None]:
    """Return beginning and end as declared, else from when it was said.

    Of one that was over when it was said the beginning is unknown. One that is declared as over holds at no time.
    """
    said_at = said_time if isinstance(said_time, datetime) else datetime.fromisoformat(said_time)
    if relation.is_over:
        over = relation.valid_to or relation.valid_from or said_at
        return over, over
    if relation.valid_from is None and relation.valid_to is not None and relation.valid_to <= said_at:
        return None, relation.valid_to
    return relation.valid_from or said_at, relation.valid_to


def _find_end(new: Relation, earlier: Relation) -> list[tuple[Relation, datetime, Relation]]:
    """Return the relation that ends if the other one says so."""
    end, open_one = (new, earlier) if _is_end(new) else (earlier, new)
    begun, over = open_one.valid_from or open_one.timestamp, end.valid_from or end.timestamp
    is_open = not _is_end(open_one) and begun <= over and (open_one.valid_to is None or open_one.valid_to > over)
    return [(open_one, over, end)] if is_open and _may_end(end, open_one) else []


def _may_end(relation: Relation, earlier: Relation) -> bool:
    """Return True if a relation is trusted enough to end another."""
    return lowest(relation.trust, earlier.trust) == earlier.trust


def _is_end(relation: Relation) -> bool:
    """Return True if a relation only says that it is over."""
    return relation.valid_from is not None and relation.valid_from == relation.valid_to


def _has_no_beginning(relation: Relation) -> bool:
    return relation.valid_from is None and relation.valid_to is not None


def _get_statement(relation: Relation) -> tuple[str, ...]:
    """Return source, type, entities and text of a relation."""
    source = next((link.id for link in relation.links if link.rel == FROM), "")
    return source, relation.relation_type, relation.from_id, relation.to_id, relation.content


async def _end_relations(knowledge: Knowledge, ends: Sequence[tuple[Relation, datetime, Relation]]) -> None:
    """Set the ends of relations, with a link to the successor."""
    for relation, moment, by in ends:
        links = [link.model_dump() for link in relation.links if link.rel != ENDED_BY]
        changes: dict[str, Any] = {"valid_to": to_text(moment), "links": [*links, {"rel": ENDED_BY, "id": by.id}]}
        await knowledge.relations.update(relation.id, changes)
