"""The long run: its bounds, and half a year in small."""

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from agent_memory.store import change_log
from benchmarks import long_run
from benchmarks.long_run import UseWindow

WINDOW = UseWindow(100, 1, 50, 60, 1100, 0, 60.0, 10.0, 100.0, 5.0, 1.0, 2.0, 1.0, 2.0)


def test_a_run_that_stays_flat_is_accused_of_nothing() -> None:
    assert long_run.judged([WINDOW] * 9) == []


def test_a_journal_beyond_its_bound_is_accused() -> None:
    (problem,) = long_run.judged([WINDOW, dataclasses.replace(WINDOW, lines=1101)])
    assert "1101 lines, 1100 are allowed" in problem


@pytest.mark.parametrize("name", ["rss_mb", "journal_kb", "vectors_kb", "events_kb"])
def test_what_grows_in_the_last_third_is_accused(name: str) -> None:
    windows = [WINDOW] * 6 + [dataclasses.replace(WINDOW, **{name: 50_000.0})] * 3
    (problem,) = long_run.judged(windows)
    assert problem.startswith(f"{name} has grown")


def test_half_a_year_in_small_keeps_the_journal_within_its_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody compacts here but the memory itself, and it does so more than once."""
    monkeypatch.setattr(change_log, "_COMPACT_AT", 60)
    assert long_run.main(["--operations", "700", "--memories", "25", "--windows", "20", "--json"]) == 0
    windows = json.loads(capsys.readouterr().out)["windows"]
    assert windows[-1]["compactions"] > 2
    assert windows[-1]["day"] > 170
    assert max(window["lines"] for window in windows) < 400


def test_the_table_has_a_line_for_a_window_and_a_verdict() -> None:
    text = long_run.table([WINDOW], ["something has grown"])
    assert "1100" in text
    assert "BROKEN: something has grown" in text


def test_a_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    long_run.plot([WINDOW] * 3, tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 1000
