"""The benchmark of how sure an answer is: its fit, and one run from end to end."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("rank_bm25")

import numpy as np

from agent_memory.embeddings.testing import HashEmbedder
from benchmarks import confidence
from benchmarks._confidence_fit import balanced, bins, fitted, probability


def test_a_fit_finds_the_odds_that_made_the_rows() -> None:
    draw = np.random.default_rng(3)
    features = draw.random((20_000, 2))
    rows = np.column_stack([np.ones(len(features)), features])
    answered = draw.random(len(features)) < probability(rows, np.array([-1.0, 3.0, 0.0]))
    assert fitted(features, answered, np.ones(len(features))) == pytest.approx([-1, 3, 0], abs=0.15)


def test_each_set_and_each_kind_counts_the_same() -> None:
    sets, answered = np.array(["a"] * 9 + ["b"] * 3), np.array([True] * 8 + [False] + [True, False, False])
    weights = balanced(sets, answered)
    sums = [weights[(sets == name) & (answered == kind)].sum() for name in "ab" for kind in (True, False)]
    assert sums == pytest.approx([3.0] * 4)


def test_a_reliability_diagram_compares_what_was_said_with_what_was() -> None:
    values, true = np.array([0.05, 0.05, 0.95, 1.0]), np.array([False, True, True, True])
    first, last = bins(values, true, np.ones(4))
    assert (first["said"], first["was"], first["count"]) == pytest.approx((0.05, 0.5, 2))
    assert (last["said"], last["was"]) == pytest.approx((0.975, 1))


def test_a_run_tells_sets_constants_and_reliability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for name in ("one", "two"):
        rows: list[dict[str, object]] = []
        for group, word in (("g", "ledger"), ("h", "garden")):
            rows += [{"type": "memory", "group": group, "id": f"{n}", "text": f"the {word} {n}"} for n in range(3)]
            rows.append({"type": "query", "group": group, "text": f"which {word} 1", "gold": ["1"]})
            rows.append({"type": "query", "group": group, "text": "who sings", "gold": []})
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text("\n".join(map(json.dumps, rows)), "utf-8")
    monkeypatch.setattr(confidence, "LocalEmbedder", HashEmbedder)
    monkeypatch.setattr(sys, "argv", ["confidence", "--json", "--jsonl", *map(str, files)])
    assert confidence.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert {kind: part["count"] for kind, part in report["sets"]["one"].items()} == {
        "answerable": 2,
        "next group": 2,
        "of the set": 2,
    }
    assert report["sets"]["one"]["of the set"]["auc_left_out"] == 1
    assert {name: len(values) for name, values in report["constants"].items()} == {"answer": 5, "hit": 5}
    assert report["reliability"]["answer"]
