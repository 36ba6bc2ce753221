"""From what was drawn from a source to records: new entities, where they are mentioned, and relations in time.

Everything has an id made of its source, so that doing it again stores nothing twice. Nothing is deleted: a relation
that another one ends gets an end, and a link to that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities import Described
from agent_memory.entities.entity_ids import get_entity_id
from agent_memory.entities.mention import REPEATED
from agent_memory.entities.name_reader import BY_CAPITALS, BY_NAME, SMALL
from agent_memory.entities.removed_rules import is_by_removed_rules
from agent_memory.ingestion.shapes import MODEL, SPEAKER
from agent_memory.models import (
    ENTITY,
    MENTIONS,
    MERGED_INTO,
    NAMES,
    OBJECT,
    RELATION,
    SUBJECT,
    derived_id,
    may_stand_for,
    to_own_zone,
)
from agent_memory.models.entities import MAX_NAME_CHARS, UNTYPED
from agent_memory.storage.cleaning import make_record, with_fields
from agent_memory.times import Validity, valid_times

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.entities import Match
    from agent_memory.ingestion.entities.known import KnownEntities
    from agent_memory.ingestion.shapes import EntityExtractionResult, ExtractedEntity, ExtractedRelationship
    from agent_memory.models import Entity, Episode, Mentions, Relation, Resource
    from agent_memory.storage.cleaning import Redacted

FROM: Final = "from"
ENDED_BY: Final = "ended_by"
"""Name of the link of a relation to the one that ended it."""
IDENTIFIERS: Final = "identifiers"
"""Detail of the source of an entity that was found by its form."""
_MOST_NAMES: Final = 90
"""Entities of one record of mentions: a record has 100 links at most."""


@dataclass(slots=True)
class Drafts:
    """What is to be stored of one source.

    Attributes:
        entities, mentions, relations: New records.
        merged: Of the new entities, by what stage they were found to be known.
        raised: Ids of entities that a source of more trust names now, with the fields that it changes.
    """

    entities: list[Redacted[Entity]] = field(default_factory=list)
    mentions: list[Redacted[Mentions]] = field(default_factory=list)
    relations: list[Redacted[Relation]] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    raised: dict[str, dict[str, Any]] = field(default_factory=dict)


def resolve(
    source: Episode | Resource,
    result: EntityExtractionResult,
    known: KnownEntities,
    now: datetime,
) -> Drafts:
    """Return drafts of the entities and relations of a source.

    New entities are added to `known`.

    Args:
        source: Episode or resource that was read.
        result: Entities and relations that it names.
        known: The entities of the source's group.
        now: Present moment, UTC.
    """
    drafts = Drafts()
    ids: dict[str, str] = {}
    drawn = [found for found in result.entities if len(found.name) <= MAX_NAME_CHARS]
    for found in drawn:
        if found.name not in ids:
            entity = known.named(found.name)
            if entity is None:
                entity = _new(source, found, known, now, drafts)
            elif changes := _get_changes(source, found, entity):
                drafts.raised[entity.id] = changes
                known.add(type(entity)(**{**entity.model_dump(), **changes}))
            ids[found.name] = entity.id
    rare = [found for found in drawn if not known.is_common(ids[found.name])]
    drafts.mentions = list(_mentions(source, rare, ids, now))
    for record in drafts.mentions:
        known.add_mentions(record.value)
    for number, related in enumerate(result.relationships):
        ends = ids.get(related.from_name), ids.get(related.to_name)
        if ends[0] is not None and ends[1] is not None and ends[0] != ends[1]:
            drafts.relations.append(_relation(source, related, (ends[0], ends[1]), now, number))
    return drafts


def may_raise(trust: str, before: str) -> bool:
    """Tell whether a trust is higher than another one."""
    order = ("low", "medium", "high")
    return order.index(trust) > order.index(before)


def _get_changes(source: Episode | Resource, found: ExtractedEntity, entity: Entity) -> dict[str, Any]:
    """Return what a source changes in a known entity: spelling by more trust, an unknown type, the reader's rule."""
    changes: dict[str, Any] = {}
    if may_raise(source.trust, entity.trust) and found.rule != SMALL:
        changes |= {"trust": source.trust, "name": found.name}
    is_guessed, detail = is_by_removed_rules(entity), _get_detail(found)
    is_untyped = entity.entity_type in UNTYPED or is_guessed
    if is_untyped and found.entity_type not in UNTYPED and may_stand_for(source.trust, entity.trust):
        changes["entity_type"] = found.entity_type
    if is_guessed or (entity.source.detail == BY_CAPITALS != detail):
        changes["source"] = {"kind": "extraction", "detail": detail}
        changes.setdefault("entity_type", found.entity_type)
    is_surer = entity.source.detail == BY_CAPITALS and found.score >= REPEATED > (entity.confidence or 0)
    if (is_surer and found.rule != SMALL) or is_guessed:
        changes["confidence"] = round(min(1.0, found.score), 3)
    return changes


