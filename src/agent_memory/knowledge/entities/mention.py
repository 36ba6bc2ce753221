"""Names in a text, and the names that an agent knows. Plain values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agent_memory.models.knowledge import EntityType

Kind: TypeAlias = "EntityType"
_WORD: Final = re.compile(r"[^\W_]+")
KNOWN: Final = 1.0
"""Confidence of a name that the agent knows already."""
REPEATED: Final = 0.6
"""Confidence of a name that a text has twice."""
SEEN_ONCE: Final = 0.4
"""Confidence of a name that a text has once; it counts if another text has it."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text.

    Attributes:
        name: Name as written, without a possessive ending or quotes.
        kind: Type that the form or a declaration gives, else `name`.
        start: First character of the name in the text.
        end: End of the name, exclusive: `text[start:end] == name`.
        confidence: Confidence that it is a name, 0 to 1.
        rule: Rule that found it, for explanations.
    """

    name: str
    kind: Kind
    start: int
    end: int
    confidence: float
    rule: str


class KnownName(NamedTuple):
    """A name that an agent knows.

    Attributes:
        name: Name as written.
        kind: Type of its entity.
        is_candidate: True if it was seen once, by a capital letter alone.
        has_lowercase_use: True if a source has it in lower case; it then counts inside sentences alone.
    """

    name: str
    kind: Kind
    is_candidate: bool = False
    has_lowercase_use: bool = False


class Gazetteer:
    """Names that an agent knows, looked up by their first word.

    Args:
        kinds: Type by name, as the name is written.
        candidates: Names that were seen once, by a capital letter alone.
    """

    def __init__(self, kinds: Mapping[str, Kind] | None = None, candidates: Iterable[str] = ()) -> None:
        self._by_word: dict[str, dict[str, KnownName]] = {}
        for name, kind in (kinds or {}).items():
            self.add(KnownName(name, kind))
        for name in candidates:
            self.add(KnownName(name, "name", is_candidate=True))

    def add(self, known: KnownName) -> None:
        """Add a name, or change what is known of it."""
        if first := _WORD.search(known.name):
            self._by_word.setdefault(first[0].casefold(), {})[known.name] = known

    def remove(self, name: str) -> None:
        """Remove a name, if it is known."""
        if first := _WORD.search(name):
            self._by_word.get(first[0].casefold(), {}).pop(name, None)

    def find(self, word: str) -> list[KnownName]:
        """Return the names that begin with a word, longest first."""
        names = self._by_word.get(word.casefold(), {})
        return sorted(names.values(), key=lambda known: -len(known.name))
