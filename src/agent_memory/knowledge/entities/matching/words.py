"""The words of `patterns/words.yaml`, as they are looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.languages import load_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS: Final[dict[str, Any]] = load_patterns("agent_memory.knowledge.entities.matching", "words")


def _lines_of(lines: Iterable[Iterable[str]]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(lines):
        for word in line:
            found.setdefault(word, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


TITLES: Final = frozenset[str](_WORDS["titles"])
LEGAL_FORMS: Final[dict[str, str]] = {
    **dict.fromkeys(_WORDS["company_ends"], ""),
    **{word: line.split()[0] for line in _WORDS["legal_forms"] for word in line.split()},
}
"""What may end a company's name, and the form it stands for; empty where it tells none."""
EMPTY_WORDS: Final = frozenset[str](_WORDS["empty_words"])
GENERIC_WORDS: Final = frozenset[str](_WORDS["generic_words"])
NEGATIONS: Final = frozenset[str](_WORDS["negations"])
EDITION_WORDS: Final = frozenset[str](_WORDS["edition_words"])
GENERATIONS: Final = frozenset[str](_WORDS["generations"])
ROLES: Final = frozenset[str](_WORDS["roles"])
OPPOSED: Final = _lines_of(line.replace("/", " ").split() for line in _WORDS["opposites"])
"""Numbers of the lines in which a word stands; others of such a line exclude it."""
SPELLINGS: Final[dict[str, str]] = {
    word: group.split("/")[0] for line in _WORDS["opposites"] for group in line.split() for word in group.split("/")
}
GIVEN_NAMES: Final = _lines_of(line.split() for line in _WORDS["given_names"])
"""Numbers of the groups of given names, used for one another, that a word is in."""
KNOWN_NAMES: Final[tuple[tuple[str, ...], ...]] = tuple(
    tuple(name.strip() for name in line.split("|")) for line in _WORDS["known_names"]
)
