"""Which topics an item belongs to: a declared one by its description, else those of its entities, else none. Pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.topics.entities import MOST_PAGES, entities_of, mentions, topic_name
from agent_memory.retrieval.tokens import index_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_memory.embeddings.protocol import Matrix
    from agent_memory.knowledge.topics.items import TopicItem

    Embed = Callable[[list[str]], Matrix]

UNFILED: Final = "unfiled"
FLOOR: Final = 0.2
"""Least mean of two cosines, to the whole description and to the nearest phrase of it."""
LEAST_WORDS: Final = 0.5
"""Least sum of what shared words count, where there are no vectors: each one by the number of topics that have it."""
_PHRASE: Final = re.compile(r"[,;.:\n]|\band\b")


@dataclass(frozen=True, slots=True)
class Declared:
    """A topic that somebody declared."""

    name: str
    description: str

    @property
    def phrases(self) -> list[str]:
        """The whole description, then the name and each phrase of it."""
        name = self.name.replace("_", " ")
        parts = (" ".join(part.split()) for part in _PHRASE.split(self.description))
        return [f"{name}: {self.description}", name, *(part for part in parts if part)]


@dataclass(frozen=True, slots=True)
class Assignment:
    """Topics of items, the likeliest first.

    Attributes:
        topics: For each item, by its id, the names of its topics; `UNFILED` alone, if it has none.
        titles: How topics that nobody declared are written.
    """

    topics: Mapping[str, tuple[str, ...]]
    titles: Mapping[str, str]

    def members(self) -> dict[str, list[str]]:
        """Return the ids of the items of each topic."""
        found: dict[str, list[str]] = {}
        for item, names in self.topics.items():
            for name in names:
                found.setdefault(name, []).append(item)
        return found


def assign(
    items: Sequence[TopicItem],
    declared: Sequence[Declared] = (),
    embed: Embed | None = None,
) -> Assignment:
    """Return the topics of each item.

    Args:
        items: All items, since what many speak of has a page.
        declared: Topics that somebody declared.
        embed: Returns a unit vector per text; words are compared without.
    """
    texts = [item.text for item in items]
    by_description = nearest(texts, declared, embed) if declared and texts else [""] * len(texts)
    taken = {each.name for each in declared} | {UNFILED}
    named = mentions(items)
    entities = {entity.name: entity for entity in entities_of(items, named) if entity.name not in taken}
    topics: dict[str, tuple[str, ...]] = {}
    for item, name in zip(items, by_description, strict=True):
        own = [entity for form in named[item.id] if (entity := topic_name(form)) in entities]
        topics[item.id] = (name,) if name else tuple(dict.fromkeys(own))[:MOST_PAGES] or (UNFILED,)
    return Assignment(topics, {name: entity.title for name, entity in entities.items()})


def nearest(texts: Sequence[str], declared: Sequence[Declared], embed: Embed | None = None) -> list[str]:
    """Return for each text the name of the declared topic that it belongs to, or an empty text."""
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
