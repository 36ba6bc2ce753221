"""A year of use in small, and that what would break it is accused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent_memory.care.tidying import Tidying
from benchmarks import lifecycle

if TYPE_CHECKING:
    import pytest


def test_a_year_in_small_loses_nothing_and_finds_what_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    code = lifecycle.main(["--year", "--operations", "900", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert [each for each in report["problems"] if not each.startswith("answers moved")] == []
    assert code == bool(report["problems"])
    assert (report["moved"][2], report["changed"][2], report["found"]) == (0, 0, [1.0, 1.0]), "undo leaves no trace"
    assert report["archived"] > 0
    assert report["used_lately"] == report["questions"] > 10


def test_an_undo_that_does_nothing_is_accused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def nothing(*_: Any) -> None:
        return None

    monkeypatch.setattr(Tidying, "undo", nothing)
    assert lifecycle.main(["--year", "--operations", "600"]) == 1
    assert "BROKEN: undo has not brought everything back as it was" in capsys.readouterr().out


def test_no_two_places_have_one_name() -> None:
    assert len({lifecycle.place(number) for number in range(38_000)}) == 38_000
