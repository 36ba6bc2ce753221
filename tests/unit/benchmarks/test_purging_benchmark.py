"""The benchmark that kills purges, in small; and that it notices what is left or lost."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from agent_memory.journal import PurgeList
from benchmarks.purging import AGENT, TEXT, look, prepare, purge, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep


def test_nothing_is_lost_and_nothing_is_left() -> None:
    assert run(kills=4, seed=1, memories=4) == 0


def test_what_is_left_and_what_is_lost_is_seen(tmp_path: Path) -> None:
    record_id, others = asyncio.run(prepare(tmp_path, 3))
    asyncio.run(purge(tmp_path, record_id))
    assert asyncio.run(look(tmp_path, others)) == []
    (tmp_path / AGENT / "notes.txt").write_text(TEXT, "utf-8")
    assert asyncio.run(look(tmp_path, {**others, "mem-0123456789ab": "There was more."})) == [
        "mem-0123456789ab says None",
        "notes.txt has it still",
    ]
    assert PurgeList(tmp_path / AGENT).list_unfinished() == []
