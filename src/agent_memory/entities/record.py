"""What two descriptions of entities are compared by, and what came of it. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from agent_memory.models.entities import UNTYPED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import Entity

Stage: TypeAlias = Literal["exact", "fuzzy", "embedding", "rule"]
"""What found a match: equal normal forms, few changed letters, near vectors, or agreement of parts and attributes."""
Decision: TypeAlias = Literal["merge", "suggest"]
"""Sure enough to be taken for one, or only to be shown to somebody who knows."""


@dataclass(frozen=True, slots=True)
class Described:
    """What is known of an entity when it is compared.

    Attributes:
        name: As it was written.
        kind: One of the closed list of entity types; empty where it is not known.
        attributes: What else was said of it, by name. A value that is empty counts as not known.
        aliases: Other names it was called by.
    """

    name: str
    kind: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


def described(entity: Entity) -> Described:
    """Return what an entity is compared by."""
    kind = "" if entity.entity_type in UNTYPED else entity.entity_type
    return Described(entity.name, kind, entity.attributes, tuple(entity.aliases))


@dataclass(frozen=True, slots=True)
class Match:
    """That a description is likely the same as a known one.

    Attributes:
        id: Of the known one.
        stage: What found it.
        score: How sure, 0 to 1; comparable between matches of one stage.
        decision: `merge` or `suggest`.
        evidence: What speaks for it and against it, a sentence each, without values of attributes.
    """

    id: str
    stage: Stage
    score: float
    decision: Decision
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matching:
    """Which stages take part, and from where on they count.

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
