"""A small statistical model of English: which words of a sentence are a name. No network, no libraries.

A linear chain of begins, continues and is none, over the features of each word; trained by `scripts/names`.
"""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from agent_memory.entities.features import Part, WordLists, WordLook, parts_of, read_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LABELS: Final = "OBI"
NAMED_LISTS: Final = ("given", "family", "city", "country")
_SCALE: Final = 100
_NEVER: Final = -1e9
_SURE: Final = 20.0
_SLOPE: Final = 0.34
_OFFSET: Final = -0.88
_MOST_KNOWN: Final = 50_000
"""Words and parts of a text that are kept at once: about 15 MB."""
_Scores = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Chain:
    """Weights of features and of steps from label to label, and how much a word has to look like no name."""

    weights: Mapping[str, _Scores]
    steps: tuple[_Scores, _Scores, _Scores]
    reluctance: float = 0.0

    def scores(self, features: Sequence[Sequence[str]]) -> list[_Scores]:
        """Return for each word how much it looks like none, like the beginning and like the rest of a name."""
        return [self.total([self.weigh(own)]) for own in features]

    def weigh(self, features: Sequence[str]) -> _Scores:
        """Return the sum of the weights of features."""
        none = begins = within = 0.0
        for feature in features:
            if weight := self.weights.get(feature):
                none += weight[0]
                begins += weight[1]
                within += weight[2]
        return none, begins, within

    def total(self, sums: Sequence[_Scores]) -> _Scores:
        """Return the score of a word from the sums of its parts."""
        none, begins, within = self.reluctance, 0.0, 0.0
        for part in sums:
            none += part[0]
            begins += part[1]
            within += part[2]
        return none, begins, within

    def best(self, scores: Sequence[_Scores]) -> str:
        """Return the most likely labels of a sentence: `OBI` says that a name stands behind one other word."""
        if not scores:
            return ""
        before: _Scores = (scores[0][0], scores[0][1], _NEVER)
        came: list[tuple[int, int, int]] = []
        columns = tuple(zip(*self.steps, strict=True))
        for own in scores[1:]:
            reached, origins = zip(*(_best_step(before, column) for column in columns), strict=True)
            came.append((origins[0], origins[1], origins[2]))
            before = (reached[0] + own[0], reached[1] + own[1], reached[2] + own[2])
        label = max(range(3), key=before.__getitem__)
        path = [label]
        for origins in reversed(came):
            label = origins[label]
            path.append(label)
        return "".join(LABELS[each] for each in reversed(path))


def _best_step(before: _Scores, steps: Sequence[float]) -> tuple[float, int]:
    reached = (before[0] + steps[0], before[1] + steps[1], before[2] + steps[2])
    best = max(reached)
    return best, reached.index(best)


def confidence(scores: Sequence[_Scores]) -> float:
    """Return how likely a span is a name, 0 to 1: from how far its words are from being none, fitted on posts."""
    margins = [max(begins, within) - none for none, begins, within in scores]
    fitted = _SLOPE * sum(margins) / len(margins) + _OFFSET
    return round(1 / (1 + math.exp(-max(-_SURE, min(_SURE, fitted)))), 3)


@cache
def chain() -> Chain:
    """Return the model that ships with the package."""
    read = _read("model.json.gz")
    weights = {
        feature: (none / _SCALE, begins / _SCALE, within / _SCALE)
        for feature, (none, begins, within) in read["weights"].items()
    }
    steps = tuple(tuple(step) for step in read["steps"])
    return Chain(weights, steps, read["reluctance"])  # type: ignore[arg-type]


@cache
def word_lists() -> WordLists:
    """Return classes and frequencies of words, and the lists of names that the model knows."""
    classes: dict[str, str] = {}
    frequency: dict[str, int] = {}
    text = gzip.decompress((files(__package__) / "data" / "classes.txt.gz").read_bytes()).decode()
    for line in text.split("\n"):
        path, often, *words = line.split(" ")
        classes.update(dict.fromkeys(words, path))
        frequency.update(dict.fromkeys(words, int(often)))
    names = known_names()
    return WordLists(classes, frequency, {name: names[name] for name in NAMED_LISTS})


@cache
def known_names() -> Mapping[str, frozenset[str]]:
    """Return given and family names, cities, countries, and such in Han script, by the name of the list."""
    return {name: frozenset(words) for name, words in _read("names.json.gz").items()}


def _read(name: str) -> Any:
    return json.loads(gzip.decompress((files(__package__) / "data" / name).read_bytes()))


class TextTagger:
    """Labeler of one text's sentences; caches words in equal surroundings."""

    def __init__(self) -> None:
        self._looks, self._sums = dict[str, WordLook](), dict[Part, _Scores]()

    def labels_of(self, words: Sequence[str]) -> tuple[str, list[_Scores]]:
        """Return the label of each word of a sentence, and its scores."""
        model = chain()
        scores = [model.total([self._sum_of(part) for part in parts]) for parts in self._parts_of(words)]
        return model.best(scores), scores

    def _parts_of(self, words: Sequence[str]) -> Iterator[list[Part]]:
        if len(self._looks) + len(self._sums) > _MOST_KNOWN:
            self._looks.clear()
            self._sums.clear()
        return parts_of(words, word_lists(), self._looks)

    def _sum_of(self, part: Part) -> _Scores:
        known = self._sums.get(part)
        if known is None:
            known = self._sums[part] = chain().weigh(read_part(part))
        return known
