"""Declared topics, and which of them a text belongs to. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.language.words import index_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_memory.embeddings.protocol import Matrix

    Embed = Callable[[list[str]], Matrix]

FLOOR: Final = 0.2
"""Least mean of two cosines, to the whole description and to the nearest phrase of it."""
LEAST_WORDS: Final = 0.5
"""Least sum of what shared words count, where there are no vectors: each one by the number of topics that have it."""
_PHRASE: Final = re.compile(r"[,;.:\n]|\band\b")
_PLAIN: Final = re.compile(r"[^a-z0-9]+")
_MAX_NAME_CHARS: Final = 60


@dataclass(frozen=True, slots=True)
class Declared:
    """A topic that a person or a program declared."""

    name: str
    description: str

    @property
    def phrases(self) -> list[str]:
        """The whole description, then the name and each phrase of it."""
        name = self.name.replace("_", " ")
        parts = (" ".join(part.split()) for part in _PHRASE.split(self.description))
        return [f"{name}: {self.description}", name, *(part for part in parts if part)]


def nearest(texts: Sequence[str], declared: Sequence[Declared], embed: Embed | None = None) -> list[str]:
    """Return for each text the name of the declared topic that it belongs to, or an empty text."""
    if not texts or not declared:
        return [""] * len(texts)
    if embed is None:
        scores, least = _by_words(texts, declared), LEAST_WORDS
    else:
        scores, least = _by_meaning(texts, declared, embed), FLOOR
    names = []
    for row in scores:
        best = max(range(len(row)), key=row.__getitem__)
        is_tie = row.count(row[best]) > 1
        names.append(declared[best].name if row[best] >= least and not is_tie else "")
    return names


def build_name(title: str) -> str:
    """Return the topic name of a title, `project_tidewater`, or nothing."""
    from agent_memory.knowledge.entities.matching.normal import fold  # its word lists are for names alone

    name = _PLAIN.sub("_", fold(title)).strip("_")[:_MAX_NAME_CHARS].strip("_")
    return name if name[:1].isalpha() else f"n_{name}"[:_MAX_NAME_CHARS].strip("_") if name else ""


def _by_meaning(texts: Sequence[str], declared: Sequence[Declared], embed: Embed) -> list[list[float]]:
    phrases = [topic.phrases for topic in declared]
    vectors = embed([phrase for own in phrases for phrase in own])
    cosines = (embed(list(texts)) @ vectors.T).tolist()
    starts = [sum(map(len, phrases[:at])) for at in range(len(phrases))]
    return [
        [(row[start] + max(row[start + 1 : start + len(own)])) / 2 for start, own in zip(starts, phrases, strict=True)]
        for row in cosines
    ]


def _by_words(texts: Sequence[str], declared: Sequence[Declared]) -> list[list[float]]:
    terms = [frozenset(index_terms(topic.phrases[0])) for topic in declared]
    holders = Counter(term for own in terms for term in own)
    return [[sum(1 / holders[term] for term in own & set(index_terms(text))) for own in terms] for text in texts]
