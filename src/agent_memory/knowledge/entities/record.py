"""Descriptions of entities, and matches of two. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_memory.models.knowledge import UNTYPED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import Entity

Stage: TypeAlias = Literal["exact", "fuzzy", "embedding", "rule"]
"""Stage that found a match: normal forms, letters, vectors, or parts and attributes."""
Decision: TypeAlias = Literal["merge", "suggest"]
"""Certain enough to merge, or only a suggestion for a person."""


@dataclass(frozen=True, slots=True)
class Described:
    """Description of an entity, to compare it with others.

    Attributes:
        name: Name as written.
        kind: Entity type; empty if unknown.
        attributes: Values by name of the attribute; an empty value is unknown.
        aliases: Other names of the entity.
    """

    name: str
    kind: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


def described(entity: Entity) -> Described:
    """Return the description of an entity."""
    kind = "" if entity.entity_type in UNTYPED else entity.entity_type
    return Described(entity.name, kind, entity.attributes, tuple(entity.aliases))


@dataclass(frozen=True, slots=True)
class Match:
    """A known entity that a description is likely of.

    Attributes:
        id: ID of the known entity.
        stage: Stage that found the match.
        score: Certainty, 0 to 1; comparable between matches of one stage.
        decision: `merge` or `suggest`.
        evidence: Reasons for and against, a sentence each, without values of attributes.
    """

    id: str
    stage: Stage
    score: float
    decision: Decision
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """Enabled stages of matching, and their thresholds.

    Attributes:
        exact_match_enabled: Equal normal forms of names or aliases.
        fuzzy_match_enabled: Names that differ in few letters.
        fuzzy_threshold: Least similarity of these, 0 to 1: 1 - changes / length of the longer name.
        embedding_match_enabled: Near vectors raise candidates; they decide nothing by themselves.
        embedding_threshold: Least cosine of these.
        rule_based_enabled: Parts of names and attributes are weighed against each other.
        merge_from: Least score of a merge, 0 to 1.
        suggest_from: Least score of a suggestion, 0 to 1.
    """

    exact_match_enabled: bool = True
    fuzzy_match_enabled: bool = True
    fuzzy_threshold: float = 0.85
    embedding_match_enabled: bool = True
    embedding_threshold: float = 0.80
    rule_based_enabled: bool = True
    merge_from: float = 0.98
    suggest_from: float = 0.5
