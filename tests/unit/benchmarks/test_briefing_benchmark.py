"""The benchmark of briefings: what it reads, and one run from end to end on tasks of our own."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

from benchmarks.briefing import benchmark as briefing

if TYPE_CHECKING:
    from pathlib import Path

TURNS = [
    {"role": "user", "text": "The client retries calls that failed with 401, can you look at the retry policy?"},
    {"role": "assistant", "text": "I'll retry nothing but 5xx."},
    {"role": "user", "text": "Almost: 408 too, at most four attempts, and never wait more than 30 seconds."},
]


@pytest.fixture
def sde(tmp_path: Path) -> Path:
    """Tasks in the form of sde-bench: one that a talk settles, one that a second talk amends, and a decoy."""
    folder = tmp_path / "sde"
    for name, talks in {"retryjitter": TURNS, "rounding-amended": [TURNS, TURNS]}.items():
        place = folder / f"boltons-{name}" / "tasks" / "main"
        place.mkdir(parents=True)
        task = {"codebase": f"boltons-{name}", "bug_report": "The retry policy retries 401.", "conversations": talks}
        (place / "task.json").write_text(json.dumps(task))
    (folder / "gen").mkdir()
    decoys = [{"id": "a", "turns": [{"role": "user", "text": "Parcels leave at noon."}]}]
    (folder / "gen" / "decoy_conversations.json").write_text(json.dumps(decoys))
    return folder


def test_an_amendment_comes_behind_what_it_amends(sde: Path) -> None:
    for seed in range(5):
        bench = briefing.read(sde, seed)
        order = list(bench.talks)
        assert len(order) == 4
        assert order.index("rounding-amended/0") < order.index("rounding-amended/1")
    assert set(bench.reports) == {"retryjitter", "rounding-amended"}


def test_what_is_needed_is_written_down_for_each_task_and_no_pattern_is_wrong() -> None:
    needed = yaml.safe_load(briefing.NEEDED.read_text())
    assert len(needed) == 33
    for task in needed:
        assert not any(briefing.readable(task, "", needed))


def test_of_the_conversations_of_our_own_each_says_what_its_task_needs_and_no_prompt_does() -> None:
    others = {"elsewhere/0": [("user", "Parcels leave at noon.")]}
    bench = briefing.read_chats(others)
    assert len(bench.reports) == len(bench.needed) == 24
    assert set(bench.talks) == {"elsewhere/0", *(f"chat/{task}" for task in bench.reports)}
    for task, prompt in bench.reports.items():
        said = "\n".join(text for _, text in bench.talks[f"chat/{task}"])
        assert all(briefing.readable(task, said, bench.needed)), task
        assert not all(briefing.readable(task, prompt, bench.needed)), task


def test_a_run_tells_each_way(
    sde: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    needed = tmp_path / "needed.yaml"
    needed.write_text(yaml.safe_dump({"retryjitter": ["408", r"\b30\b"], "rounding-amended": ["no such word"]}))
    monkeypatch.setattr(briefing, "NEEDED", needed)
    monkeypatch.setattr(sys, "argv", ["briefing", "--sde", str(sde), "--embedder", "none", "--json"])
    assert briefing.main() == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["briefing"]["whole"] == 0.5
    assert rows["briefing"]["parts"] == pytest.approx(2 / 3)
    assert rows["briefing"]["tokens"] <= 500
    assert rows["briefing, no prompt"]["parts"] == 0
