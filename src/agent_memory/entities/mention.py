"""What a text names: where the name stands, what kind of thing it is, how sure that is. Plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal[
    "person", "place", "organisation", "product", "package", "host", "file", "service", "order", "issue", "concept",
    "other",
]  # fmt: skip
"""A closed list, the entity types of records."""
KNOWN: Final = 1.0
"""Confidence of a name that the agent knows already."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text.

    Attributes:
        name: As it is written, without what is only grammar or markup: no possessive ending, no quotes.
        kind: One of the closed list; `other` where it is a name, but of what is not known.
        start: Where it begins in the text, in characters.
        end: Where it ends, exclusive: `text[start:end] == name`.
        confidence: How likely it is a name at all, 0 to 1.
        rule: What found it, for explanations.
    """

    name: str
    kind: Kind
    start: int
    end: int
    confidence: float
    rule: str


@dataclass(frozen=True, slots=True)
class Gazetteer:
    """Names that an agent knows.

    Attributes:
        kinds: The kind by name, as the name is written. Matched ignoring case, except names that are an everyday word
            when written small.
    """

    kinds: Mapping[str, Kind] = field(default_factory=dict)
    index: dict[str, object] = field(default_factory=dict, init=False, repr=False, compare=False)
    """What looks names up keeps its table here: it is made once for each list, not for each text."""
