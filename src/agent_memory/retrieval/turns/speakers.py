"""Who speaks in a text of the form `Name: words`, and which speakers a question names. Pure functions of text."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet

_LABEL_WORDS: Final = """
    note todo fixme warning tip hint fact rule important summary decision preference discovery pattern task bugfix
    question insight answer example reason update error fix problem solution context result http https file
"""
_LABELS: Final = frozenset(_LABEL_WORDS.split())
"""Words before a colon that name a kind of note, not a person."""

_SPEAKER: Final = re.compile(r"\s*([^\W\d_][\w.'\u2019-]*(?: \w[\w.'\u2019-]*){0,2}):\s")
_LEAST_LINES: Final = 4
_WORD: Final = re.compile(r"[^\W_]+")
_SPACES: Final = re.compile(r"\s+")


def speaker_of(text: str) -> str | None:
    """Return the folded name of who speaks when a text is one turn of a talk; None for anything else."""
    match = _SPEAKER.match(text)
    if match is None or match.group(1).casefold() in _LABELS:
        return None
    return match.group(1).casefold()


def speakers_within(text: str) -> frozenset[str]:
    """Return who speaks when one text holds a whole talk: several lines of turns by at least two people."""
    lines = text.split("\n")
    if len(lines) < _LEAST_LINES:
        return frozenset()
    spoken = [speaker for line in lines if (speaker := speaker_of(line)) is not None]
    people = frozenset(spoken)
    return people if len(people) > 1 and len(spoken) >= max(_LEAST_LINES, 2 * len(people)) else frozenset()


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


def without_names(query: str, named: Iterable[str]) -> str:
    """Leave out who is asked about: the name pulls a small model towards every turn that person is greeted in.

    Measured on the tuning conversations: fused frac@10 +.007, MRR +.006, at the same cost.
    """
    text = query
    for name in sorted(named, key=len, reverse=True):
        for form in (name, name.split()[0]):
            text = re.sub(rf"(?<!\w){re.escape(form)}(?:['\u2019]s)?(?!\w)", " ", text, flags=re.IGNORECASE)
    text = _SPACES.sub(" ", text).strip()
    return text if _WORD.search(text) else query.strip()
