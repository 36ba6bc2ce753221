"""Several real processes on one agent's folder: nothing acknowledged is lost, nobody blocks for ever."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError
from agent_memory.journal import Change, Journal
from agent_memory.journal.salvage import get_rejected_path
from tests.concurrency.processes import running
from tests.concurrency.workers import contents, open_storage
from tests.support import lines_of, memory_of

if TYPE_CHECKING:
    from pathlib import Path

WRITERS = 4


async def test_what_four_writers_were_told_is_what_is_there_though_a_fifth_compacts(root: Path) -> None:
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(running("write", root, f"writer-{n}", 15)) for n in range(WRITERS)]
        compactor = stack.enter_context(running("compact", root, 15))
        said = [message for writer in writers for message in writer.finish()]
        compactor.finish()
    acknowledged: dict[str, str] = {}
    for message in said:
        acknowledged[message["id"]] = message["content"]
    expected = {memory_id: content for memory_id, content in acknowledged.items() if content is not None}
    assert await contents(root) == expected
    assert len(expected) > WRITERS * 10
    seqs = [json.loads(line[4:])["seq"] for line in lines_of(root / "bob" / "memories.yaml")]
    assert seqs == sorted(set(seqs))
    assert not get_rejected_path(root / "bob" / "memories.yaml").exists()


async def test_a_lock_file_that_is_deleted_again_and_again_costs_nothing_that_was_acknowledged(root: Path) -> None:
    acknowledged: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(running("write_until_killed", root)) for _ in range(3)]
        for writer in writers:
            acknowledged |= _told(writer.hear())
        compactor = stack.enter_context(running("compact", root, 25))
        while compactor.process.poll() is None:
            (root / "bob" / ".lock").unlink(missing_ok=True)  # as `git clean` and `rsync --delete` do
            acknowledged |= _told(writers[0].hear())
        compactor.finish()
        for writer in writers:
            for message in writer.kill():
                acknowledged |= _told(message)
    found = await contents(root)
    assert {memory_id: found.get(memory_id) for memory_id in acknowledged} == acknowledged
    assert len(found) - len(acknowledged) <= len(writers), "at most those that were on their way"


def _told(message: dict[str, str]) -> dict[str, str]:
    return {message["id"]: message["content"]}


@pytest.mark.parametrize("after", [1, 7, 30])
async def test_whatever_a_killed_writer_was_told_is_there(root: Path, after: int) -> None:
    with running("write_until_killed", root) as writer:
        acknowledged = [writer.hear() for _ in range(after)]
        acknowledged += writer.kill()
    found = await contents(root)
    for message in acknowledged:
        assert found[message["id"]] == message["content"]
    assert len(found) - len(acknowledged) in {0, 1}, "at most the one that was on its way"


async def test_a_killed_lock_holder_blocks_nobody_and_its_half_line_is_set_aside(root: Path) -> None:
    storage = open_storage(str(root))
    first = await storage.store(memory_of("before"))
    with running("hold_lock_with_half_a_line", root) as holder:
        assert holder.hear() == {"locked": True}
        holder.kill()
    second = await storage.store(memory_of("after"))
    await storage.close()
    assert list(await contents(root)) == [first, second]
    assert '"seq": 99' in json.loads(get_rejected_path(root / "bob" / "memories.yaml").read_text()[4:])["line"]


async def test_the_wait_for_a_held_lock_is_bounded_and_reading_goes_on(root: Path) -> None:
    storage = open_storage(str(root))
    await storage.store(memory_of("before"))
    impatient = Journal(root / "bob" / "memories.yaml", {"memory"}, wait=0.05)
    with running("hold_lock_until_told", root) as holder:
        assert holder.hear() == {"locked": True}
        with pytest.raises(BusyError) as busy, impatient.locked():
            pytest.fail("the lock is held")  # pragma: no cover
        assert busy.value.code == "busy"
        assert [m.content for m in await storage.list_recent()] == ["before"]
        holder.tell()
        assert holder.finish() == [{"locked": False}]
    with impatient.locked() as writer:
        assert writer.append([Change("mark", "memory", "x")]).seq == 2
    await storage.close()


async def test_another_processes_store_is_seen_without_reopening(root: Path) -> None:
    storage = open_storage(str(root))
    assert await storage.count() == 0
    with running("store_one", root, "peppermint tea") as other:
        (said,) = other.finish()
    assert [r.memory.id for r in await storage.search("peppermint")] == [said["id"]]
    await storage.update(said["id"], {"content": "camomile tea"})
    assert [m.content for m in await storage.list_recent()] == ["camomile tea"]
    await storage.close()


async def test_an_open_storage_works_on_both_sides_of_a_fork(root: Path) -> None:
    with running("after_fork", root) as forking:
        assert forking.finish() == [{"child_exit": 0}]
    assert sorted((await contents(root)).values()) == ["before the fork", "in the child", "in the parent"]
