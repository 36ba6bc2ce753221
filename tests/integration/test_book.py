"""The book of the examples: real processes, sessions and tables; one process is killed, and the book is the same."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("sqlalchemy")

from agent_memory.workspace import Workspace
from examples.book.__main__ import begin, run, show
from examples.book.agents import AGENTS, sentences, text_of
from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the processes find the library."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)


def written(folder: Path, *, kill: bool) -> str:
    """Write the book; return all that counts of it, in a fixed order."""
    begin(folder, seconds=3 if kill else None)
    assert run(folder, 3, kill=kill)
    workspace = Workspace.open(folder)
    assert {step.status for step in workspace.steps.all()} == {"done"}
    canonical = workspace.canonical()
    workspace.close()
    return str(canonical)


@pytest.mark.deep
def test_the_book_is_the_same_whether_a_process_is_killed_or_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert written(killed, kill=True) == written(whole, kill=False)
    for name in ("1", "2", "3"):
        drawing = ET.parse(whole / "diagrams" / f"chapter-{name}.svg").getroot()
        assert drawing.tag.endswith("svg")
    show(whole)
    said = capfd.readouterr().out
    assert "38 of 38 steps done" in said
    assert "writer, chapter 2: The draft has 19 words" in said
    assert "proposed      pace: how soon what is stored is used up" in said
    assert "SNAPSHOT_PHASE_1, SNAPSHOT_PHASE_3, SNAPSHOT_PHASE_7, SNAPSHOT_PHASE_10" in said
    assert (whole / "book.en.md").read_text("utf-8").count("\n## ") == 3
    assert "# Tres fábulas" in (whole / "book.es.md").read_text("utf-8")


def test_each_agent_sees_few_tools() -> None:
    assert len(AGENTS) >= 12
    assert all(len(agent.tools) + 3 <= 9 for agent in AGENTS.values())


def test_the_sources_are_read_by_sentences() -> None:
    title, text = text_of(1)
    assert title == "The Hare and the Tortoise"
    assert sentences(text)[-1] == "Slow but steady wins the race."


def test_the_command_explains_itself() -> None:
    command = [sys.executable, "-m", "examples.book", "--help"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=REPOSITORY, env=environment())
    assert "--kill" in told.stdout
