"""The kills by stage must be able to fail: stages are told by functions that are there, and what is spoiled is seen."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("numpy")

import agent_memory
from agent_memory.models import MEMORY, Memory
from agent_memory.storage import folder_of
from benchmarks.crash.model import AcknowledgedState, PendingOperation, shown
from benchmarks.crash.operations import AGENT
from benchmarks.crash_stages.check import alike, examine, leftovers
from benchmarks.crash_stages.victim import STAGES, seal_all, stage_of, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable

PURGE = "compaction, segments of what was purged"


def call_in(file: str, function: str) -> Callable[[Callable[[], str]], str]:
    """Return a function of that name in a file of that name, which calls what it is given."""
    found: dict[str, Any] = {}
    exec(compile(f"def {function}(inner): return inner()", f"/anywhere/{file}", "exec"), found)
    made: Callable[[Callable[[], str]], str] = found[function]
    return made


def here() -> str:
    return stage_of(inspect.currentframe())


@pytest.mark.parametrize(("file", "function"), STAGES)
def test_each_stage_is_a_function_that_is_there(file: str, function: str) -> None:
    (place,) = Path(agent_memory.__file__).parent.rglob(file)
    assert f"def {function}(" in place.read_text()
    assert call_in(file, function)(here) == STAGES[file, function]


def test_the_innermost_stage_counts_but_for_the_purge() -> None:
    removal, swap = call_in("store/segment_opener.py", "remove_unused"), call_in("index/segment.py", "list_segments")
    purge = call_in("store/segment_opener.py", "drop_purged")

    assert here() == ""
    assert removal(lambda: swap(here)) == "swap of segments.json"
    assert purge(lambda: swap(here)) == PURGE


@pytest.fixture
async def expected(tmp_path: Path) -> AcknowledgedState:
    """Return what an agent has: two sealed memories and one that is not sealed."""
    storage = storage_of(tmp_path / "memory")
    memories = [Memory(agent_id=AGENT, content=f"key{at} tea ledger") for at in range(3)]
    await storage.store_many(memories[:2])
    await storage.prepare(None)
    assert seal_all(tmp_path / "memory")
    await storage.store(memories[2])
    await storage.close()
    return AcknowledgedState({memory.id: shown(memory) for memory in memories})


def found_wrong(root: Path, expected: AcknowledgedState) -> list[str]:
    said: dict[str, Any] = {}
    examine(lambda **message: said.update(message), root, PendingOperation(), expected, 1)
    wrong: list[str] = said["wrong"]
    return wrong


def test_nothing_is_wrong_where_all_is_there(tmp_path: Path, expected: AcknowledgedState) -> None:
    assert found_wrong(tmp_path / "memory", expected) == []


def test_what_is_missing_is_lost(tmp_path: Path, expected: AcknowledgedState) -> None:
    expected.learn({"mem-000000000001": {"content": "acknowledged"}})
    (wrong,) = found_wrong(tmp_path / "memory", expected)
    assert wrong.startswith("lost: ")


def test_what_is_not_listed_is_left_over(tmp_path: Path, expected: AcknowledgedState) -> None:
    assert len(expected.memories) == 3
    place = folder_of(AGENT, tmp_path / "memory").segments(MEMORY.name)
    assert leftovers(tmp_path / "memory") == []
    (place / ".segments.json.01234567.tmp").touch()
    assert leftovers(tmp_path / "memory") == [".segments.json.01234567.tmp"]


def test_answers_are_alike_whose_first_hits_score_alike() -> None:
    one = [("hybrid", "mem-1", 0.5)]
    assert alike(one, [("hybrid", "mem-2", 0.5004)])
    assert not alike(one, [("hybrid", "mem-1", 0.51)])
    assert not alike(one, [("keyword", "mem-1", 0.5)])
    assert not alike(one, [])
