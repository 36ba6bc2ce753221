"""Entities and relations of one text, and drafts of their records.

IDs are made of the source, so that a second run stores nothing twice. Nothing is deleted: a relation that another one
ends gets an end, and a link to that one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.knowledge.entities.entity_index import EntityMatcherIndex, get_entity_id
from agent_memory.knowledge.entities.matching.profiles import Described
from agent_memory.knowledge.entities.merges import is_by_removed_rules
from agent_memory.knowledge.entities.name_finder import BY_CAPITALS, BY_NAME, LOWERCASE, REPEATED, find_mentions
from agent_memory.knowledge.entities.relations import DECLARED, ExtractedRelationship, make_relations, read_relations
from agent_memory.knowledge.passages.structure import find_words
from agent_memory.models import ENTITY, MENTIONS, MERGED_INTO, NAMES, TRUST_ORDER, derived_id, may_stand_for
from agent_memory.models.knowledge import MAX_NAME_CHARS, UNTYPED, EntityType
from agent_memory.models.memory import FROM
from agent_memory.store.record_redaction import Redacted, make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.entities.matching.matcher import Match
    from agent_memory.knowledge.entities.name_finder import Gazetteer
    from agent_memory.models import Entity, EntityMentions, Episode, Relation, Resource

Confidence = Literal["high", "medium", "low"]
SPEAKER: Final = "speaker"
"""Rule of people who speak."""
_CONFIDENT: Final[tuple[tuple[Confidence, float], ...]] = (("high", 0.8), ("medium", 0.5), ("low", 0.0))
"""From which number on a confidence has which name."""
IDENTIFIERS: Final = "identifiers"
"""Detail of the source of an entity found by its form."""
_MOST_NAMES: Final = 90
"""Entities of one record of mentions: a record has 100 links at most."""


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """An entity that an episode names.

    Attributes:
        name: Name as written.
        entity_type: One of the closed list.
        confidence: By name; `score` is the number.
        start, end: Place of the name in the text; 0 and 0 of a speaker whose name is not in it.
        rule: Rule that found the name.
    """

    name: str
    entity_type: EntityType = "other"
    confidence: Confidence = "medium"
    score: float = 0.5
    start: int = 0
    end: int = 0
    rule: str = ""


@dataclass(frozen=True, slots=True)
class EntityExtractionResult:
    """Entities and relations of an episode, and reasons against declared ones."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    relationships: list[ExtractedRelationship] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def confidence_name(score: float) -> Confidence:
    """Return high, medium or low."""
    return next(name for name, least in _CONFIDENT if score >= least)


def least_score(confidence: Confidence) -> float:
    """Return the least number of a confidence by name."""
    return dict(_CONFIDENT)[confidence]


def extract_entities(
    text: str,
    *,
    speaker: str = "",
    gazetteer: Gazetteer | None = None,
    least: Confidence = "medium",
    relations: object = None,
) -> EntityExtractionResult:
    """Return the entities and declared relations of a text.

    Args:
        text: Whole text of the record.
        speaker: Name of the person who speaks, empty if unknown.
        gazetteer: Names that the agent knows; None for no names.
        least: Least confidence of a returned entity.
        relations: Relations that metadata declares, None for none.
    """
    mentions = find_mentions(text, gazetteer=gazetteer, speaker=speaker)
    entities = [
        ExtractedEntity(
            mention.name,
            mention.kind,
            confidence_name(mention.confidence),
            mention.confidence,
            start=mention.start,
            end=mention.end,
            rule=SPEAKER if mention.name == speaker else mention.rule,
        )
        for mention in mentions
        if mention.confidence >= least_score(least)
    ]
    if speaker and speaker not in {entity.name for entity in entities}:
        entities.append(ExtractedEntity(speaker, "person", "high", 1.0, rule=SPEAKER))
    relationships, left_out = read_relations(relations, text)
    certain = {entity.name for entity in entities if entity.rule not in BY_NAME}
    names = dict.fromkeys(name for relation in relationships for name in relation.names if name not in certain)
    declared = [_make_declared(name, text) for name in names]
    return EntityExtractionResult([*declared, *entities], relationships, left_out)


