"""Extraction of entities from episodes, and comparison with known ones."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING

from agent_memory.knowledge.entities.entity_drafts import extract_entities
from agent_memory.knowledge.entities.entity_index import EntityIndexCache
from agent_memory.knowledge.entities.matching.profiles import described
from agent_memory.knowledge.entities.merges import merge
from agent_memory.knowledge.entities.relations import RELATIONS
from agent_memory.knowledge.pipeline import metrics
from agent_memory.knowledge.pipeline.conversation_models import EntityExtractionResult, checked_group
from agent_memory.knowledge.pipeline.ingestion_config import EntityDeduplicationConfig, EntityExtractionConfig
from agent_memory.logs import get_logger, span

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_memory.knowledge.entities.name_finder import Gazetteer
    from agent_memory.knowledge.pipeline.conversation_models import Confidence, Episode
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, Resource
    from agent_memory.models import Episode as EpisodeRecord

log = get_logger(__name__)


class EntityExtractor:
    """Extractor of entities and declared relations, without a time limit.

    Args:
        config: Kinds to extract.
        asking: Has no effect; earlier versions asked a language model.
    """

    def __init__(self, config: EntityExtractionConfig | None = None, asking: object = None) -> None:
        del asking
        self.config = config or EntityExtractionConfig()

    async def extract(self, episode: Episode) -> EntityExtractionResult:
        """Extract the entities of an episode, none if disabled.

        The text of an episode above 8,192 characters is its beginning.
        """
        relations = {**episode.source_metadata, **episode.metadata}.get(RELATIONS)
        draw = partial(
            asyncio.to_thread, extract_entities, episode.content, least=self.config.min_confidence, relations=relations
        )
        return await self._draw(episode.id, draw)

    async def extract_batch(self, episodes: Sequence[Episode]) -> list[EntityExtractionResult]:
        """Extract the entities of episodes, in their order."""
        at_once = asyncio.Semaphore(self.config.batch_size)

        async def one(episode: Episode) -> EntityExtractionResult:
            async with at_once:
                return await self.extract(episode)

        return list(await asyncio.gather(*map(one, episodes)))

    async def of_text(
        self,
        source: EpisodeRecord | Resource,
        text: str,
        gazetteer: Gazetteer | None,
        run: Callable[..., Awaitable[EntityExtractionResult]] = asyncio.to_thread,
    ) -> EntityExtractionResult:
        """Return the entities of a record.

        Args:
            source: Record with the text.
            text: All of its text.
            gazetteer: Names that are known.
            run: Runs the rules, off the event loop: see `agent_memory.knowledge.pipeline.stages.Batch`.
        """
        speaker = str(getattr(source, "speaker", ""))
        # a name that was seen once is kept, hidden until another text has it
        least: Confidence = "high" if self.config.min_confidence == "high" else "low"
        relations = source.metadata.get(RELATIONS)
        draw = partial(
            run, extract_entities, text, speaker=speaker, gazetteer=gazetteer, least=least, relations=relations
        )
        return await self._draw(source.id, draw)

    async def _draw(
        self, episode_id: str, draw: Callable[..., Awaitable[EntityExtractionResult]]
    ) -> EntityExtractionResult:
        if not self.config.enabled:
            return EntityExtractionResult()
        began = time.perf_counter()
        with span("memory.extract_entities", episode_id=episode_id) as told:
            result = await draw()
            spent = (time.perf_counter() - began) * 1000
            told.set_attribute("latency_ms", round(spent, 3))
        metrics.EXTRACTION_LATENCY.observe(spent, operation="entity_extract")
        for each in result.entities:
            metrics.ENTITIES_EXTRACTED.add(entity_type=each.entity_type)
        for reason in result.left_out:
            log.warning("relation_left_out", episode_id=episode_id, reason=reason)
        log.info(
            "entities_extracted",
            episode_id=episode_id,
            entity_count=len(result.entities),
            relationship_count=len(result.relationships),
            latency_ms=round(spent, 3),
        )
        return result


class EntityDeduplicator:
    """Finds the known entity of a group that a new one is the same as.

    There are four stages; the first that finds an entity decides.

    Args:
        knowledge: Records of the agent.
        config: Enabled stages.
    """

    def __init__(self, knowledge: Knowledge, config: EntityDeduplicationConfig | None = None) -> None:
        self.config = config or EntityDeduplicationConfig()
        self._known = EntityIndexCache(knowledge, self.config)

    async def find_duplicate(self, entity: Entity, group_id: str) -> Entity | None:
        """Return the known entity that is certainly the same, or None.

        It is not certain if only one of the two is from a trusted source.

        Args:
            entity: New entity.
            group_id: Group whose entities are compared.

        Raises:
            ValidationError: The group has no such name.
            StorageError: The entities cannot be read.
        """
        began = time.perf_counter()
        with span("memory.deduplicate_entity", group_id=group_id):
            known = (await self._known.get([checked_group(group_id)]))[group_id]
            match = await asyncio.to_thread(known.match, described(entity), entity.trust)
        metrics.EXTRACTION_LATENCY.observe((time.perf_counter() - began) * 1000, operation="deduplicate")
        if match is None or match.decision != "merge" or match.id == entity.id:
            return None
        metrics.DEDUPLICATION_MATCHES.add(stage=match.stage)
        return known.get(match.id)

    async def merge_entities(self, existing: Entity, new: Entity) -> Entity:
        """Return an entity merged with a new one, without storing it.

        ID and `valid_from` stay. A new attribute replaces the old one, unless its trust is lower. The metadata keeps
        the old values, so that `agent_memory.knowledge.entities.merges.split` restores them.

        Raises:
            ValidationError: They are one record, or belong to two groups.
        """
        return merge(existing, new)
