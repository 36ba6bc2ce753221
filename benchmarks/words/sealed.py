"""The words of sealed segments, and tantivy's over the same texts, for `benchmarks.words`."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from agent_memory.index.results import LengthNorm, RankingSettings
from agent_memory.index.segment import Segment, SegmentInfo
from agent_memory.index.segment_writer import Row, merge, seal
from agent_memory.index.word_lists import WordLists

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

_AT_ONCE: Final = 20_000
_SETTINGS: Final = RankingSettings()


def sealed(texts: Sequence[Sequence[str]], folder: Path) -> WordLists:
    """Seal texts in portions, as the product does, and merge them to one segment."""
    parts = []
    for begin in range(0, len(texts), _AT_ONCE):
        some = texts[begin : begin + _AT_ONCE]
        place = folder / str(begin)
        place.mkdir()
        rows = [_row(begin + number, text) for number, text in enumerate(some)]
        seal(place, rows, SegmentInfo("memory", begin + 1, begin + len(some), 0, 0, 0))
        parts.append((Segment(place), np.ones(len(some), bool)))
    whole = folder / "whole"
    whole.mkdir()
    merge(whole, parts, purged_seq=0, oldest=True)
    segment = Segment(whole)
    return WordLists(segment.lists("terms").of, segment.columns["length"])


def _row(number: int, text: Sequence[str]) -> Row:
    moment = float(number)
    return Row(f"mem-{number:012x}", number + 1, b"{}", bytes(32), moment, moment, Counter(text), len(text))


class SealedQuestions:
    """Questions for sealed words.

    Args:
        words: Of all texts.
        texts: How many.
        length: Of each, in words.
    """

    def __init__(self, words: WordLists, texts: int, length: int) -> None:
        self._words, self._texts = words, texts
        self._every = np.ones(texts, bool)
        self._norm = LengthNorm(_SETTINGS.k1 * (1 - _SETTINGS.b), _SETTINGS.k1 * _SETTINGS.b / length)
        self._heaviness = self._norm.flat + self._norm.steepness * length

    def maxscore(self, words: Sequence[str], count: int) -> list[int]:
        """Return the best texts as the product finds them."""
        gains = dict(sorted(self._gains(words), key=lambda pair: -pair[1]))
        return [row for _, row in self._words.best(gains, self._norm, count, self._every)]

    def whole_lists(self, words: Sequence[str], count: int) -> list[int]:
        """Return the best texts by adding up the lists of all words."""
        scores = np.zeros(self._texts)
        for word, gain in self._gains(words):
            listed = self._words.read(word)
            scores[listed.rows] += gain * (listed.counts / (listed.counts + self._heaviness))
        best: NDArray[Any] = np.argpartition(scores, -count)[-count:]
        rows: list[int] = best[np.lexsort((-best, -scores[best]))].tolist()
        return rows

    def _gains(self, words: Sequence[str]) -> Iterator[tuple[str, float]]:
        for word in dict.fromkeys(words):
            using = self._words.frequency(word, self._every)
            if using:
                yield word, (_SETTINGS.k1 + 1) * math.log(1 + (self._texts - using + 0.5) / (using + 0.5))


def tantivy_index(texts: Sequence[Sequence[str]]) -> Any:
    """Return an index of tantivy in memory, of words that white space divides, with their frequencies."""
    import tantivy

    schema = tantivy.SchemaBuilder().add_text_field(
        "words", stored=False, tokenizer_name="whitespace", index_option="freq"
    )
    index = tantivy.Index(schema.build(), path=tempfile.mkdtemp())
    writer = index.writer(200_000_000, 1)
    for text in texts:
        writer.add_document(tantivy.Document(words=" ".join(text)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    return index
