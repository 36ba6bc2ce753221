"""What rules draw from one text: who and what it names, and how these stand to each other. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.entities import mentions_in
from agent_memory.entities.relating import relations_in
from agent_memory.ingestion.shapes import (
    EntityExtractionResult,
    ExtractedEntity,
    ExtractedRelationship,
    confidence_name,
    least_score,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.entities import Gazetteer, Mention
    from agent_memory.entities.mention import Kind
    from agent_memory.entities.relating import Relation
    from agent_memory.ingestion.shapes import Confidence


def drawn(
    text: str,
    *,
    speaker: str = "",
    gazetteer: Gazetteer | None = None,
    least: Confidence = "medium",
) -> EntityExtractionResult:
    """Return what a text names and relates.

    Args:
        text: All of it.
        speaker: Who says it: whom `I` means.
        gazetteer: Names that are known.
        least: Confidence of what is returned.
    """
    mentions = mentions_in(text, gazetteer=gazetteer, speaker=speaker)
    mentions = _as_sure_as_ever(mentions)
    enough = least_score(least)
    entities = [_entity(each) for each in mentions if each.confidence >= enough]
    relations = [
        (_relationship(each, text), each)
        for each in relations_in(text, speaker=speaker, mentions=mentions)
        if min(each.subject.confidence, each.object.confidence) >= enough
    ]
    known = {each.name for each in entities}
    # Who speaks is named by no name of the text.
    ends = (mention for each in relations for mention in (each[1].subject, each[1].object))
    kinds: dict[str, Kind] = {speaker: "person"} if speaker else {}
    kinds |= {mention.name: mention.kind for mention in ends}
    entities += [ExtractedEntity(name, kind, "high", 1.0) for name, kind in kinds.items() if name not in known]
    return EntityExtractionResult(entities, [each[0] for each in relations])


def _as_sure_as_ever(mentions: Sequence[Mention]) -> tuple[Mention, ...]:
    """Return mentions with the confidence that their name has at its surest place of the text."""
    best: dict[str, float] = {}
    for each in mentions:
        best[each.name] = max(each.confidence, best.get(each.name, 0.0))
    return tuple(replace(each, confidence=best[each.name]) for each in mentions)


def _relationship(relation: Relation, text: str) -> ExtractedRelationship:
    score = min(relation.subject.confidence, relation.object.confidence)
    return ExtractedRelationship(
        relation.subject.name,
        relation.object.name,
        relation.name,
        quote=text[relation.start : relation.end].strip(),
        is_functional=relation.functional,
        is_over=relation.ended,
        confidence=confidence_name(score),
        score=score,
    )


def _entity(mention: Mention) -> ExtractedEntity:
    score = mention.confidence
    return ExtractedEntity(
        mention.name, mention.kind, confidence_name(score), score, start=mention.start, end=mention.end
    )
