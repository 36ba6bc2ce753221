"""`agent-memory agents stats`: figures for people and programs, and a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_it_shows_how_much_there_is_and_what_is_used(bob: Run) -> None:
    said = bob("agents", "stats").stdout
    assert "3 (0 pinned, 1 superseded, 0 expired)" in said
    assert "0 times; 3 of 3 never (100 %)" in said
    assert "0 of 3 texts (0 %)" in said
    assert "weeks before; --plot draws all" in said


def test_json_has_every_figure(bob: Run) -> None:
    found = document(bob("agents", "stats", "--json"))
    assert (found["agent_id"], found["memories"], found["superseded"]) == ("bob", 3, 1)
    assert found["weeks"][0] == {"begin": "2026-01-05", "stored": 1, "total": 1, "used": 0, "forgotten": 0}
    assert found["embedded"] == {"texts": 3, "found": 0, "share": 0.0}
    assert found["plot"] is None


def test_a_plot_goes_to_the_terminal_or_into_a_file(bob: Run, tmp_path: Path) -> None:
    assert "stored each week" in bob("agents", "stats", "--plot").stdout
    path = tmp_path / "growth.svg"
    assert str(path) in bob("agents", "stats", "--plot", str(path)).stdout.replace("\n", "")
    assert ET.parse(path).getroot().tag.endswith("svg")
    assert document(bob("agents", "stats", str(path), "--plot", "--json"))["plot"] == str(path)


@pytest.mark.parametrize("arguments", [["--plot", "growth.png"], ["growth.svg"]])
def test_a_file_is_an_svg_of_a_plot(bob: Run, arguments: list[str]) -> None:
    bob("agents", "stats", *arguments, code=2)


def test_a_file_that_cannot_be_written_is_an_error_that_names_it(bob: Run, tmp_path: Path) -> None:
    assert "growth.svg" in bob("agents", "stats", "--plot", str(tmp_path / "nowhere" / "growth.svg"), code=1).stderr
