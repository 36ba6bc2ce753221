"""docs/doctor.md names every finding as the code has it."""

from __future__ import annotations

from pathlib import Path

from agent_memory.care.checks.codes import render_codes

PAGE = Path(__file__).parents[4] / "docs" / "doctor.md"


def test_the_table_of_findings_is_the_one_in_the_code() -> None:
    assert render_codes() in PAGE.read_text(), "print(agent_memory.care.checks.codes.render_codes())"
