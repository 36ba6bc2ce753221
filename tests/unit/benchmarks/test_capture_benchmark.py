"""The capture benchmark: which lines count, what its figures mean, and one run from end to end."""

from __future__ import annotations

import gzip
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import capture

if TYPE_CHECKING:
    from pathlib import Path

WANTED = [{"category": "decision", "must_contain": ["postgres"]}]
LINES: list[dict[str, Any]] = [
    {"id": "a", "source": "user", "sample": "random", "text": "We decided to keep Postgres.", "capture": WANTED},
    {"id": "b", "source": "user", "sample": "random", "text": "From now on answer in verse.", "capture": []},
    {"id": "c", "source": "user", "sample": "cue", "text": "run the tests", "capture": []},
    {"id": "d", "source": "assistant", "sample": "random", "text": "Done.", "capture": []},
    {"id": "e", "source": "tool:bash", "sample": "random", "text": "ok", "capture": []},
    {"id": "f", "source": "user", "sample": "random", "text": "hm", "capture": [], "either": True},
]


def names(lines: list[dict[str, Any]]) -> str:
    return "".join(line["id"] for line in lines)


def test_lines_are_chosen_by_sample_and_source_and_undecided_ones_never_count() -> None:
    assert names(capture.chosen(LINES)) == "abcde"
    assert names(capture.chosen(LINES, ["random"], ["user"])) == "ab"
    assert names(capture.chosen(LINES, ["random", "cue"], ["user", "assistant"])) == "abcd"
    assert names(capture.chosen(LINES, [], ["tool"])) == "e"
    assert names(capture.chosen(LINES, [], ["tool:bash"])) == "e"


def test_wrong_captures_are_counted_per_hundred_messages_and_weighed_by_their_confidence() -> None:
    tally = capture.CaptureTally()
    tally.add(LINES[0], capture.CaptureResult([("we keep postgres", "decision", 0.9)], leaked=False))
    tally.add(LINES[1], capture.CaptureResult([("answer in verse", "preference", 0.6)], leaked=False))
    tally.add(LINES[2], capture.CaptureResult([], leaked=False))
    tally.add(LINES[3], capture.CaptureResult([], leaked=False))
    figures = tally.figures()
    assert (figures["lines"], figures["captured"]) == (4, 2)
    assert (figures["false_per_100"], figures["false_weighed_per_100"]) == (25.0, 15.0)
    assert (figures["precision"], figures["recall"]) == (0.5, 1.0)


def test_a_run_from_end_to_end_prints_the_figures_of_the_chosen_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "lines.jsonl.gz"
    data.write_bytes(gzip.compress("\n".join(map(json.dumps, LINES)).encode()))
    monkeypatch.setattr(
        sys, "argv", ["capture", "--data", str(data), "--sample", "random", "--source", "user", "--json"]
    )
    capture.main()
    figures = json.loads(capsys.readouterr().out)
    expected = {"lines": 2, "captured": 2, "precision": 0.5, "recall": 1.0, "secrets_leaked": 0, "false_per_100": 50.0}
    assert {key: figures[key] for key in expected} == expected


def test_a_choice_of_no_line_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "lines.jsonl"
    data.write_text(json.dumps(LINES[0]), "utf-8")
    monkeypatch.setattr(sys, "argv", ["capture", "--data", str(data), "--sample", "other"])
    with pytest.raises(SystemExit):
        capture.main()
    assert "no line" in capsys.readouterr().err


@pytest.mark.parametrize(("with_waiting", "count"), [(False, 0), (True, 1)])
async def test_hear_with_waiting_returns_notes(tmp_path: Path, with_waiting: bool, count: int) -> None:
    line = {"id": "n", "source": "user", "text": "Decision: we use Postgres, not MySQL.", "capture": []}
    assert len((await capture.hear(line, tmp_path, with_waiting=with_waiting)).memories) == count
