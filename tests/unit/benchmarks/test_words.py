"""The comparison of indexes of words measures what it says."""

from __future__ import annotations

from benchmarks import words


def test_every_index_is_built_and_asked() -> None:
    rows = words.measure(200)
    assert {"ours", "FTS5"} <= set(rows)
    assert all(set(row) == {"build", "more", "question"} and min(row.values()) >= 0 for row in rows.values())
    assert sum(row["question"] for row in rows.values()) > 0
