"""Sections of a long page: the nouns that its items share, told by the words around them. Pure, no model."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.wording import FUNCTION_WORDS, LIGHT_WORDS
from agent_memory.retrieval.tokens import stem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LEAST: Final = 4
"""Items that share a noun before it has a section."""
MOST: Final = 0.4
"""Share of the items beyond which a word says nothing of them."""
_NOUN_SHARE: Final = 0.3
_LEAST_SEEN: Final = 2
_TOKEN: Final = re.compile(r"[^\W\d_][\w-]*(?:['\u2019]\w+)?|[.,!?;:]")
_BEFORE_WORDS: Final = """
    a an the my our your his her their its this these those some any no every each of about for with at on new
"""
_BEFORE: Final = frozenset(_BEFORE_WORDS.split())
_BEHIND_WORDS: Final = """
    . , ! ? ; : and or but of in at for with to is was are were be has have had that which who when on from as by
    can will would so because since
"""
_BEHIND: Final = frozenset(_BEHIND_WORDS.split())
_VAGUE_WORDS: Final = """
    thing things something anything everything nothing one ones way ways lot lots bit time times day days week weeks
    weekend month months year years moment moments life people person everyone someone anyone kind kinds sort type
    part parts place places stuff others other it them me you us all both more most much many first last next best
    fun great good hard man guy guys hey thank thanks today tomorrow yesterday morning evening night tonight end
    start idea point reason case feeling chance step steps journey support experience love help work world heart
    mind difference pic pics photo photos picture pictures blast offer area favorite favourite source sources note
    notes
"""
_VAGUE: Final = frozenset(_VAGUE_WORDS.split())
_NO_SUBJECTS: Final = _VAGUE | FUNCTION_WORDS | LIGHT_WORDS
_SHORTEST: Final = 3


def subjects_of(texts: Mapping[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """Return the title of a section for each text that shares a noun with enough others, by the text's key.

    Args:
        texts: What the items say, by their ids.
        names: Words that are no subject here: whom the page is about, and who speaks.
    """
    excluded = {stem(part.casefold()) for name in names for part in name.split()}
    holders, forms = _nouns(texts, excluded)
    left = {noun: list(keys) for noun, keys in holders.items() if len(keys) <= MOST * len(texts)}
    titles: dict[str, str] = {}
    while left:
        noun = min(left, key=lambda each: (-len(left[each]), each))
        keys = left.pop(noun)
        if len(keys) < LEAST:
            break
        title = forms[noun].most_common(1)[0][0]
        titles |= dict.fromkeys(keys, title[:1].upper() + title[1:])
        left = {other: [key for key in own if key not in titles] for other, own in left.items()}
    return titles


def _nouns(texts: Mapping[str, str], excluded: set[str]) -> tuple[dict[str, list[str]], dict[str, Counter[str]]]:
    """Return which texts have each noun, and how it is written."""
    seen, as_noun = Counter[str](), Counter[str]()
    holders: dict[str, list[str]] = {}
    forms: dict[str, Counter[str]] = {}
    for key, text in texts.items():
        tokens = _TOKEN.findall(text.casefold())
        for at, token in enumerate(tokens):
            if len(token) < _SHORTEST or token in _NO_SUBJECTS or (own := stem(token)) in excluded:
                continue
            seen[own] += 1
            before, behind = tokens[at - 1] if at else "", tokens[at + 1] if at + 1 < len(tokens) else "."
            as_noun[own] += before in _BEFORE and behind in _BEHIND
            forms.setdefault(own, Counter())[token] += 1
            if key not in holders.setdefault(own, [])[-1:]:
                holders[own].append(key)
    nouns = [own for own in holders if as_noun[own] >= max(_LEAST_SEEN, _NOUN_SHARE * seen[own])]
    return {own: holders[own] for own in nouns}, forms
