"""Word lists give the scores of a full count, and the best rows by MaxScore are the best of all."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.index.results import LengthNorm
from agent_memory.index.segment import Segment, SegmentInfo
from agent_memory.index.segment_writer import Row, seal
from agent_memory.index.word_lists import WordLists

if TYPE_CHECKING:
    from pathlib import Path

TERMS = "abcdefgh"
NORM = LengthNorm(0.3, 0.05)


def sealed(folder: Path, texts: list[str]) -> Segment:
    folder.mkdir(exist_ok=True)
    rows = [Row(f"mem-{at}", at, b"{}", bytes(32), 0.0, 0.0, Counter(text), len(text)) for at, text in enumerate(texts)]
    seal(folder, rows, SegmentInfo("memory", 1, 2, 0, 0, 0))
    return Segment(folder)


def lists_of(folder: Path, texts: list[str], **limits: int) -> WordLists:
    segment = sealed(folder, texts)
    return WordLists(segment.lists("terms").of, segment.columns["length"], **limits)


def counted(texts: list[str], gains: dict[str, float]) -> list[float]:
    """Score each text the plain way."""
    heaviness = [NORM.flat + NORM.steepness * len(text) for text in texts]
    return [
        sum(gain * text.count(term) / (text.count(term) + heavy) for term, gain in gains.items() if term in text)
        for text, heavy in zip(texts, heaviness, strict=True)
    ]


@given(
    texts=st.lists(st.text(TERMS, max_size=6), max_size=60),
    gains=st.dictionaries(st.sampled_from([*TERMS, "z"]), st.floats(0.01, 9), max_size=6),
    count=st.integers(1, 8),
    dead=st.sets(st.integers(0, 59)),
)
def test_the_best_are_those_of_a_full_count(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], gains: dict[str, float], count: int, dead: set[int]
) -> None:
    alive = np.array([at not in dead for at in range(len(texts))], bool)
    words = lists_of(tmp_path_factory.mktemp("w"), texts)
    scores = counted(texts, gains)
    wanted = sorted((-score for at, score in enumerate(scores) if score > 0 and alive[at]))[:count]

    best = words.best(gains, NORM, count, alive)

    assert [score for score, _ in best] == pytest.approx([-each for each in wanted])
    assert [score for score, _ in best] == pytest.approx([scores[row] for _, row in best])
    assert len({row for _, row in best}) == len(best)
    assert words.compute_scores(gains, NORM, range(len(texts))) == pytest.approx(scores)
    assert words.how_many(gains, alive) == sum(score > 0 for at, score in enumerate(scores) if alive[at])


def test_of_equal_scores_the_later_row_comes_first(tmp_path: Path) -> None:
    words = lists_of(tmp_path / "s", ["ab", "ab", "ab"])

    assert [row for _, row in words.best({"a": 1.0}, NORM, 2, np.ones(3, bool))] == [2, 1]


def test_frequencies_and_counts_are_those_of_the_texts(tmp_path: Path) -> None:
    words = lists_of(tmp_path / "s", ["aab", "b", "a"])

    assert [words.frequency(term, np.ones(3, bool)) for term in "abc"] == [2, 2, 0]
    assert [words.frequency(term, np.array([False, True, True])) for term in "abc"] == [1, 1, 0]
    assert list(words.find_counts("a", [0, 1, 2])) == [(0, 2), (2, 1)]


def test_many_rows_are_counted_by_a_sample(tmp_path: Path) -> None:
    texts = ["a" if at % 3 else "b" for at in range(3_000)]
    words = lists_of(tmp_path / "s", texts, stripe_rows=20, counted=1_500)

    assert math.isclose(words.how_many(["a"], np.ones(3_000, bool)), 2_000, rel_tol=0.05)


def test_of_few_rows_the_number_is_exact_however_large_the_segment(tmp_path: Path) -> None:
    texts = ["ab" if at in {7, 1_011} else "b" if at % 900 == 0 else "c" for at in range(3_000)]
    words = lists_of(tmp_path / "s", texts, stripe_rows=20)
    may = np.ones(3_000, bool)
    may[7] = False

    assert words.how_many(["a", "b"], may) == 1 + 4
