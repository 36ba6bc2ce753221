"""The benchmark of taking in, in small: it measures what it says it does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from benchmarks.ingestion import measure, turns_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.deep


def test_every_figure_is_there_and_every_text_another_one(tmp_path: Path) -> None:
    figures = asyncio.run(measure(tmp_path, count=5, chars=80, embedder="none"))
    assert figures.keys() == {"turn_ms", "turn_cpu_ms", "per_second", "found_ms", "backlog", "disk", "drawn"}
    assert figures["drawn"]["items"] > 0
    assert figures["backlog"]["vectors"] is False
    texts = [turn.text for turn in [*turns_of(50, 80, 1), *turns_of(50, 80, 2)]]
    assert len(set(texts)) == 100
    assert all(80 <= len(text) <= 100 for text in texts)
