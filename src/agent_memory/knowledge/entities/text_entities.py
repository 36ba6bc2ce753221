"""Entities that rules find in one text, and relations that its metadata declares. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.entities import find_mentions
from agent_memory.knowledge.entities.name_reader import BY_NAME
from agent_memory.knowledge.llm.grounding import place_of
from agent_memory.knowledge.pipeline.conversation_models import (
    SPEAKER,
    EntityExtractionResult,
    ExtractedEntity,
    confidence_name,
    least_score,
)
from agent_memory.knowledge.relation_records import DECLARED
from agent_memory.knowledge.relation_rows import read_relations

if TYPE_CHECKING:
    from agent_memory.knowledge.entities import Gazetteer
    from agent_memory.knowledge.pipeline.conversation_models import Confidence


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
        text: Whole text.
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
    start, end = place_of(name, text) or (0, 0)
    return ExtractedEntity(name, "name", "high", 1.0, start=start, end=end, rule=DECLARED)
