"""Stage of background work that extracts entities and relations."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.entities.entity_ids import list_entity_ids
from agent_memory.errors import StorageError
from agent_memory.ingestion import metrics
from agent_memory.ingestion.entities.entity_drafts import Drafts, resolve, resolve_speaker
from agent_memory.ingestion.entities.entity_index import EntityIndexCache
from agent_memory.knowledge.relation_records import store_relations
from agent_memory.models import MENTIONS, Episode
from agent_memory.models.entities import ENTITY_STAGE
from agent_memory.signals import span
from agent_memory.storage.cleaning import redact_fields
from agent_memory.tasks.stage import RECORD_ERRORS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agent_memory.ingestion.config import MemoryIngestionConfig
    from agent_memory.ingestion.entities.entity_index import EntityMatcherIndex
    from agent_memory.ingestion.entity_extractor import EntityExtractor
    from agent_memory.ingestion.shapes import EntityExtractionResult
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Resource
    from agent_memory.tasks.stage import Batch


class EntityStage:
    """Extracts entities of one kind of records. See `agent_memory.tasks.stage.Stage`.

    Args:
        knowledge: Records of the agent.
        source: Name of the kind: resources or episodes.
        config: Stages that compare entities.
        extractor: Extractor of the entities of one text.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = ENTITY_STAGE
    version = 2

    def __init__(
        self, knowledge: Knowledge, source: str, config: MemoryIngestionConfig, extractor: EntityExtractor
    ) -> None:
        self._knowledge, self.source, self._extractor = knowledge, source, extractor
        self._known = EntityIndexCache(knowledge, config.deduplication)
        self._conversations = set[str]()

    async def gone(self) -> Collection[str]:
        """Return nothing: undone records may come again.

        `forget_entity` puts what a person forgot on the mark.
        """
        return ()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        failed: dict[str, str] = {}
        known = await self._known.get({record.group for record in batch.records})
        await self._add_speakers(batch, known)
        for record in batch.records:
            if isinstance(record, Episode) or record.resource_type != "conversation":
                try:
                    text = await self._knowledge.text_of(record)
                except StorageError as error:
                    if error.code not in RECORD_ERRORS:
                        raise
                    failed[record.id] = error.code
                    continue
                await self._read(record, text, known[record.group], batch)
        return failed

    async def _add_speakers(self, batch: Batch, known: Mapping[str, EntityMatcherIndex]) -> None:
        """Store the people who speak in the conversations of a batch."""
        turns = [record for record in batch.records if isinstance(record, Episode)]
        for conversation in {turn.conversation for turn in turns if turn.conversation} - self._conversations:
            self._conversations.add(conversation)
            turns += await self._knowledge.episodes.linked_to(conversation)
        first = {(turn.group, turn.speaker): turn for turn in reversed(turns) if turn.group in known}
        for turn in first.values():
            if set(batch.never).isdisjoint(list_entity_ids(turn.speaker, turn.group)):
                entities = known[turn.group]
                await self._keep(resolve_speaker(turn, entities, self._knowledge.clock()), entities)

    async def _read(self, record: Episode | Resource, text: str, known: EntityMatcherIndex, batch: Batch) -> None:
        """Store the entities of a record."""
        result = await self._extractor.of_text(record, text, known.gazetteer, batch.run)
        result = await asyncio.to_thread(_without_forgotten, result, record.group, batch.never)
        with span("memory.deduplicate_entity", count=len(result.entities)):
            drafts = await asyncio.to_thread(resolve, record, result, known, self._knowledge.clock())
        for stage in drafts.merged:
            metrics.DEDUPLICATION_MATCHES.add(stage=stage)
        await self._keep(drafts, known)

    async def _keep(self, drafts: Drafts, known: EntityMatcherIndex) -> None:
        """Store drafts, entities before the records that name them."""
        knowledge = self._knowledge
        if drafts.entities:
            await knowledge.entities.store_many(drafts.entities)
        for entity_id, changes in drafts.raised.items():
            await knowledge.entities.update(entity_id, changes)
        for each in drafts.mentions:
            before = await knowledge.mentions.get(each.value.id)
            if before is None:
                await knowledge.mentions.store_many([each])
            elif set(before.entities) < set(each.value.entities):  # a name that is known since it was read before
                changes = each.value.model_dump(include={"content", "at", "links"})
                await knowledge.mentions.update(before.id, redact_fields(MENTIONS, changes))
        for relation in await store_relations(knowledge, drafts.relations, known.cluster):
            metrics.RELATIONSHIPS_CREATED.add(relation_type=relation.relation_type)
        await self._known.keep()


def _without_forgotten(result: EntityExtractionResult, group: str, never: Collection[str]) -> EntityExtractionResult:
    """Return a result without forgotten entities."""
    if not never:
        return result
    entities = [each for each in result.entities if not any(one in never for one in list_entity_ids(each.name, group))]
    return replace(result, entities=entities)
