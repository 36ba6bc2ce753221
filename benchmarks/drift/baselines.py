"""The rival on a drift world: tf-idf over titles."""

# ruff: noqa: ARG002 - a baseline leaves alone what it cannot do

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Final

import numpy as np

from benchmarks.drift.system import RecallAnswer, ShownNote, SuspectPair, SystemAbilities, WriteAnswer

_WORD: Final = re.compile(r"[a-z0-9]+")
_NEGATIONS: Final = frozenset(
    ["not", "never", "no", "nobody", "cannot", "without", "wrong", "longer", "mistaken", "nothing"]
)


class TfIdf:
    """Titles as vectors of tf-idf; shows titles, those alone that come near the best.

    Two titles are suspects if they are alike and a number or a negation stands in one of them alone.

    Args:
        near: Least share of the best hit's similarity that a shown one has.
        alike: Least cosine of suspects. Both are such that the published figures of such a system come out.
    """

    can = SystemAbilities(suspects=True)

    def __init__(self, near: float = 0.73, alike: float = 0.575) -> None:
        self._notes: dict[str, dict[str, Any]] = {}
        self._near, self._alike = near, alike
        self._rows: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._idf = self._vectors = np.zeros(0)

    async def inscribe(self, record: dict[str, Any], mode: str) -> WriteAnswer:
        """Keep a note; vectors are made when they are needed."""
        self._notes[record["key"]] = record
        self._rows = {}
        return WriteAnswer()

    async def link(self, start: str, end: str, verb: str) -> None:
        """Know nothing of links."""

    async def supersede(self, old: str, new: dict[str, Any]) -> WriteAnswer:
        """Replace in place."""
        self._notes.pop(old, None)
        return await self.inscribe(new, "write")

    async def settle(self) -> None:
        """Do nothing: no work is pending."""

    async def recall(self, query: str, k: int, window: tuple[float, float] | None) -> RecallAnswer:
        """Return the notes of the window that come near the best."""
        self._index()
        vector = self._vector(query)
        similar = self._vectors @ (vector / (np.linalg.norm(vector) or 1.0))
        first, last = window or (-math.inf, math.inf)
        among = [
            (similar[self._rows[key]], note) for key, note in self._notes.items() if first <= note["created_at"] < last
        ]
        ranked = sorted(among, key=lambda pair: -pair[0])[:k]
        best = [note for value, note in ranked if value > 0 and value >= self._near * ranked[0][0]]
        return RecallAnswer(tuple(ShownNote(note["key"], str(note["title"]), note["created_at"]) for note in best))

    async def recall_path(self, path: str, k: int) -> RecallAnswer:
        """Search for the path."""
        return await self.recall(path, k, None)

    async def lineage(self, key: str) -> list[str] | None:
        """Keep no history."""
        return None

    async def suspects(self) -> list[SuspectPair]:
        """Return the pairs of titles that are alike but for a number or a negation."""
        self._index()
        keys = list(self._rows)
        words = [set(_WORD.findall(self._notes[key]["title"].lower())) for key in keys]
        alike = np.argwhere(np.triu(self._vectors @ self._vectors.T >= self._alike, 1))
        return [SuspectPair(keys[one], keys[other]) for one, other in alike if _differs(words[one] ^ words[other])]

    async def release(self, key: str, reason: str) -> None:
        """Delete."""
        await self.purge(key)

    async def purge(self, key: str) -> None:
        """Delete."""
        self._notes.pop(key, None)
        self._rows = {}

    def _index(self) -> None:
        if self._rows:
            return
        self._rows = {key: row for row, key in enumerate(self._notes)}
        bags = [set(_WORD.findall(note["title"].lower())) for note in self._notes.values()]
        found = Counter(word for bag in bags for word in bag)
        self._columns = {word: column for column, word in enumerate(found)}
        self._idf = np.array([math.log(1 + len(bags) / count) for count in found.values()])
        vectors = np.array([self._vector(note["title"]) for note in self._notes.values()])
        self._vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def _vector(self, text: str) -> Any:
        vector = np.zeros(len(self._columns))
        for word in _WORD.findall(text.lower()):
            if word in self._columns:
                vector[self._columns[word]] += self._idf[self._columns[word]]
        return vector


def _differs(words: set[str]) -> bool:
    return bool(words & _NEGATIONS) or any(word.isdigit() for word in words)
