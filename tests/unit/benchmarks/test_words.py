"""The comparison of indexes of words measures what it says."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")

from typing import TYPE_CHECKING

from benchmarks.words import benchmark as words
from benchmarks.words.sealed import SealedQuestions, sealed

if TYPE_CHECKING:
    from pathlib import Path


def test_every_index_is_built_and_asked() -> None:
    rows = words.measure(200)
    assert {"ours", "segments", "whole lists", "FTS5"} <= set(rows)
    assert all(set(row) == {"build", "more", "question", "p95"} and min(row.values()) >= 0 for row in rows.values())
    assert sum(row["question"] for row in rows.values()) > 0


def test_both_ways_through_a_segment_find_the_same(tmp_path: Path) -> None:
    texts = [[f"w{at % 7}", f"w{at % 11}", f"w{at % 13}"] for at in range(500)]
    asked = SealedQuestions(sealed(texts, tmp_path), 500, 3)
    for question in (["w1", "w10"], ["w6", "w9", "w12"], ["nowhere"]):
        one, other = asked.maxscore(question, 400), asked.whole_lists(question, 400)  # more than hold a word
        assert one == other[: len(one)]
    assert len(asked.maxscore(["w1"], 400)) == sum("w1" in text for text in texts)