def _make_declared(name: str, text: str) -> ExtractedEntity:
    """Build the entity of a name in a declared relation."""
    start, end = find_words(name, text) or (0, 0)
    return ExtractedEntity(name, "name", "high", 1.0, start=start, end=end, rule=DECLARED)


@dataclass(slots=True)
class EntityDrafts:
    """Records and changes to store for one source.

    Attributes:
        entities, mentions, relations: New records to store.
        merged: Stages that found a known entity, one for each.
        raised: Changed fields of known entities, by ID.
    """

    entities: list[Redacted[Entity]] = field(default_factory=list)
    mentions: list[Redacted[EntityMentions]] = field(default_factory=list)
    relations: list[Redacted[Relation]] = field(default_factory=list)
    merged: list[str] = field(default_factory=list)
    raised: dict[str, dict[str, Any]] = field(default_factory=dict)


def resolve(
    source: Episode | Resource, result: EntityExtractionResult, index: EntityMatcherIndex, now: datetime
) -> EntityDrafts:
    """Return drafts of the entities and relations of a source.

    New entities are added to `index`.

    Args:
        source: Episode or resource that was read.
        result: Entities and relations that it names.
        index: The entities of the source's group.
        now: Present moment, UTC.
    """
    drafts = EntityDrafts()
    ids: dict[str, str] = {}
    named = [entity for entity in result.entities if len(entity.name) <= MAX_NAME_CHARS]
    for extracted in named:
        if extracted.name not in ids:
            ids[extracted.name] = _resolve_entity(source, extracted, index, now, drafts)
    rare = [extracted for extracted in named if not index.is_common(ids[extracted.name])]
    drafts.mentions = list(_make_mentions(source, rare, ids, now))
    for record in drafts.mentions:
        index.add_mentions(record.value)
    head = _build_head(source, now, DECLARED)
    drafts.relations = make_relations(head, source.agent_id, result.relationships, ids, (source.id, source.id))
    return drafts


def get_person_name(record: Episode | Resource) -> str:
    """Return the name of a speaker, empty for a tool."""
    return "" if getattr(record, "role", "") == "tool" else str(getattr(record, "speaker", ""))


def resolve_speaker(turn: Episode, index: EntityMatcherIndex, now: datetime) -> EntityDrafts:
    """Return drafts of the entity of a turn's speaker, added to `index`."""
    drafts, name = EntityDrafts(), get_person_name(turn)
    if 0 < len(name) <= MAX_NAME_CHARS:
        speaker = ExtractedEntity(name, "person", "high", 1.0, rule=SPEAKER)
        _resolve_entity(turn, speaker, index, now, drafts)
    return drafts


def _resolve_entity(
    source: Episode | Resource,
    extracted: ExtractedEntity,
    index: EntityMatcherIndex,
    now: datetime,
    drafts: EntityDrafts,
) -> str:
    """Draft a new or changed entity; return its ID."""
    entity = index.find_entity(extracted.name)
    if entity is None:
        return _make_entity(source, extracted, index, now, drafts).id
    drafts.merged.append("exact")
    if changes := _get_changes(source, extracted, entity):
        drafts.raised[entity.id] = changes
        index.add(type(entity)(**{**entity.model_dump(), **changes}))
    return entity.id


