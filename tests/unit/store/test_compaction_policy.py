"""When a journal is compacted by itself: soon enough that it stays bounded, and never again and again for nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.files.layout import AgentFolder
from agent_memory.index import SearchIndex
from agent_memory.journal import Change, Entry
from agent_memory.models import MEMORY, to_text
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store import change_log
from agent_memory.store.change_log import CompactionPolicy, FileLog
from agent_memory.store.changes import to_store, to_touch
from agent_memory.store.store import Store
from tests.support import NOON, FrozenClock, header_of, lines_of, memory_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_log, "_COMPACT_AT", 10)


def weight_of(*lines: tuple[int, str, float], compacted: int = 0) -> CompactionPolicy:
    """Return the weight of lines given as (seq, operation, age in days)."""
    weight = CompactionPolicy()
    weight.clear(compacted)
    for seq, op, age in lines:
        weight.add(Entry(seq, to_text(NOON - timedelta(days=age)), (Change(op, "memory", "mem-1"),), b""))
    return weight


def test_accesses_and_old_lines_pay_and_young_ones_do_not() -> None:
    assert weight_of(*((seq, "touch", 0) for seq in range(1, 13))).pays(1, NOON)
    assert weight_of(*((seq, "patch", 40) for seq in range(1, 13))).pays(1, NOON)
    assert not weight_of(*((seq, "patch", 20) for seq in range(1, 13))).pays(1, NOON)


def test_lines_grow_old_while_a_process_runs() -> None:
    weight = weight_of(*((seq, "patch", 0) for seq in range(1, 13)))
    assert not weight.pays(1, NOON)
    assert weight.pays(1, NOON + timedelta(days=32))


def test_accesses_that_the_last_compaction_left_do_not_pay_again() -> None:
    assert not weight_of(*((seq, "touch", 0) for seq in range(1, 13)), compacted=12).pays(1, NOON)


def test_what_could_not_go_is_tried_again_after_a_day_or_when_the_file_has_grown_and_not_before() -> None:
    left = [(seq, "put", 40) for seq in range(1, 31)] + [(31, "delete", 0)]
    assert not weight_of(*left, (32, "touch", 0), compacted=31).pays(5, NOON)
    assert weight_of(*left, (32, "touch", 0), compacted=31).pays(5, NOON + timedelta(days=1))
    assert weight_of(*left, *((seq, "touch", 0) for seq in range(32, 50)), compacted=31).pays(5, NOON)


async def test_a_memory_that_is_only_changed_is_compacted_too(root: Path, clock: FrozenClock) -> None:
    """Nobody searches or stores here: a tool that keeps one note up to date."""
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    memory_id = await storage.store(memory_of("count 0"))
    for number in range(1, 61):
        clock.advance(days=2)
        await storage.update(memory_id, {"content": f"count {number}"})
        await storage.folds()  # waits for what is done behind the answer
        assert len(lines_of(storage.folder.journal)) <= 1 + 16 + 12
    assert (await storage.get(memory_id)).content == "count 60"
    await storage.close()


async def test_what_was_just_forgotten_and_cannot_go_yet_does_not_make_every_write_compact(
    root: Path, clock: FrozenClock
) -> None:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    ids = [await storage.store(memory_of(f"import {number}")) for number in range(40)]
    clock.advance(days=40)
    for memory_id in ids[:30]:
        await storage.delete(memory_id)
    headers = set()
    for number in range(10):
        await storage.store(memory_of(f"news {number}"))
        await storage.folds()
        headers.add(header_of(storage.folder.journal))
    assert len(headers) <= 2
    await storage.close()


def test_of_several_sessions_one_compacts(root: Path, clock: FrozenClock) -> None:
    folder = AgentFolder(root / "bob")
    first, second = (Store(MEMORY, "bob", FileLog(MEMORY, folder, clock), SearchIndex(), clock) for _ in range(2))
    memory_id, _ = first.change(lambda state: to_store(state, memory_of("tea"), clock(), unique=False))
    for _ in range(11):
        first.change(lambda state: to_touch(state, [memory_id]))
    second.refresh()  # knows that it would pay
    assert second.log.pays_to_compact(second.state)
    with first.log.compacting() as finish:
        assert finish(first.absorb)
    first.after_compaction()
    second.refresh()
    assert not second.log.pays_to_compact(second.state)
