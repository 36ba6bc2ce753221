"""What rules draw from one text: who and what it names. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.entities import find_mentions
from agent_memory.ingestion.shapes import SPEAKER, EntityExtractionResult, ExtractedEntity, confidence_name, least_score

if TYPE_CHECKING:
    from agent_memory.entities import Gazetteer
    from agent_memory.ingestion.shapes import Confidence


def drawn(
    text: str, *, speaker: str = "", gazetteer: Gazetteer | None = None, least: Confidence = "medium"
) -> EntityExtractionResult:
    """Return what a text names, and who speaks; rules read no relations.

    Args:
        text: Whole text.
        speaker: Name of the person who speaks, empty if unknown.
        gazetteer: Names that are known.
        least: Least confidence of what is returned.
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
    return EntityExtractionResult(entities)
