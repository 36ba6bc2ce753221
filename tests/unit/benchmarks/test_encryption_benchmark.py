"""The benchmark that kills encryption, in small; and that it notices what is left or lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_memory.encryption.keys import forget_keys
from benchmarks.encryption import AGENT, KEY, act, look, prepare, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys()
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)


def test_nothing_is_lost_and_nothing_is_left() -> None:
    assert run(kills=2, seed=1, memories=4) == 0


def test_what_is_left_and_what_is_lost_is_seen(tmp_path: Path) -> None:
    said = asyncio.run(prepare(tmp_path, 3))
    act("encrypt", tmp_path)
    assert look("encrypt", tmp_path, said) == []
    (tmp_path / AGENT / "notes.txt").write_text("Box 1 stands in the harbour of Kiel.", "utf-8")
    found = look("encrypt", tmp_path, {**said, "mem-0123456789ab": "There was more."})
    assert "notes.txt has a text" in found
    assert "mem-0123456789ab says None" in found
