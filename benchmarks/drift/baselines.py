"""Baselines for a drift world: tf-idf, grep, chance, and a queue of every pair."""

# ruff: noqa: ARG002 - a baseline leaves alone what it cannot do

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any, Final

import numpy as np

from benchmarks.drift.system import RecallAnswer, ShownNote, SuspectPair, SystemAbilities, WriteAnswer

_WORD: Final = re.compile(r"[a-z0-9]+")
_PATH: Final = re.compile(r"[a-z0-9_/.-]+")
_NEGATIONS: Final = frozenset(
    ["not", "never", "no", "nobody", "cannot", "without", "wrong", "longer", "mistaken", "nothing"]
)


class NoteBaseline:
    """A list of notes that shows whole ones; what ranks them is for each baseline to say."""

    can = SystemAbilities()

    def __init__(self) -> None:
        self.notes: dict[str, dict[str, Any]] = {}

    async def inscribe(self, record: dict[str, Any], mode: str) -> WriteAnswer:
        """Store a note."""
        self.add(record)
        return WriteAnswer()

    def add(self, record: dict[str, Any]) -> None:
        """Keep a note."""
        self.notes[record["key"]] = record

    async def link(self, start: str, end: str, verb: str) -> None:
        """Know nothing of links."""

    async def supersede(self, old: str, new: dict[str, Any]) -> WriteAnswer:
        """Replace in place."""
        self.notes.pop(old, None)
        self.add(new)
        return WriteAnswer()

    async def settle(self) -> None:
        """Do nothing: no work is pending."""

    async def recall(self, query: str, k: int, window: tuple[float, float] | None) -> RecallAnswer:
        """Return the best notes of the window."""
        among = [
            note
            for note in self.notes.values()
            if window is None or window[0] <= note["created_at"] < window[1]
        ]  # fmt: skip
        best = self.best(query, among, k)
        return RecallAnswer(tuple(ShownNote(note["key"], self.shown(note), note["created_at"]) for note in best))

    def best(self, query: str, among: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
        """Rank notes."""
        raise NotImplementedError

    def shown(self, note: dict[str, Any]) -> str:
        """Return the shown text of a note."""
        return f"{note['title']}\n{note['body']}"

    async def recall_path(self, path: str, k: int) -> RecallAnswer:
        """Search for the path."""
        return await self.recall(path, k, None)

    async def lineage(self, key: str) -> list[str] | None:
        """Keep no history."""
        return None

    async def suspects(self) -> list[SuspectPair]:
        """Suspect nothing."""
        return []

    async def release(self, key: str, reason: str) -> None:
        """Delete."""
        self.notes.pop(key, None)

    async def purge(self, key: str) -> None:
        """Delete."""
        self.notes.pop(key, None)


class ChanceBaseline(NoteBaseline):
    """Shows notes at random."""

    def __init__(self, seed: int = 7) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def best(self, query: str, among: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
        """Return any notes."""
        return self._random.sample(among, min(k, len(among)))


class GrepBaseline(NoteBaseline):
    """Ranks by how many words of the question, paths being words, stand in a note or name its files.

    Words of up to three letters do not count; among equals the one that was stored first is first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._words: dict[str, frozenset[str]] = {}

    def add(self, record: dict[str, Any]) -> None:
        """Keep a note and its words."""
        super().add(record)
        text = f"{record['title']}\n{record['body']}\n{' '.join(record['code_refs'])}"
        self._words[record["key"]] = _words_and_paths(text)

    def best(self, query: str, among: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
        """Return the notes with most words."""
        words = {word for each in _words_and_paths(query) if len(word := each.strip("?.,:;")) > 3}
        counts = [(len(words & self._words[note["key"]]), note) for note in among]
        return [note for count, note in sorted(counts, key=lambda pair: -pair[0])[:k] if count]


class TfIdf(NoteBaseline):
    """Titles as vectors of tf-idf; shows titles, those alone that come near the best.

    Two titles are suspects if they are alike and a number or a negation stands in one of them alone.

    Args:
        near: Least share of the best hit's similarity that a shown one has.
        alike: Least cosine of suspects. Both are such that the published figures of such a system come out.
    """

    can = SystemAbilities(suspects=True)

    def __init__(self, near: float = 0.73, alike: float = 0.575) -> None:
        super().__init__()
        self._near, self._alike = near, alike
        self._rows: dict[str, int] = {}
        self._columns: dict[str, int] = {}
        self._idf = self._vectors = np.zeros(0)

    def add(self, record: dict[str, Any]) -> None:
        """Keep a note; vectors are made when they are needed."""
        super().add(record)
        self._rows = {}

    def shown(self, note: dict[str, Any]) -> str:
        """Show the title."""
        return str(note["title"])

    def best(self, query: str, among: list[dict[str, Any]], k: int) -> list[dict[str, Any]]:
        """Return the notes near the best."""
        self._index()
        vector = self._vector(query)
        similar = self._vectors @ (vector / (np.linalg.norm(vector) or 1.0))
        ranked = sorted(((similar[self._rows[note["key"]]], note) for note in among), key=lambda pair: -pair[0])[:k]
        return [note for value, note in ranked if value > 0 and value >= self._near * ranked[0][0]]

    async def suspects(self) -> list[SuspectPair]:
        """Return the pairs of titles that are alike but for a number or a negation."""
        self._index()
        keys = list(self._rows)
        words = [set(_WORD.findall(self.notes[key]["title"].lower())) for key in keys]
        alike = np.argwhere(np.triu(self._vectors @ self._vectors.T >= self._alike, 1))
        return [SuspectPair(keys[one], keys[other]) for one, other in alike if _differs(words[one] ^ words[other])]

    def _index(self) -> None:
        if self._rows:
            return
        self._rows = {key: row for row, key in enumerate(self.notes)}
        bags = [set(_WORD.findall(note["title"].lower())) for note in self.notes.values()]
        found = Counter(word for bag in bags for word in bag)
        self._columns = {word: column for column, word in enumerate(found)}
        self._idf = np.array([math.log(1 + len(bags) / count) for count in found.values()])
        vectors = np.array([self._vector(note["title"]) for note in self.notes.values()])
        self._vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    def _vector(self, text: str) -> Any:
        vector = np.zeros(len(self._columns))
        for word in _WORD.findall(text.lower()):
            if word in self._columns:
                vector[self._columns[word]] += self._idf[self._columns[word]]
        return vector

    async def release(self, key: str, reason: str) -> None:
        """Delete."""
        await super().release(key, reason)
        self._rows = {}

    async def purge(self, key: str) -> None:
        """Delete."""
        await super().purge(key)
        self._rows = {}


class SameSubject(TfIdf):
    """Answers as tf-idf does, and suspects every two notes about the same subject: what noticing all costs.

    Args:
        subjects: What the world's notes are about, see `subjects_of`.
    """

    def __init__(self, subjects: set[str]) -> None:
        super().__init__()
        self._subjects = subjects

    async def suspects(self) -> list[SuspectPair]:
        """Return all pairs of notes that name one subject."""
        naming: defaultdict[str, list[str]] = defaultdict(list)
        for key, note in self.notes.items():
            text = f"{note['title']}\n{note['body']}".lower()
            for subject in self._subjects:
                if subject in text:
                    naming[subject].append(key)
        pairs = {pair for keys in naming.values() for pair in combinations(keys, 2)}
        return [SuspectPair(*pair) for pair in sorted(pairs)]


def subjects_of(world: dict[str, Any]) -> set[str]:
    """Return the subjects that a world asks for by name: four words, first in the plainest question about each fact."""
    asked = {step["id"]: step["query"] for step in world["ops"] if step["op"] == "recall"}
    plain = (asked[probe["id"]] for probe in world["probes"] if probe.get("phrasing") == "lexical")
    return {" ".join(query.lower().split()[:4]) for query in plain}


def _words_and_paths(text: str) -> frozenset[str]:
    return frozenset(_PATH.findall(text.lower()))


def _differs(words: set[str]) -> bool:
    return bool(words & _NEGATIONS) or any(word.isdigit() for word in words)
