"""Index of known entities, and drafts of the records of one text.

IDs are made of the source, so that a second run stores nothing twice. Nothing is deleted: a relation that another one
ends gets an end, and a link to that one.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from agent_memory.knowledge.entities.matching.matcher import Match, Matcher, Matching
from agent_memory.knowledge.entities.matching.normal_forms import full_form, normal_form
from agent_memory.knowledge.entities.matching.profiles import Described, describe_entity
from agent_memory.knowledge.entities.merges import NameCounts, is_by_removed_rules, list_cluster
from agent_memory.knowledge.entities.name_finder import (
    BY_CAPITALS,
    BY_NAME,
    LOWERCASE,
    REPEATED,
    Gazetteer,
    KnownName,
    find_mentions,
)
from agent_memory.knowledge.entities.relations import DECLARED, ExtractedRelationship, make_relations, read_relations
from agent_memory.knowledge.passages.sections import find_words
from agent_memory.models import ENTITY, MENTIONS, MERGED_INTO, NAMES, TRUST_ORDER, derived_id, may_stand_for
from agent_memory.models.knowledge import MAX_NAME_CHARS, UNTYPED, EntityType
from agent_memory.models.memory import FROM
from agent_memory.store.record_redaction import Redacted, make_record, with_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.knowledge.pipeline.ingestion_config import EntityDeduplicationConfig
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, EntityMentions, Episode, Relation, Resource, Trust


def get_entity_id(name: str, group: str) -> str:
    """Return the ID of the entity of a name."""
    return list_entity_ids(name, group)[0]


def list_entity_ids(name: str, group: str) -> tuple[str, ...]:
    """Return the possible IDs of an entity, the present form first.

    Earlier versions made those of firms without the legal form.
    """
    return tuple(derived_id(ENTITY.prefix, group, form) for form in dict.fromkeys((full_form(name), normal_form(name))))


class EntityMatcherIndex:
    """Entities of one group, to compare a new one with.

    Args:
        entities: All entities of the group.
        group: Name of the group.
        config: Stages that compare entities.
        mentions: Records of where they are named.
    """

    def __init__(
        self,
        entities: Iterable[Entity],
        group: str,
        config: EntityDeduplicationConfig,
        mentions: Iterable[EntityMentions] = (),
    ) -> None:
        self.group = group
        self.evidence, self.gazetteer = NameCounts(mentions), Gazetteer()
        self._by_id: dict[str, Entity] = {}
        self._matcher = Matcher(config=Matching(**config.model_dump()))
        for entity in entities:
            self.add(entity)

    def add(self, entity: Entity) -> None:
        """Add or replace an entity; only shown ones are compared."""
        if entity.group != self.group:
            return
        self._by_id[entity.id] = entity
        is_shown = self.evidence.is_shown(entity)
        is_candidate = entity.source.detail == BY_CAPITALS and not (is_shown or self.evidence.is_common(entity))
        for name in (entity.name, *entity.aliases):
            if is_shown or is_candidate:
                kind = "name" if entity.entity_type in UNTYPED else entity.entity_type
                has_lowercase_use = entity.source.detail == BY_CAPITALS and self.evidence.has_lowercase(entity)
                self.gazetteer.add(KnownName(name, kind, is_candidate, has_lowercase_use))
            else:
                self.gazetteer.remove(name)
        if entity.merged_into is None and is_shown:
            self._matcher.add(entity.id, describe_entity(entity))
        else:
            self._matcher.remove(entity.id)

    def add_mentions(self, mentions: EntityMentions) -> None:
        """Count the names of a record of mentions."""
        self.evidence.add(mentions)
        for entity in filter(None, map(self.get, mentions.entities)):
            if entity.source.detail == BY_CAPITALS:
                self.add(entity)

    def is_common(self, entity_id: str) -> bool:
        """Return True for a common word, whose mentions are not stored."""
        entity = self._by_id[entity_id]
        return entity.source.detail == BY_CAPITALS and self.evidence.is_common(entity)

    def get(self, entity_id: str) -> Entity | None:
        """Return an entity by its ID, or None."""
        return self._by_id.get(entity_id)

    def find_entity(self, name: str) -> Entity | None:
        """Return the entity of a name, or None."""
        entities = filter(None, map(self._by_id.get, list_entity_ids(name, self.group)))
        return next((entity for entity in entities if full_form(entity.name) == full_form(name)), None)

    def cluster(self, entity_id: str) -> list[str]:
        """Return the IDs of all entities merged with one, its own included."""
        return list_cluster(entity_id, self._by_id)

    def match(self, entity: Described, trust: Trust) -> Match | None:
        """Return the known entity that a description is likely of, or None.

        It is only a suggestion if one of the two is from an untrusted source, so that a document cannot rename what the
        user speaks of. It is also one if it contradicts an entity merged with the known one.
        """
        match = self._matcher.find(entity)
        if match is None or match.decision != "merge":
            return match
        cluster = [self._by_id[entity_id] for entity_id in self.cluster(match.id)]
        doubt = ""
        if (trust == "low") != (self._by_id[match.id].trust == "low"):
            doubt = "only one of the two is known from a trusted source"
        elif any(
            self._matcher.contradict(entity, describe_entity(merged)) for merged in cluster if merged.id != match.id
        ):
            doubt = "it contradicts another name of that one"
        return replace(match, decision="suggest", evidence=(*match.evidence, doubt)) if doubt else match


class EntityIndexCache:
    """Known entities by group, read again when another writer changed them.

    Args:
        knowledge: Records of the agent.
        config: Stages that compare entities.
    """

    def __init__(self, knowledge: Knowledge, config: EntityDeduplicationConfig) -> None:
        self._knowledge, self._config = knowledge, config
        self._by_group: dict[str, EntityMatcherIndex] = {}
        self._seen = ""

    async def get(self, groups: Iterable[str]) -> Mapping[str, EntityMatcherIndex]:
        """Return the known entities of each group.

        Raises:
            StorageError: They cannot be read.
        """
        last = await self._knowledge.entities.last_change() or ""
        if last != self._seen:
            self._by_group, self._seen = {}, last
        missing = set(groups) - self._by_group.keys()
        if missing:
            entities, mentions = await self._knowledge.entities.valid(), await self._knowledge.mentions.valid()
            for group in missing:
                members = [entity for entity in entities if entity.group == group]
                naming = [record for record in mentions if record.group == group]
                self._by_group[group] = await asyncio.to_thread(
                    EntityMatcherIndex, members, group, self._config, naming
                )
        return self._by_group

    def clear(self) -> None:
        """Read the entities again next time."""
        self._by_group = {}

    async def keep(self, by_group: Mapping[str, EntityMatcherIndex]) -> None:
        """Keep entities that know the last change already."""
        self._by_group, self._seen = {**by_group}, await self._knowledge.entities.last_change() or ""


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
