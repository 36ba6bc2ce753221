"""`SearchedNames`: by which names somebody is known to an agent, and whether a text has one of them. Pure."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.language.words import fold
from agent_memory.models import ENTITY, MERGED_INTO

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.care.account.records import Holding

_UNSPACED: Final = "\u2e80"
"""From here on scripts have no spaces: a name may stand directly beside another word."""


@dataclass(frozen=True, slots=True)
class SearchedNames:
    """What is looked for.

    Attributes:
        names: The name that was asked for first, then others by which the agent knows the same one.
        entities: The ids of the entities that are called so.
    """

    names: tuple[str, ...]
    entities: frozenset[str] = frozenset()

    def are_in(self, text: str) -> bool:
        """Tell whether a text has one of the names as words of their own, in capital or small letters."""
        return _pattern(self.names).search(_normal(text)) is not None

    def concern(self, holding: Holding) -> bool:
        """Tell whether a record has one of the names, is one of the entities, or points to one."""
        if holding.id in self.entities:
            return True
        pattern = _pattern(self.names)
        return any(text in self.entities or pattern.search(_normal(text)) for text in holding.strings())


def names_of(name: str, holdings: Iterable[Holding]) -> SearchedNames:
    """Return by which names the one is known that is called so: other names of the entity, and of those merged into it.

    Args:
        name: The name, or the id of an entity.
        holdings: All records.
    """
    entities = {each.id: each for each in holdings if each.kind == ENTITY.name}
    called = {one for one, each in entities.items() if one == name or fold(name) in map(fold, _names_in(each))}
    while (
        more := {
            other
            for one, each in entities.items()
            for target in _merged_into(each)
            for other in ({one} if target in called else {target} & entities.keys() if one in called else set())
        }
        - called
    ):
        called |= more
    also = [other for one in sorted(called) for other in _names_in(entities[one])]
    given = [] if name in entities else [name]
    unique: dict[str, str] = {}
    for each in filter(str.strip, [*given, *also]):
        unique.setdefault(fold(each), each)
    return SearchedNames(tuple(unique.values()), frozenset(called))


def _names_in(entity: Holding) -> Sequence[str]:
    aliases = entity.data.get("aliases")
    found = [entity.data.get("name"), *(aliases if isinstance(aliases, list) else [])]
    return [each for each in found if isinstance(each, str)]


def _merged_into(entity: Holding) -> set[str]:
    links = entity.data.get("links")
    found = [link for link in links if isinstance(link, dict)] if isinstance(links, list) else []
    return {str(link.get("id")) for link in found if link.get("rel") == MERGED_INTO}


def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds a name, also with the `s` of a genitive behind it."""
    known = _PATTERNS.get(names)
    if known is None:
        known = re.compile("|".join(_one(name) for name in names), re.IGNORECASE)
        _PATTERNS.clear()
        _PATTERNS[names] = known
    return known


_PATTERNS: Final[dict[tuple[str, ...], re.Pattern[str]]] = {}
"""The last one: compiled once for all texts."""


def _one(name: str) -> str:
    words = r"\s+".join(map(re.escape, _normal(name).split()))
    if any(character >= _UNSPACED for character in name):
        return words
    return rf"(?<!\w){words}(?:['\u2019]?s)?(?!\w)"


def _normal(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFKC", text)
