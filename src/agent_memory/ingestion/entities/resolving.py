"""From what was drawn from a source to records: new entities, where they are mentioned, and relations in time.

Everything has an id made of its source, so that doing it again stores nothing twice. Nothing is deleted: a relation
that another one ends gets an end, and a link to that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities import Described
from agent_memory.entities.entity_ids import get_entity_id
from agent_memory.entities.mention import REPEATED
from agent_memory.entities.name_reader import BY_CAPITALS, BY_NAME, SMALL
from agent_memory.entities.removed_rules import is_by_removed_rules
from agent_memory.ingestion.shapes import SPEAKER
from agent_memory.knowledge.relation_records import DECLARED, make_relations
from agent_memory.models import (
    ENTITY,
    MENTIONS,
    MERGED_INTO,
    NAMES,
    derived_id,
    may_stand_for,
)
from agent_memory.models.digest_statements import FROM
from agent_memory.models.entities import MAX_NAME_CHARS, UNTYPED
from agent_memory.models.times import get_saying_metadata
from agent_memory.storage.cleaning import make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.entities import Match
    from agent_memory.ingestion.entities.known import KnownEntities
    from agent_memory.ingestion.shapes import EntityExtractionResult, ExtractedEntity
    from agent_memory.models import Entity, Episode, Mentions, Relation, Resource
    from agent_memory.storage.cleaning import Redacted

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
    head = _head(source, now) | {"source": {"kind": "extraction", "detail": DECLARED}}
    drafts.relations = make_relations(head, source.agent_id, result.relationships, ids, (source.id, source.id))
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
    if found.rule in {DECLARED, SPEAKER}:
        return found.rule
    return BY_CAPITALS if found.rule in BY_NAME else IDENTIFIERS


def _head(source: Episode | Resource, now: datetime, *links: Mapping[str, str]) -> dict[str, Any]:
    return {
        "timestamp": now,
        "observed_at": source.moment,
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
    described = Described(drawn.name, kind)
    match = None if detail == IDENTIFIERS else known.match(described, source.trust)
    values = _head(source, now) | {
        "source": {"kind": "extraction", "detail": detail},
        "name": drawn.name,
        "entity_type": drawn.entity_type,
        "confidence": round(min(1.0, drawn.score), 3),
        "valid_from": source.moment,
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
            "metadata": get_saying_metadata(source.metadata),
            "content": "\n".join(" ".join(each.name.split()) for _, each in some),
            "at": [each.start for _, each in some],
        }
        record = make_record(MENTIONS, values, source.agent_id)
        yield with_fields(record, id=derived_id(MENTIONS.prefix, source.id, BY_CAPITALS, part))