def _get_detail(found: ExtractedEntity) -> str:
    """Return by what an entity was found, as its source has it."""
    if found.rule in {MODEL, SPEAKER}:
        return found.rule
    return BY_CAPITALS if found.rule in BY_NAME else IDENTIFIERS


def _head(source: Episode | Resource, now: datetime, *links: Mapping[str, str]) -> dict[str, Any]:
    return {
        "timestamp": now,
        "observed_at": source.observed_at or source.timestamp,
        "group": source.group,
        "source": {"kind": "extraction", "detail": BY_CAPITALS},
        "trust": source.trust,
        "created_by_session": source.created_by_session,
        "links": list(links),
    }


def _new(
    source: Episode | Resource, drawn: ExtractedEntity, known: KnownEntities, now: datetime, drafts: Drafts
) -> Entity:
    """Return the new entity of a name; one that is surely the same as a known one is linked to that."""
    kind = "" if drawn.entity_type in UNTYPED else drawn.entity_type
    detail = _get_detail(drawn)
    described = Described(drawn.name, kind, drawn.attributes)
    match = None if detail == IDENTIFIERS else known.match(described, source.trust)
    values = _head(source, now) | {
        "source": {"kind": "extraction", "detail": detail},
        "name": drawn.name,
        "entity_type": drawn.entity_type,
        "attributes": drawn.attributes,
        "confidence": round(min(1.0, drawn.score), 3),
        "valid_from": source.observed_at or source.timestamp,
    }
    if match is not None:
        values |= _told(match)
        if match.decision == "merge":
            drafts.merged.append(match.stage)
    record = make_record(ENTITY, values, source.agent_id)
    own = with_fields(record, id=get_entity_id(drawn.name, source.group))
    drafts.entities.append(own)
    known.add(own.value)
    return own.value


def _told(match: Match) -> dict[str, Any]:
    """Return what an entity says of a match: the link, and why."""
    why = {"stage": match.stage, "score": round(match.score, 3), "evidence": list(match.evidence)[:8]}
    if match.decision == "merge":
        return {"links": [{"rel": MERGED_INTO, "id": match.id}], "metadata": {"merge": why}}
    return {"metadata": {"maybe": {"id": match.id, **why}}}


def _mentions(
    source: Episode | Resource, drawn: Sequence[ExtractedEntity], ids: Mapping[str, str], now: datetime
) -> Iterator[Redacted[Mentions]]:
    first: dict[str, ExtractedEntity] = {}
    for each in drawn:
        if each.end or each.name == getattr(source, "speaker", ""):  # it stands there, or speaks
            first.setdefault(ids[each.name], each)
    rows = list(first.items())
    for part, at in enumerate(range(0, len(rows), _MOST_NAMES)):
        some = rows[at : at + _MOST_NAMES]
        links = [{"rel": FROM, "id": source.id}, *({"rel": NAMES, "id": one} for one, _ in some)]
        values = _head(source, now, *links) | {
            "content": "\n".join(" ".join(each.name.split()) for _, each in some),
            "at": [each.start for _, each in some],
        }
        record = make_record(MENTIONS, values, source.agent_id)
        yield with_fields(record, id=derived_id(MENTIONS.prefix, source.id, BY_CAPITALS, part))


