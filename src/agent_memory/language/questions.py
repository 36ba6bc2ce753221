"""Wording of a question, and the names and identifiers in it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final
from unicodedata import category

from agent_memory.language.languages import is_other_language
from agent_memory.language.text_forms import tells_time
from agent_memory.language.words import LATIN_END, STOP_WORDS, index_terms, query_terms
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

_LETTERS: Final = compile_late(r"[^\W\d_]+")
_WORD: Final = compile_late(r"[^\W_]+")
_IDENTIFIER: Final = compile_late(r"[^\W\d_][-_./\\:@#+]++\w|[a-z][A-Z]|\d{3}|\d[-_./:]\d|[^\W_]\d|\d[^\W\d_]")
_SPACES: Final = compile_late(r"\s+")
_OTHER_WORDS: Final = """
    wie wer wann wo wohin woher warum wieso weshalb welche welcher welches welchen welchem wem wessen
    que qué cual cuál cuales cuáles donde dónde quien quién cuando cuándo como cómo cuanto cuánto cuantos cuántos por
    qui quel quelle quels quelles où quand combien pourquoi est-ce comment quoi
    chi quale quali dove quando quanto quanti perché cosa
    quem qual quais onde quantos porque
    waar waarom wanneer welke hoeveel
    kto gdzie kiedy dlaczego który która które
    nerede nereye nereden hangi nasıl neden niçin kaç kimin
"""  # noqa: RUF001 - the Turkish letter
_ASKING: Final = frozenset(_OTHER_WORDS.split())
"""Question words of German, Spanish, French, Italian, Portuguese, Dutch, Polish and Turkish.

An English function word in the question outweighs "comment", "come" and "wo", which are English, too.
"""
_SURPLUS: Final = 2
"""Function words of another language beyond those of English in a question of that language. Of 2,800 English questions
none has as many; of German ones on XQuAD .89 are recognized (.80 by question words alone)."""
_SHARED: Final = frozenset(("a", "am", "an", "as", "do", "he", "her", "him", "i", "in", "is", "me", "my", "so", "was"))
"""English function words that are also words of these languages."""
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


def is_foreign(question: str) -> bool:
    """Return True if a question is in another language than English.

    It is mostly in another script than Latin, or has a question word of another language and no word that is English
    alone.
    """
    letters = [char for char in question if char.isalpha()]
    if sum(char >= LATIN_END for char in letters) * 2 > len(letters):
        return True
    words = {word.casefold() for word in _LETTERS.findall(question)}
    return not words.isdisjoint(_ASKING) and words.isdisjoint(STOP_WORDS - _SHARED)


def is_other_question(question: str) -> bool:
    """Return True if a question is in another language than English.

    Also without a question word, by its function words.
    """
    return is_foreign(question) or is_other_language(question, _SURPLUS)


def is_unlatin(question: str) -> bool:
    """Return True if a question is blank or mostly not Latin.

    Symbols such as emoji count as another script.
    """
    latin = sum(char < LATIN_END and char.isalnum() for char in question)
    if question.isascii():
        return not latin
    symbols = sum(char >= LATIN_END and (char.isalnum() or category(char)[0] == "S") for char in question)
    return symbols > latin or not latin


def is_without_topic(question: str, names: Iterable[str]) -> bool:
    """Return True if a question asks for the memory as a whole.

    Args:
        question: Text of the question, such as "what do you know about me".
        names: Names of the agent and its user, which are not a topic.
    """
    if not any(char.isalnum() for char in question):
        return False
    name_terms = {term for name in names for term in query_terms(name)}
    return _MEMORY.issuperset(set(query_terms(question)) - name_terms)


def asks_for_anything(question: str) -> bool:
    """Return True if a question without its period names nothing: "what happened"."""
    return _ANY.issuperset(query_terms(question))


def find_named_speakers(query: str, speakers: AbstractSet[str]) -> frozenset[str]:
    """Return speakers that a question names in full or unambiguously."""
    words = f" {' '.join(word.casefold() for word in _WORD.findall(query))} "
    first_names = Counter(name.split()[0] for name in speakers)
    return frozenset(
        name
        for name in speakers
        if f" {' '.join(_WORD.findall(name))} " in words
        or (first_names[name.split()[0]] == 1 and f" {name.split()[0]} " in words)
    )


def find_capitalised(query: str) -> list[str]:
    """Return the folded words of a question that may be names.

    The first word, days and months are not among them, nor abbreviations in capitals.
    """
    likely = (word for word in _WORD.findall(query)[1:] if word[0].isupper() and not word.isupper())
    return [word.casefold() for word in likely if not tells_time(index_terms(word))]


def find_identifiers(query: str) -> frozenset[str]:
    """Return the terms of identifiers in a question.

    These are file names, ports, versions, `camelCase` and `with-joiners`.
    """
    words = [word.strip(".,:;?!'\"()") for word in query.split()]
    return frozenset(terms[0] for word in words if _IDENTIFIER.search(word) and (terms := index_terms(word)))


def remove_names(query: str, names: Iterable[str]) -> str:
    """Remove names from a question that is embedded.

    A name pulls a small model towards every turn in which that person is greeted.
    """
    text = query
    for name in sorted(names, key=len, reverse=True):
        for form in (name, name.split()[0]):
            text = re.sub(rf"(?<!\w){re.escape(form)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    text = _SPACES.sub(" ", text).strip()
    return text if _WORD.search(text) else query.strip()
