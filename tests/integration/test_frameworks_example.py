"""The example of other frameworks runs, with or without their packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from examples import frameworks
from tests.adapter_protocols import use_protocols

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_frameworks_example_prints_what_it_stored(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for package in ("anthropic", "langgraph", "agents"):
        use_protocols(package)
    frameworks.main(str(root))
    printed = capsys.readouterr().out
    assert "     1\tShip on Friday\nLangGraph store: ['diet']\n" in printed
    assert "OpenAI Agents session: [{'role': 'user', 'content': 'Hi'}]\n" in printed