def _relation(
    source: Episode | Resource, drawn: ExtractedRelationship, ends: tuple[str, str], now: datetime, number: int
) -> Redacted[Relation]:
    links = [{"rel": SUBJECT, "id": ends[0]}, {"rel": OBJECT, "id": ends[1]}, {"rel": FROM, "id": source.id}]
    first, last = _validity(source, drawn)
    values = _head(source, now, *links) | {
        "source": {"kind": "extraction", "detail": MODEL},
        "relation_type": drawn.relation_type,
        "content": drawn.quote[:1000] or f"{drawn.from_name} {drawn.relation_type} {drawn.to_name}",
        "attributes": drawn.attributes,
        "confidence": round(min(1.0, drawn.score), 3),
        "valid_from": first,
        "valid_to": last,
        "metadata": {"functional": True} if drawn.is_functional else {},
    }
    record = make_record(RELATION, values, source.agent_id)
    return with_fields(record, id=derived_id(RELATION.prefix, source.id, drawn.relation_type, *ends, number))


def _validity(source: Episode | Resource, drawn: ExtractedRelationship) -> tuple[datetime | None, datetime | None]:
    """Return from when to when a relation holds: as drawn, by the times its words name, or from when it was said.

    Of one that was over when it was said, and of which no beginning is told, that is not known. One of which a text
    says that it ends holds at no time: it ends those that were told before.
    """
    said = source.observed_at or source.timestamp
    if drawn.valid_from is not None or drawn.valid_to is not None:
        return drawn.valid_from or said, drawn.valid_to
    told = valid_times(drawn.quote, to_own_zone(said, source.metadata))
    told = Validity(*(moment and moment.replace(tzinfo=UTC) for moment in told))  # a day, in whatever zone
    if drawn.is_over:
        over = told.valid_to or told.valid_from or said
        return over, over
    if told.valid_from is None and told.valid_to is not None and told.valid_to <= said:
        return None, told.valid_to
    return told.valid_from or said, told.valid_to


def ends_of(
    new: Relation, others: Sequence[Relation], same: Collection[str] = ()
) -> list[tuple[Relation, datetime, Relation]]:
    """Return which relations end, when, and by which one: of a functional type the earlier ones by the next.

    One of which only the end is known ends no other, and is ended by none. One that says that it is over ends what was
    told of the same object.

    Args:
        new: A functional relation.
        others: The relations of the same type of the same subject.
        same: Ids of other names of its object.
    """
    if _is_without_beginning(new):
        return []
    begun = new.valid_from or new.timestamp
    found: list[tuple[Relation, datetime, Relation]] = []
    for each in others:
        own = each.valid_from or each.timestamp
        is_of_same = each.to_id == new.to_id or each.to_id in same
        if _is_end(new) or _is_end(each):
            found += _ended(new, each) if is_of_same else []
            continue
        if is_of_same or not each.metadata.get("functional") or _is_without_beginning(each):
            continue
        if own <= begun and (each.valid_to is None or each.valid_to > begun):
            if may_stand_for(new.trust, each.trust):
                found.append((each, begun, new))
        elif own > begun and (new.valid_to is None or new.valid_to > own) and may_stand_for(each.trust, new.trust):
            found.append((new, own, each))
    return found


def _ended(new: Relation, other: Relation) -> list[tuple[Relation, datetime, Relation]]:
    """Return which of two relations of the same things ends, if the other one says that it is over."""
    end, each = (new, other) if _is_end(new) else (other, new)
    begun, over = each.valid_from or each.timestamp, end.valid_from or end.timestamp
    is_open = not _is_end(each) and begun <= over and (each.valid_to is None or each.valid_to > over)
    return [(each, over, end)] if is_open and may_stand_for(end.trust, each.trust) else []


def _is_end(relation: Relation) -> bool:
    """Whether it says that it is over, and nothing else."""
    return relation.valid_from is not None and relation.valid_from == relation.valid_to


def _is_without_beginning(relation: Relation) -> bool:
    return relation.valid_from is None and relation.valid_to is not None
