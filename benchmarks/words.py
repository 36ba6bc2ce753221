"""The index of words beside others: bm25s, which is built as a whole, and SQLite's FTS5.

    python -m benchmarks.words [--texts 100000] [--json]

Texts of 25 made words out of 20,000, as frequent as words are once those of a stop list are gone; questions of 8 words,
of which any may occur; the best 50. CPU time, all tokens given: neither stemming nor splitting is measured. bm25s is
left out where it is not installed.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from agent_memory.retrieval.postings import Postings
from agent_memory.retrieval.results import RankingSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_WORDS: Final = 20_000
_STOPPED: Final = 50
"""The most frequent words, which an index never sees."""
_QUESTIONS: Final = 100
_BEST: Final = 50

Texts = list[list[str]]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.words", description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=100_000)
    parser.add_argument("--json", action="store_true", help="for machines")
    args = parser.parse_args()
    rows = measure(args.texts)
    if args.json:
        print(json.dumps(rows))
        return
    for name, row in rows.items():
        print(
            f"{name:10} build {row['build']:.2f} s, one more {row['more']:.3f} ms, a question {row['question']:.2f} ms"
        )


def measure(count: int) -> dict[str, dict[str, float]]:
    """Return by index: seconds for `count` texts, milliseconds for one text more and for a question."""
    choose = random.Random(1)
    words = [f"w{number}" for number in range(_WORDS)]
    frequent = [1 / (number + _STOPPED) for number in range(_WORDS)]
    texts = [choose.choices(words, frequent, k=25) for _ in range(count)]
    questions = [choose.choices(words, frequent, k=8) for _ in range(_QUESTIONS)]
    rows = {"ours": _ours(texts, questions), "FTS5": _fts5(texts, questions)}
    return rows | ({"bm25s": _bm25s(texts, questions)} if find_spec("bm25s") else {})


def _ours(texts: Texts, questions: Texts) -> dict[str, float]:
    settings = RankingSettings()
    postings = Postings(settings.k1, settings.b)
    build = _seconds(lambda: [postings.add(text) for text in texts])
    more = _seconds(lambda: [postings.add(text) for text in questions])
    asked = _seconds(lambda: [postings.scores(dict.fromkeys(words, 1.0)).best(_BEST) for words in questions])
    return _row(build, more, asked)


def _fts5(texts: Texts, questions: Texts) -> dict[str, float]:
    database = sqlite3.connect(":memory:")
    database.execute("create virtual table texts using fts5(words)")
    insert, ask = "insert into texts values (?)", "select rowid from texts where texts match ? order by rank limit ?"
    build = _seconds(lambda: database.executemany(insert, [(" ".join(text),) for text in texts]))
    more = _seconds(lambda: [database.execute(insert, (" ".join(text),)) for text in questions])
    asked = _seconds(lambda: [database.execute(ask, (" OR ".join(words), _BEST)).fetchall() for words in questions])
    database.close()
    return _row(build, more, asked)


def _bm25s(texts: Texts, questions: Texts) -> dict[str, float]:
    import bm25s

    index = bm25s.BM25()
    build = _seconds(lambda: index.index(texts, show_progress=False))
    asked = _seconds(lambda: [index.retrieve([words], k=_BEST, show_progress=False) for words in questions])
    return _row(build, build * _QUESTIONS, asked)  # it takes no text more: it is built anew


def _row(build: float, more: float, asked: float) -> dict[str, float]:
    return {"build": build, "more": 1000 * more / _QUESTIONS, "question": 1000 * asked / _QUESTIONS}


def _seconds(work: Callable[[], Any]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
