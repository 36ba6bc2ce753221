"""What the wording of a question says about how its evidence is to be read. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final
from unicodedata import category

from agent_memory.language.text_forms import tells_time
from agent_memory.language.words import STOP_WORDS, index_terms, query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

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


_QUESTION_WORD: Final = re.compile(r"[^\W_]+")
_IDENTIFIER: Final = re.compile(r"[^\W\d_][-_./\\:@#+]++\w|[a-z][A-Z]|\d{3}|\d[-_./:]\d|[^\W_]\d|\d[^\W\d_]")
_SPACES: Final = re.compile(r"\s+")


def named_in(query: str, speakers: AbstractSet[str]) -> frozenset[str]:
    """Return the speakers a question names, by full name or by a first name that is theirs alone."""
    words = [word.casefold() for word in _QUESTION_WORD.findall(query)]
    said = f" {' '.join(words)} "
    first_names = Counter(name.split()[0] for name in speakers)
    return frozenset(
        name
        for name in speakers
        if f" {' '.join(_QUESTION_WORD.findall(name))} " in said
        or (first_names[name.split()[0]] == 1 and f" {name.split()[0]} " in said)
    )


def capitalised_in(query: str) -> list[str]:
    """Return the words of a question that may be names, folded: neither the first one nor days and months.

    A word all in capitals is more likely an abbreviation.
    """
    likely = (word for word in _QUESTION_WORD.findall(query)[1:] if word[0].isupper() and not word.isupper())
    return [word.casefold() for word in likely if not tells_time(index_terms(word))]


def identifiers_in(query: str) -> frozenset[str]:
    """Return the terms of identifiers in a question: file names, ports, versions, `camelCase`, `with-joiners`."""
    words = [word.strip(".,:;?!'\"()") for word in query.split()]
    return frozenset(terms[0] for word in words if _IDENTIFIER.search(word) and (terms := index_terms(word)))


def without_names(query: str, named: Iterable[str]) -> str:
    """Leave out who is asked about: the name pulls a small model towards every turn that person is greeted in."""
    text = query
    for name in sorted(named, key=len, reverse=True):
        for form in (name, name.split()[0]):
            text = re.sub(rf"(?<!\w){re.escape(form)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    text = _SPACES.sub(" ", text).strip()
    return text if _QUESTION_WORD.search(text) else query.strip()
