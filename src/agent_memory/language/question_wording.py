"""What the wording of a question says about how its evidence is to be read. Pure functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from unicodedata import category

from agent_memory.language.words import STOP_WORDS, query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORD: Final = re.compile(r"[^\W\d_]+")
_OTHER_WORDS: Final = """
    wie wer wann wo wohin woher warum wieso weshalb welche welcher welches welchen welchem wem wessen
    que qué cual cuál cuales cuáles donde dónde quien quién cuando cuándo como cómo cuanto cuánto cuantos cuántos por
    qui quel quelle quels quelles où quand combien pourquoi est-ce comment quoi
    chi quale quali dove quando quanto quanti perché cosa
    quem qual quais onde quantos porque
"""
_ASKING: Final = frozenset(_OTHER_WORDS.split())
"""Question words of German, Spanish, French, Italian and Portuguese; none is an English word of its own but "comment",
"come" and "wo", which an English function word beside them outweighs."""

_LATIN_END: Final = "\u0250"


def is_foreign(question: str) -> bool:
    """Tell whether a question is in another language than English, as far as that is plain from a few words.

    True for a question mostly in another script than the Latin, or with a question word of another language and no
    English function word but such as both have.
    """
    letters = [char for char in question if char.isalpha()]
    if sum(char >= _LATIN_END for char in letters) * 2 > len(letters):
        return True
    words = {word.casefold() for word in _WORD.findall(question)}
    return not words.isdisjoint(_ASKING) and words.isdisjoint(STOP_WORDS - _SHARED)


def is_unlatin(question: str) -> bool:
    """Tell whether a question is mostly in another script than the Latin, in signs such as emoji, or in nothing."""
    latin = sum(char < _LATIN_END and char.isalnum() for char in question)
    if question.isascii():
        return not latin
    others = sum(char >= _LATIN_END and (char.isalnum() or category(char)[0] == "S") for char in question)
    return others > latin or not latin


_SHARED: Final = frozenset({"a", "am", "an", "as", "do", "he", "her", "him", "i", "in", "is", "me", "my", "so", "was"})


_MEMORY_WORDS: Final = """
    what which who all any anything everything thing things list show tell give know known store stored remember
    remembered learn learned learnt memory memories
"""
_EVENT_WORDS: Final = """
    new happen happened occur occurred change changed changes decide decided decision decisions make made note noted
    notes say said discuss discussed do did done go going went wrong fix fixed find found add added work worked talk
    talked event events news happening
"""
_MEMORY: Final = frozenset(query_terms(_MEMORY_WORDS))
_ANY: Final = _MEMORY | frozenset(query_terms(_EVENT_WORDS))


def is_without_topic(question: str, names: Iterable[str]) -> bool:
    """Return True if a question asks for the memory as a whole: "what do you know about me".

    Args:
        question: Text of the question.
        names: Names of the agent and its user, which are no topic.
    """
    if not any(char.isalnum() for char in question):
        return False
    own = {term for name in names for term in query_terms(name)}
    return _MEMORY.issuperset(set(query_terms(question)) - own)


def asks_for_anything(question: str) -> bool:
    """Tell whether a question, its time taken away, names nothing of its own: "what happened", "what did we decide"."""
    return _ANY.issuperset(query_terms(question))
