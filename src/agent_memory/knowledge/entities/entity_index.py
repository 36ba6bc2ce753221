"""Index of known entities by name and group."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.knowledge.entities.matching.matcher import Match, Matcher, Matching
from agent_memory.knowledge.entities.matching.normal_forms import full_form, normal_form
from agent_memory.knowledge.entities.matching.profiles import Described, describe_entity
from agent_memory.knowledge.entities.merges import NameCounts, list_cluster
from agent_memory.knowledge.entities.name_finder import BY_CAPITALS, Gazetteer, KnownName
from agent_memory.models import ENTITY, derived_id
from agent_memory.models.knowledge import UNTYPED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.knowledge.pipeline.ingestion_config import EntityDeduplicationConfig
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Entity, EntityMentions, Trust


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
