"""The benchmark of what counting accesses does: what it counts, and one run from end to end."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("rank_bm25")

from agent_memory import embeddings
from agent_memory.embeddings.testing import HashEmbedder
from benchmarks import use


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rows: list[dict[str, object]] = [
        {"type": "memory", "id": f"{number}", "group": "g", "text": f"the ledger {number}"} for number in range(8)
    ]
    rows += [{"type": "query", "group": "g", "text": f"ledger {number}", "gold": [f"{number}"]} for number in (3, 5)]
    found = tmp_path / "set.jsonl"
    found.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return found


async def test_counting_nothing_changes_nothing_and_answers_that_are_opened_come_first(path: Path) -> None:
    groups = use.load_jsonl(path)
    first, *others = await use.measured(groups, "nothing", 3, HashEmbedder())
    assert others == [first, first]
    assert len(first) == 2
    opened = await use.measured(groups, "the answer", 3, HashEmbedder())
    assert sum(opened[-1]) >= sum(first)


def test_a_run_prints_each_way_of_counting(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(embeddings, "LocalEmbedder", HashEmbedder)
    monkeypatch.setattr(sys, "argv", ["use", "--rounds", "2", "--jsonl", str(path)])
    assert use.main() == 0
    printed = capsys.readouterr().out
    assert all(f"counting {counted}: MRR" in printed for counted in use.COUNTED)
