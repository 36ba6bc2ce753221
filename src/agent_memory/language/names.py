"""Names in a question: whom it asks about, and what of it is embedded. Pure functions."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from agent_memory.language.text_forms import tells_time
from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

_WORD: Final = re.compile(r"[^\W_]+")
_IDENTIFIER: Final = re.compile(r"[^\W\d_][-_./\\:@#+]++\w|[a-z][A-Z]|\d{3}|\d[-_./:]\d|[^\W_]\d|\d[^\W\d_]")
_SPACES: Final = re.compile(r"\s+")


def named_in(query: str, speakers: AbstractSet[str]) -> frozenset[str]:
    """Return the speakers a question names, by full name or by a first name that is theirs alone."""
    words = [word.casefold() for word in _WORD.findall(query)]
    said = f" {' '.join(words)} "
    first_names = Counter(name.split()[0] for name in speakers)
    return frozenset(
        name
        for name in speakers
        if f" {' '.join(_WORD.findall(name))} " in said
        or (first_names[name.split()[0]] == 1 and f" {name.split()[0]} " in said)
    )


def capitalised_in(query: str) -> list[str]:
    """Return the words of a question that may be names, folded: neither the first one nor days and months.

    A word all in capitals is more likely an abbreviation.
    """
    likely = (word for word in _WORD.findall(query)[1:] if word[0].isupper() and not word.isupper())
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
    return text if _WORD.search(text) else query.strip()
