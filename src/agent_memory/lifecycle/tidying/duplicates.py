"""Detection of memories with the same words. Pure.

Strict: a wrong merge is worse than none.

The same words in the same order, except white space, punctuation between words, the case of a sentence's first
word, and articles. So no number, id, name, negation, question or symbol differs; and what names a time by when it was
said ("yesterday") has to mean the same days.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from agent_memory.capture.sameness import differ_in_meaning
from agent_memory.models import BESIDE, DISTINCT, SUSPECT, TRUST_ORDER
from agent_memory.times import times_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agent_memory.models import Memory

_TOKEN: Final = re.compile(r"[^\W_]+(?:[._:/@+'-]?[^\W_]+|_)*|[^\w\s]|_")
_PLAIN: Final = frozenset('.,;:!"()')
"""Signs that tell nothing where they stand between words; all others count."""
_ENDS: Final = frozenset(".!?")
_ARTICLES: Final = frozenset({"the", "a", "an"})
_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")
_DECIDED: Final = frozenset({BESIDE, DISTINCT, SUSPECT})
"""Links between two memories of which somebody decides, or has decided, what they are to each other."""


def words_of(text: str) -> tuple[str, ...]:
    """Return what a text is compared by; empty for one without words."""
    words: list[str] = []
    begins = True
    for token in _TOKEN.findall(unicodedata.normalize("NFC", text).translate(_QUOTES)):
        if token in _PLAIN:
            begins = begins or token in _ENDS
            continue
        word = token.lower() if (begins and token[1:].islower()) or token.lower() in _ARTICLES else token
        begins = token in _ENDS
        if word not in _ARTICLES:
            words.append(word)
    return tuple(words)


def duplicates(memories: Iterable[Memory]) -> Iterator[tuple[Memory, list[Memory]]]:
    """Yield each memory that is said more than once, the best one, with the others: pinned, then trusted, then newest.

    Only within one group and project, of one topic and one end, and where nobody has decided otherwise.
    """
    by_words: dict[tuple[object, ...], list[Memory]] = {}
    for memory in memories:
        if words := words_of(memory.content):
            key = words, memory.belongs_to, memory.project.casefold(), memory.topic, memory.expires_at
            by_words.setdefault(key, []).append(memory)
    for same in by_words.values():
        best, *others = sorted(same, key=_rank, reverse=True)
        if alike := [each for each in others if _says_the_same(best, each)]:
            yield best, alike


def _rank(memory: Memory) -> tuple[bool, int, float, str]:
    return memory.pinned, TRUST_ORDER.index(memory.trust), memory.timestamp.timestamp(), memory.id


def _says_the_same(one: Memory, other: Memory) -> bool:
    if any(link.id in {one.id, other.id} and link.rel in _DECIDED for each in (one, other) for link in each.links):
        return False
    if differ_in_meaning(one.content.lower(), other.content.lower()):
        return False
    return _days(one) == _days(other)


def _days(memory: Memory) -> list[tuple[object, ...]]:
    return [mention.readings for mention in times_in(memory.content, memory.said_at)]
