"""The soak: each bound accuses, and all of it in small."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks import soak
from benchmarks.soak import SoakSample, SoakState

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SAMPLE = SoakSample(0, 100, 80.0, 12, 1.0)


def test_judge_state_as_expected_nothing(tmp_path: Path) -> None:
    assert soak.judge(SoakState(samples=[SAMPLE] * 3), 100, tmp_path) == []


def test_judge_each_broken_bound_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "memories.yaml").write_text("The quince invoice.")
    last = replace(SAMPLE, rss_mb=131.0, descriptors=13, cpu_seconds=33.0)
    state = SoakState({"mem-1": "tea"}, ["quince invoice"], [SAMPLE, SAMPLE, last])
    words = ["1 records", "memories.yaml holds", "resident memory", "descriptors", "s of CPU"]
    problems = soak.judge(state, 100, tmp_path)
    assert [word for word, problem in zip(words, problems, strict=True) if word not in problem] == []


def test_soak_of_few_records_loses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert soak.main(["--records", "1200", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [sample["records"] for sample in report["samples"]] == [1200] * 4
