"""The indexes of words beside others: bm25s, which is built as a whole, SQLite's FTS5, and tantivy.

    python -m benchmarks.words [--texts 100000] [--json]

Texts of 25 made words out of 20,000, as frequent as words are once those of a stop list are gone; questions of 8 words,
of which any may occur; the best 50. CPU time, all tokens given: neither stemming nor splitting is measured. `ours` is
what is not sealed, `segments` what is, searched by MaxScore, and `whole lists` adds up all lists of the same segment.
What is not installed of bm25s and tantivy is left out. Neither a segment nor bm25s takes one text more: for a segment
that is its share of a seal.
"""

from __future__ import annotations

import math
import random
import sqlite3
import tempfile
import time
from collections import Counter
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.index.buffer_part import PostingLists
from agent_memory.index.results import LengthNorm, RankingSettings
from benchmarks.harness import build_parser, get_percentile, print_report
from benchmarks.words.sealed import SealedQuestions, sealed, tantivy_index

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS: Final = 20_000
_STOPPED: Final = 50
"""The most frequent words, which an index never sees."""
_QUESTIONS: Final = 100
_BEST: Final = 50
_LENGTH: Final = 25

Texts = list[list[str]]


def main() -> None:
    """Measure and print."""
    parser = build_parser("words", __doc__, "--json")
    parser.add_argument("--texts", type=int, default=100_000)
    args = parser.parse_args()
    rows = measure(args.texts)
    lines = [
        f"{name:12} build {row['build']:.2f} s, one more {row['more']:.3f} ms, "
        f"a question {row['question']:.2f} ms, p95 {row['p95']:.2f} ms"
        for name, row in rows.items()
    ]
    print_report(rows, lines, as_json=args.json)


def measure(count: int) -> dict[str, dict[str, float]]:
    """Return by index: seconds for `count` texts, milliseconds for one text more and for a question, mean and p95."""
    choose = random.Random(1)
    words = [f"w{number}" for number in range(_WORDS)]
    frequent = [1 / (number + _STOPPED) for number in range(_WORDS)]
    texts = [choose.choices(words, frequent, k=_LENGTH) for _ in range(count)]
    questions = [choose.choices(words, frequent, k=8) for _ in range(_QUESTIONS)]
    rows = {"ours": _ours(texts, questions), **_sealed(texts, questions), "FTS5": _fts5(texts, questions)}
    rows |= {"bm25s": _bm25s(texts, questions)} if find_spec("bm25s") else {}
    return rows | ({"tantivy": _tantivy(texts, questions)} if find_spec("tantivy") else {})


def _ours(texts: Texts, questions: Texts) -> dict[str, float]:
    settings, postings = RankingSettings(), PostingLists()
    build = _seconds(lambda: [postings.add(Counter(text)) for text in texts])
    more = _seconds(lambda: [postings.add(Counter(text)) for text in questions])
    count = len(postings.lengths)
    norm, every = (
        LengthNorm(settings.k1 * (1 - settings.b), settings.k1 * settings.b / _LENGTH),
        bytearray(b"\x01") * count,
    )

    def ask(words: list[str]) -> object:
        frequencies = {word: frequency for word in words if (frequency := postings.frequency(word))}
        gains = {word: math.log(1 + (count - held + 0.5) / (held + 0.5)) for word, held in frequencies.items()}
        return postings.best(dict(sorted(gains.items(), key=lambda pair: -pair[1])), norm, _BEST, every)

    return _row(build, more, _asked(ask, questions))


def _fts5(texts: Texts, questions: Texts) -> dict[str, float]:
    database = sqlite3.connect(":memory:")
    database.execute("create virtual table texts using fts5(words)")
    insert, ask = "insert into texts values (?)", "select rowid from texts where texts match ? order by rank limit ?"
    build = _seconds(lambda: database.executemany(insert, [(" ".join(text),) for text in texts]))
    more = _seconds(lambda: [database.execute(insert, (" ".join(text),)) for text in questions])
    asked = _asked(lambda words: database.execute(ask, (" OR ".join(words), _BEST)).fetchall(), questions)
    database.close()
    return _row(build, more, asked)


def _bm25s(texts: Texts, questions: Texts) -> dict[str, float]:
    import bm25s

    index = bm25s.BM25()
    build = _seconds(lambda: index.index(texts, show_progress=False))
    asked = _asked(lambda words: index.retrieve([words], k=_BEST, show_progress=False), questions)
    return _row(build, build * _QUESTIONS, asked)  # it takes no text more: it is built anew


def _sealed(texts: Texts, questions: Texts) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        words = sealed(texts, Path(folder))
        build = time.process_time() - begun
        ask = SealedQuestions(words, len(texts), _LENGTH)
        best = min(_BEST, len(texts))
        ways = {"segments": ask.maxscore, "whole lists": ask.whole_lists}
        more = _QUESTIONS * build / len(texts)
        return {name: _row(build, more, _asked(partial(way, count=best), questions)) for name, way in ways.items()}


def _tantivy(texts: Texts, questions: Texts) -> dict[str, float]:
    begun = time.process_time()
    index = tantivy_index(texts)
    build = time.process_time() - begun
    searcher = index.searcher()

    def ask(words: list[str]) -> object:
        return searcher.search(index.parse_query(" ".join(words), ["words"]), _BEST, count=False)

    return _row(build, build * _QUESTIONS, _asked(ask, questions))  # a commit for one text was not measured


def _row(build: float, more: float, asked: list[float]) -> dict[str, float]:
    mean, p95 = sum(asked) / len(asked), get_percentile(asked, 0.95)
    return {"build": build, "more": 1000 * more / _QUESTIONS, "question": 1000 * mean, "p95": 1000 * p95}


def _asked(ask: Callable[[list[str]], object], questions: Texts) -> list[float]:
    """Return the seconds of each question."""
    return [_seconds(partial(ask, words)) for words in questions]


def _seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun
