"""The check of commit messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from scripts.commit_message import find_faults, main

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "line",
    ["forget: ignore low-similarity matches", "docs: print figures of the twin worlds", "import & export: name files"],
)
def test_find_faults_of_a_good_line_finds_none(line: str) -> None:
    assert find_faults(f"{line}\n\nA body. With sentences.") == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("Say what failed", "area: imperative"),
        ("docs: Print figures", "lower case"),
        ("docs: print figures.", "full stop"),
        ("docs: added figures", "imperative"),
        (f"docs: {'a' * 55}", "61"),
    ],
)
def test_find_faults_of_a_bad_line_names_the_fault(line: str, fault: str) -> None:
    assert fault in " ".join(find_faults(line))


def test_main_returns_one_for_a_bad_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "message"
    file.write_text("wip\n")
    assert main([str(file)]) == 1
    assert "area: imperative" in capsys.readouterr().err
