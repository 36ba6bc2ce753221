"""Stage of background work that extracts entities and relations."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError
from agent_memory.knowledge.entities.entity_drafts import (
    EntityDrafts,
    EntityIndexCache,
    EntityMatcherIndex,
    extract_entities,
    get_person_name,
    list_entity_ids,
    resolve,
    resolve_speaker,
)
from agent_memory.knowledge.entities.relations import RELATIONS, store_relations
from agent_memory.knowledge.pipeline.ingestion_config import (
    DEDUPLICATION_MATCHES,
    ENTITIES_EXTRACTED,
    EXTRACTION_LATENCY,
    RELATIONSHIPS_CREATED,
)
from agent_memory.knowledge.pipeline.stages import RECORD_ERRORS, Batch
from agent_memory.logs import get_logger, span
from agent_memory.models import MENTIONS, Episode
from agent_memory.models.knowledge import ENTITY_STAGE
from agent_memory.store.record_redaction import Redacted, redact_fields

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from agent_memory.knowledge.entities.entity_drafts import Confidence, EntityExtractionResult
    from agent_memory.knowledge.entities.name_finder import Gazetteer
    from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import EntityMentions, Resource


log = get_logger(__name__)


class EntityStage:
    """Extracts entities of one kind of records. See `agent_memory.knowledge.pipeline.stages.Stage`.

    Args:
        knowledge: Records of the agent.
        source: Name of the kind: resources or episodes.
        config: Settings of extraction and comparison.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = ENTITY_STAGE
    version = 2

    def __init__(self, knowledge: Knowledge, source: str, config: MemoryIngestionConfig) -> None:
        self._knowledge, self.source, self._config = knowledge, source, config.entity_extraction
        self._known = EntityIndexCache(knowledge, config.deduplication)
        self._conversations = set[str]()

    async def gone(self) -> Collection[str]:
        """Return nothing: undone records may come again.

        `EntityReader.forget` puts what a person forgot on the mark.
        """
        return ()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        failed: dict[str, str] = {}
        indexes = await self._known.get({record.group for record in batch.records})
        self._known.clear()  # after an error they are read again: not all of them are stored
        drafts = await self._draft_speakers(batch, indexes)
        for record in batch.records:
            if isinstance(record, Episode) or record.resource_type != "conversation":
                try:
                    text = await self._knowledge.text_of(record)
                except StorageError as error:
                    if error.code not in RECORD_ERRORS:
                        raise
                    failed[record.id] = error.code
                    continue
                entities = indexes[record.group]
                result = await self._extract(record, text, entities.gazetteer, batch)
                draft = await asyncio.to_thread(self._resolve, record, result, entities, batch.never)
                drafts.append((record.group, draft))
        await self._keep(drafts, indexes)
        await self._known.keep(indexes)
        return failed

    async def _draft_speakers(
        self, batch: Batch, indexes: Mapping[str, EntityMatcherIndex]
    ) -> list[tuple[str, EntityDrafts]]:
        """Return drafts of the speakers in a batch, by group."""
        turns = [record for record in batch.records if isinstance(record, Episode)]
        for conversation in {turn.conversation for turn in turns if turn.conversation} - self._conversations:
            self._conversations.add(conversation)
            turns += await self._knowledge.episodes.linked_to(conversation)
        first = {(turn.group, get_person_name(turn)): turn for turn in reversed(turns) if turn.group in indexes}
        return [
            (turn.group, resolve_speaker(turn, indexes[turn.group], self._knowledge.clock()))
            for turn in first.values()
            if set(batch.never).isdisjoint(list_entity_ids(turn.speaker, turn.group))
        ]

    async def _extract(
        self, record: Episode | Resource, text: str, gazetteer: Gazetteer, batch: Batch
    ) -> EntityExtractionResult:
        """Return the entities of a record, with names seen once."""
        least: Confidence = "high" if self._config.min_confidence == "high" else "low"
        speaker, relations = get_person_name(record), record.metadata.get(RELATIONS)
        draw = partial(
            batch.run, extract_entities, text, speaker=speaker, gazetteer=gazetteer, least=least, relations=relations
        )
        return await measure_extraction(record.id, draw)

    def _resolve(
        self,
        record: Episode | Resource,
        result: EntityExtractionResult,
        index: EntityMatcherIndex,
        never: Collection[str],
    ) -> EntityDrafts:
        """Return drafts of what a record names."""
        result = _without_forgotten(result, record.group, never)
        with span("memory.deduplicate_entity", count=len(result.entities)):
            return resolve(record, result, index, self._knowledge.clock())

    async def _keep(
        self, drafts: Sequence[tuple[str, EntityDrafts]], indexes: Mapping[str, EntityMatcherIndex]
    ) -> None:
        """Store drafts by group, entities before the records that name them."""
        knowledge, changes = self._knowledge, dict[str, dict[str, Any]]()
        for _, draft in drafts:
            for entity_id, fields in draft.raised.items():
                changes[entity_id] = changes.get(entity_id, {}) | fields
            for stage in draft.merged:
                DEDUPLICATION_MATCHES.add(stage=stage)
        if new_entities := [entity for _, draft in drafts for entity in draft.entities]:
            await knowledge.entities.store_many(new_entities)
        if changes:
            await knowledge.entities.update_many(changes)
        await self._store_mentions({record.value.id: record for _, draft in drafts for record in draft.mentions})
        for group, draft in drafts:
            for relation in await store_relations(knowledge, draft.relations, indexes[group].cluster):
                RELATIONSHIPS_CREATED.add(relation_type=relation.relation_type)

    async def _store_mentions(self, mentions: Mapping[str, Redacted[EntityMentions]]) -> None:
        """Store new mentions; extend stored ones that have fewer names."""
        knowledge = self._knowledge
        stored = await knowledge.mentions.get_many(mentions)
        if new := [record for record_id, record in mentions.items() if record_id not in stored]:
            await knowledge.mentions.store_many(new)
        for record_id, before in stored.items():
            record = mentions[record_id]
            if set(before.entities) < set(record.value.entities):
                changed = record.value.model_dump(include={"content", "at", "links"})
                await knowledge.mentions.update(record_id, redact_fields(MENTIONS, changed))


def _without_forgotten(result: EntityExtractionResult, group: str, never: Collection[str]) -> EntityExtractionResult:
    """Return a result without forgotten entities."""
    if not never:
        return result
    entities = [
        entity
        for entity in result.entities
        if not any(entity_id in never for entity_id in list_entity_ids(entity.name, group))
    ]
    return replace(result, entities=entities)


async def measure_extraction(
    record_id: str, draw: Callable[[], Awaitable[EntityExtractionResult]]
) -> EntityExtractionResult:
    """Extract entities; report latency, counts and refused relations.

    Args:
        record_id: ID of the record with the text.
        draw: Extracts the entities of the text.
    """
    began = time.perf_counter()
    with span("memory.extract_entities", episode_id=record_id) as active:
        result = await draw()
        spent = (time.perf_counter() - began) * 1000
        active.set_attribute("latency_ms", round(spent, 3))
    EXTRACTION_LATENCY.observe(spent, operation="entity_extract")
    for entity in result.entities:
        ENTITIES_EXTRACTED.add(entity_type=entity.entity_type)
    for reason in result.left_out:
        log.warning("relation_left_out", episode_id=record_id, reason=reason)
    log.info(
        "entities_extracted",
        episode_id=record_id,
        entity_count=len(result.entities),
        relationship_count=len(result.relationships),
        latency_ms=round(spent, 3),
    )
    return result