def _get_changes(source: Episode | Resource, extracted: ExtractedEntity, entity: Entity) -> dict[str, Any]:
    """Return the fields of a known entity that a source changes."""
    changes: dict[str, Any] = {}
    if TRUST_ORDER.index(source.trust) > TRUST_ORDER.index(entity.trust) and extracted.rule != LOWERCASE:
        changes |= {"trust": source.trust, "name": extracted.name}
    is_guessed, detail = is_by_removed_rules(entity), _get_detail(extracted)
    is_untyped = entity.entity_type in UNTYPED or is_guessed
    if is_untyped and extracted.entity_type not in UNTYPED and may_stand_for(source.trust, entity.trust):
        changes["entity_type"] = extracted.entity_type
    if is_guessed or (entity.source.detail == BY_CAPITALS != detail):
        changes["source"] = {"kind": "extraction", "detail": detail}
        changes.setdefault("entity_type", extracted.entity_type)
    is_surer = entity.source.detail == BY_CAPITALS and extracted.score >= REPEATED > (entity.confidence or 0)
    if (is_surer and extracted.rule != LOWERCASE) or is_guessed:
        changes["confidence"] = round(min(1.0, extracted.score), 3)
    return changes


def _get_detail(extracted: ExtractedEntity) -> str:
    """Return the detail of the source of an entity."""
    if extracted.rule in {DECLARED, SPEAKER}:
        return extracted.rule
    return BY_CAPITALS if extracted.rule in BY_NAME else IDENTIFIERS


def _build_head(source: Episode | Resource, now: datetime, detail: str) -> dict[str, Any]:
    return {
        "timestamp": now,
        "observed_at": source.moment,
        "group": source.group,
        "source": {"kind": "extraction", "detail": detail},
        "trust": source.trust,
        "created_by_session": source.created_by_session,
    }


def _make_entity(
    source: Episode | Resource,
    extracted: ExtractedEntity,
    index: EntityMatcherIndex,
    now: datetime,
    drafts: EntityDrafts,
) -> Entity:
    """Make the entity of a new name, linked to a match."""
    kind = "" if extracted.entity_type in UNTYPED else extracted.entity_type
    detail = _get_detail(extracted)
    described = Described(extracted.name, kind)
    match = None if detail == IDENTIFIERS else index.match(described, source.trust)
    values = _build_head(source, now, detail) | {
        "name": extracted.name,
        "entity_type": extracted.entity_type,
        "confidence": round(min(1.0, extracted.score), 3),
        "valid_from": source.moment,
    }
    if match is not None:
        values |= _describe_match(match)
        if match.decision == "merge":
            drafts.merged.append(match.stage)
    record = make_record(ENTITY, values, source.agent_id)
    named = with_fields(record, id=get_entity_id(extracted.name, source.group))
    drafts.entities.append(named)
    index.add(named.value)
    return named.value


def _describe_match(match: Match) -> dict[str, Any]:
    """Return the link and metadata of a match."""
    why = {"stage": match.stage, "score": round(match.score, 3), "evidence": list(match.evidence)[:8]}
    if match.decision == "merge":
        return {"links": [{"rel": MERGED_INTO, "id": match.id}], "metadata": {"merge": why}}
    return {"metadata": {"maybe": {"id": match.id, **why}}}


def _make_mentions(
    source: Episode | Resource, extracted: Sequence[ExtractedEntity], ids: Mapping[str, str], now: datetime
) -> Iterator[Redacted[EntityMentions]]:
    first: dict[str, ExtractedEntity] = {}
    for entity in extracted:
        if entity.end or entity.name == getattr(source, "speaker", ""):  # the text has it, or it speaks
            first.setdefault(ids[entity.name], entity)
    rows = list(first.items())
    for part, start in enumerate(range(0, len(rows), _MOST_NAMES)):
        batch = rows[start : start + _MOST_NAMES]
        values = _build_head(source, now, BY_CAPITALS) | {
            "links": [{"rel": FROM, "id": source.id}, *({"rel": NAMES, "id": entity_id} for entity_id, _ in batch)],
            "content": "\n".join(" ".join(entity.name.split()) for _, entity in batch),
            "at": [entity.start for _, entity in batch],
        }
        record = make_record(MENTIONS, values, source.agent_id)
        yield with_fields(record, id=derived_id(MENTIONS.prefix, source.id, BY_CAPITALS, part))
