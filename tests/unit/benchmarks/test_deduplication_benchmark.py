"""The benchmark of deduplication reads labelled pairs, and counts what each way says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.deduplication import benchmark as deduplication
from benchmarks.deduplication.benchmark import MatchCounts, counted, measure
from benchmarks.deduplication.data import SETS, load
from benchmarks.harness import get_wilson_interval

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = {
    "name": [("blue door cafe", "blue door café", 1), ("blue door cafe", "red lion inn", 0), ("oak", "oak", 1)],
    "title": [("storing trees in rows", "storing trees in rows", 1), ("storing trees in rows", "planning joins", 0)],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four sets of a few pairs each, in the form the real ones have."""
    for inside, column in SETS.values():
        (tmp_path / inside).mkdir(parents=True)
        lines = [
            f"COL {column} VAL {one} COL city VAL ` new york ' COL class VAL 7 \t"
            f"COL {column} VAL {other} COL city VAL  COL class VAL {7 if label else 8} \t{label}"
            for one, other, label in PAIRS[column]
        ]
        for split in ("train", "valid"):
            (tmp_path / inside / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_a_record_has_no_column_that_is_the_label(data: Path) -> None:
    labelled = load(data, "Fodors-Zagats", "valid")
    assert [each.name for each in labelled.ours] == ["blue door cafe", "oak"]
    assert labelled.ours[0].attributes == {"city": "new york"}
    assert labelled.theirs[0].attributes == {"city": ""}
    assert [tuple(pair) for pair in labelled.pairs] == [(0, 0, True), (0, 1, False), (1, 2, True)]


def test_what_the_sets_did_to_words_is_undone(data: Path) -> None:
    path = data / "Structured/Fodors-Zagats/valid.txt"
    path.write_text("COL name VAL ` arnie morton \\ 's '\tCOL name VAL ren &#233; e\t1\n", encoding="utf-8")
    labelled = load(data, "Fodors-Zagats", "valid")
    assert (labelled.ours[0].name, labelled.theirs[0].name) == ("arnie mortons", "renée")


def test_every_way_is_counted_on_every_set(data: Path) -> None:
    report = measure(data, None)
    for name, (_, column) in SETS.items():
        rows = report[name]
        assert isinstance(rows, dict)
        assert rows["pairs"] == len(PAIRS[column])
        assert rows["rules"]["F1"] == 1.0
        assert rows["merged"]["said"] <= rows["rules"]["said"]
        assert 0 <= rows["exact"]["F1"] <= 1


def test_shares_and_their_bounds_are_those_of_the_books(data: Path) -> None:
    labelled = load(data, "Fodors-Zagats", "valid")
    count = counted([True, True, False], labelled)
    assert count == MatchCounts(said=2, right=1, there=2)
    assert (count.precision, count.recall, count.f1) == (0.5, 0.5, 0.5)
    low, high = get_wilson_interval(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)  # R. Newcombe, Statistics in Medicine 17 (1998), table I
    assert get_wilson_interval(0, 0) == (0.0, 1.0)
    low, high = deduplication.f1_between([True, False, True], labelled)
    assert (low, high) == (1.0, 1.0)
