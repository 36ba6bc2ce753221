"""`EntityStage`: the step of background work that draws entities and relations from what came in."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent_memory.entities.entity_ids import list_entity_ids
from agent_memory.errors import StorageError
from agent_memory.ingestion import metrics
from agent_memory.ingestion.entities.forgetting import STAGE
from agent_memory.ingestion.entities.known import KnownEntities
from agent_memory.ingestion.entities.resolving import Drafts, resolve
from agent_memory.knowledge.relation_records import store_relations
from agent_memory.models import Episode
from agent_memory.signals import span
from agent_memory.tasks.stage import RECORD_ERRORS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from agent_memory.ingestion.config import MemoryIngestionConfig
    from agent_memory.ingestion.entity_extractor import EntityExtractor
    from agent_memory.ingestion.shapes import EntityExtractionResult
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Resource
    from agent_memory.tasks.stage import Batch


class EntityStage:
    """Draws entities from the records of one kind. See `agent_memory.tasks.stage.Stage`.

    Args:
        knowledge: The records.
        source: Name of the kind: resources or episodes.
        config: How.
        extractor: Draws from one text.

    Attributes:
        name, version, source: As in `Stage`.
    """

    name = STAGE
    version = 2

    def __init__(
        self, knowledge: Knowledge, source: str, config: MemoryIngestionConfig, extractor: EntityExtractor
    ) -> None:
        self._knowledge, self.source, self._config, self._extractor = knowledge, source, config, extractor
        self._known: dict[str, KnownEntities] = {}
        self._seen = ""

    async def gone(self) -> Collection[str]:
        """See `Stage.gone`. What was undone may come again; what a person forgot is put on the mark by who does it."""
        return ()

    async def do(self, batch: Batch) -> Mapping[str, str]:
        """See `Stage.do`."""
        failed: dict[str, str] = {}
        await self._refresh({record.group for record in batch.records})
        groups, self._known = self._known, {}  # after an error they are read again: not all of them are stored
        drafts: list[tuple[Drafts, KnownEntities]] = []
        for record in batch.records:
            if isinstance(record, Episode) or record.resource_type != "conversation":
                try:
                    text = await self._knowledge.text_of(record)
                except StorageError as error:
                    if error.code not in RECORD_ERRORS:
                        raise
                    failed[record.id] = error.code
                    continue
                entities = groups[record.group]
                result = await self._extractor.of_text(record, text, entities.gazetteer, batch.run)
                drafts.append((await asyncio.to_thread(self._resolve, record, result, entities, batch.never), entities))
        await self._keep(drafts)
        self._known, self._seen = groups, await self._knowledge.entities.last_change() or ""
        return failed

    async def _refresh(self, groups: Collection[str]) -> None:
        """Read the entities of some groups, unless nothing changed since they were read."""
        last = await self._knowledge.entities.last_change() or ""
        if last != self._seen:
            self._known, self._seen = {}, last
        missing = [group for group in groups if group not in self._known]
        if missing:
            entities, mentions = await self._knowledge.entities.valid(), await self._knowledge.mentions.valid()
            for group in missing:
                own = [entity for entity in entities if entity.group == group]
                named = [record for record in mentions if record.group == group]
                config = self._config.deduplication
                self._known[group] = await asyncio.to_thread(KnownEntities, own, group, config, named)

    def _resolve(
        self, record: Episode | Resource, result: EntityExtractionResult, known: KnownEntities, never: Collection[str]
    ) -> Drafts:
        """Return drafts of what a record names."""
        result = _without_forgotten(result, record.group, never)
        with span("memory.deduplicate_entity", count=len(result.entities)):
            return resolve(record, result, known, self._knowledge.clock())

    async def _keep(self, drafts: Sequence[tuple[Drafts, KnownEntities]]) -> None:
        """Store what is new of some records, entities before what names them."""
        knowledge, changes = self._knowledge, dict[str, dict[str, Any]]()
        for draft, _ in drafts:
            for entity_id, fields in draft.raised.items():
                changes[entity_id] = changes.get(entity_id, {}) | fields
            for stage in draft.merged:
                metrics.DEDUPLICATION_MATCHES.add(stage=stage)
        if new_entities := [entity for draft, _ in drafts for entity in draft.entities]:
            await knowledge.entities.store_many(new_entities)
        if changes:
            await knowledge.entities.update_many(changes)
        mentions = {record.value.id: record for draft, _ in drafts for record in draft.mentions}
        stored = await knowledge.mentions.get_many(mentions)
        if new := [record for record_id, record in mentions.items() if record_id not in stored]:
            await knowledge.mentions.store_many(new)
        for draft, entities in drafts:
            for relation in await store_relations(knowledge, draft.relations, entities.cluster):
                metrics.RELATIONSHIPS_CREATED.add(relation_type=relation.relation_type)


def _without_forgotten(result: EntityExtractionResult, group: str, never: Collection[str]) -> EntityExtractionResult:
    """Return a result without forgotten entities."""
    if not never:
        return result
    entities = [each for each in result.entities if not any(one in never for one in list_entity_ids(each.name, group))]
    return replace(result, entities=entities)
