"""Records of declared relations, and the ends that they give each other."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.memory.trust import lowest
from agent_memory.models import OBJECT, RELATION, SUBJECT, derived_id, to_text
from agent_memory.models.memory import FROM
from agent_memory.store.record_redaction import make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.knowledge.relation_rows import ExtractedRelationship
    from agent_memory.models import Relation
    from agent_memory.store.record_redaction import Redacted

DECLARED: Final = "declared"
"""Detail of the source of entities and relations that metadata declares."""
ENDED_BY: Final = "ended_by"
"""Name of the link of a relation to the one that ended it."""
_FUNCTIONAL: Final = "functional"
_MOST_CHARS: Final = 1_000


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
    """Store new relations and end those that they end; return the new ones.

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
        linked = {item.id: item for one in subjects for item in await knowledge.relations.linked_to(one)}
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
    new: Relation, others: Sequence[Relation], same: Collection[str] = ()
) -> list[tuple[Relation, datetime, Relation]]:
    """Return relations that end, with the moment and the one that ends them.

    Of a functional type the next one ends the earlier ones. One of which only the end is known
    ends no other, and is ended by none. One that says that it is over ends the earlier one of the same object.

    Args:
        new: A new relation.
        others: The relations of the same type of the same subject.
        same: IDs of other names of its object.
    """
    if _has_no_beginning(new):
        return []
    begun = new.valid_from or new.timestamp
    ends: list[tuple[Relation, datetime, Relation]] = []
    for other in others:
        own = other.valid_from or other.timestamp
        is_of_same = other.to_id == new.to_id or other.to_id in same
        if _is_end(new) or _is_end(other):
            ends += _find_end(new, other) if is_of_same else []
            continue
        is_single = new.metadata.get(_FUNCTIONAL) and other.metadata.get(_FUNCTIONAL)
        if is_of_same or not is_single or _has_no_beginning(other):
            continue
        if own <= begun and (other.valid_to is None or other.valid_to > begun):
            if _may_end(new, other):
                ends.append((other, begun, new))
        elif own > begun and (new.valid_to is None or new.valid_to > own) and _may_end(other, new):
            ends.append((new, own, other))
    return ends


def _get_validity(relation: ExtractedRelationship, said: datetime | str) -> tuple[datetime | None, datetime | None]:
    """Return beginning and end as declared, else from when it was said.

    Of one that was over when it was said the beginning is unknown. One that is declared as over holds at no time.
    """
    said_at = said if isinstance(said, datetime) else datetime.fromisoformat(said)
    if relation.is_over:
        over = relation.valid_to or relation.valid_from or said_at
        return over, over
    if relation.valid_from is None and relation.valid_to is not None and relation.valid_to <= said_at:
        return None, relation.valid_to
    return relation.valid_from or said_at, relation.valid_to


def _find_end(new: Relation, other: Relation) -> list[tuple[Relation, datetime, Relation]]:
    """Return the relation that ends if the other one says so."""
    end, open_one = (new, other) if _is_end(new) else (other, new)
    begun, over = open_one.valid_from or open_one.timestamp, end.valid_from or end.timestamp
    is_open = not _is_end(open_one) and begun <= over and (open_one.valid_to is None or open_one.valid_to > over)
    return [(open_one, over, end)] if is_open and _may_end(end, open_one) else []


def _may_end(relation: Relation, earlier: Relation) -> bool:
    """Return True if a relation is trusted enough to end another."""
    return lowest(relation.trust, earlier.trust) == earlier.trust


def _is_end(relation: Relation) -> bool:
    """Return True if a relation says that it is over, and nothing else."""
    return relation.valid_from is not None and relation.valid_from == relation.valid_to


def _has_no_beginning(relation: Relation) -> bool:
    return relation.valid_from is None and relation.valid_to is not None


def _get_statement(relation: Relation) -> tuple[str, ...]:
    """Return what a relation says, and its source."""
    source = next((link.id for link in relation.links if link.rel == FROM), "")
    return source, relation.relation_type, relation.from_id, relation.to_id, relation.content


async def _end_relations(knowledge: Knowledge, ends: Sequence[tuple[Relation, datetime, Relation]]) -> None:
    """Give relations the end that another one makes, with a link to that."""
    for relation, moment, by in ends:
        links = [link.model_dump() for link in relation.links if link.rel != ENDED_BY]
        changes: dict[str, Any] = {"valid_to": to_text(moment), "links": [*links, {"rel": ENDED_BY, "id": by.id}]}
        await knowledge.relations.update(relation.id, changes)
