"""Forks, exec, Ctrl-C, and lock holders that are stopped or killed: bounded waits, no half state, the same lock."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import BusyError
from agent_memory.journal import Journal
from agent_memory.journal.salvage import get_rejected_path
from agent_memory.memories import MigratableStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.concurrency.processes import PATIENCE, REPOSITORY, environment, running
from tests.concurrency.workers import OFFLINE, contents, open_storage
from tests.support import memory_of

FORKS = int(os.environ.get("FORKS", "6"))
INTERRUPTS = int(os.environ.get("INTERRUPTS", "2"))


PATIENT_FOR = 0.4
"""Seconds, instead of the default."""


def impatient(root: Path) -> FileStorage:
    settings = ServiceSettings(embedder="none", lock_timeout=PATIENT_FOR)
    return FileStorage("bob", root, settings=settings)


async def test_a_stopped_lock_holder_costs_writers_a_bounded_wait_and_searches_nothing(root: Path) -> None:
    storage = impatient(root)
    await storage.store(memory_of("tea before"))
    with running("hold_lock_until_told", root) as holder:
        assert holder.hear() == {"locked": True}
        os.kill(holder.process.pid, signal.SIGSTOP)
        writes = [asyncio.ensure_future(storage.store(memory_of(f"tea {number}"))) for number in range(8)]
        for _ in range(5):
            assert (await storage.search("tea"))[0].memory.content == "tea before"
            assert not any(write.done() for write in writes), "a search waited for the writers"
        refused = await asyncio.gather(*writes, return_exceptions=True)
        assert all(isinstance(each, BusyError) for each in refused)
        assert isinstance(refused[0], BusyError)
        assert f"Process {holder.process.pid} (python" in refused[0].message
        assert "is stopped" in refused[0].message
        assert f"kill -CONT {holder.process.pid}" in refused[0].recovery
        assert "do not delete the lock file" in refused[0].recovery
        os.kill(holder.process.pid, signal.SIGCONT)
        holder.tell()
        assert holder.finish() == [{"locked": False}]
    await storage.store(memory_of("tea after"))
    await storage.close()
    assert sorted((await contents(root)).values()) == ["tea after", "tea before"]


async def test_a_write_that_waits_goes_through_once_a_stopped_holder_is_killed(root: Path) -> None:
    storage = open_storage(str(root))
    await storage.store(memory_of("before"))
    with running("hold_lock_until_told", root) as holder:
        assert holder.hear() == {"locked": True}
        os.kill(holder.process.pid, signal.SIGSTOP)
        waiting = asyncio.ensure_future(storage.store(memory_of("after")))
        await storage.search("before")
        assert not waiting.done()
        holder.kill()
        await waiting
    await storage.close()
    assert list((await contents(root)).values()) == ["before", "after"]


async def test_searches_go_on_by_service_while_a_holder_is_stopped(root: Path) -> None:
    """Each search counts accesses behind its answer, which is a write: the next search must not wait for that."""
    service = MemoryService(impatient(root), OFFLINE)
    await service.store({"content": "tea", "category": "note"})
    await service.settle()
    with running("hold_lock_until_told", root) as holder:
        assert holder.hear() == {"locked": True}
        os.kill(holder.process.pid, signal.SIGSTOP)
        begun = time.monotonic()
        for _ in range(12):
            assert (await service.search("tea")).results
        await service.settle()
        waited = time.monotonic() - begun
        holder.kill()
    assert waited < 12 * PATIENT_FOR, "the accesses waited one after the other"
    await service.close()


async def test_the_lock_file_is_the_same_one_whatever_happens(root: Path) -> None:
    embedder = HashEmbedder()
    storage = MigratableStorage("bob", root, embedder=embedder, wanted=False)
    await storage.store(memory_of("tea"))
    lock = root / "bob" / ".lock"
    inode = lock.stat().st_ino
    await storage.compact()
    await storage.migrate()
    await storage.store(memory_of("coffee"))
    await storage.migrate()
    await storage.rollback()
    await storage.compact()
    with running("hold_lock_with_half_a_line", root) as holder:
        holder.hear()
        holder.kill()
    await storage.store(memory_of("milk"))
    await storage.close()
    assert lock.stat().st_ino == inode
    assert len(await contents(root)) == 3


async def test_what_others_know_survives_a_compaction_by_somebody_else(root: Path) -> None:
    """Nothing is read anew, so a search is by meaning at any moment."""
    embedder = HashEmbedder()
    storage = MigratableStorage("bob", root, embedder=embedder, wanted=False)
    for number in range(80):
        await storage.store(memory_of(f"tea {number}"))
    await storage.prepare(None)
    embedder.gate.clear()  # whoever asks for a vector now waits for ever
    with running("compact", root, 3) as other:
        other.finish()
    found = await storage.search("tea 17")
    assert found.mode == "hybrid"
    assert found[0].memory.content == "tea 17"
    embedder.gate.set()
    await storage.close()


@pytest.mark.parametrize("kind", ["file", "vector"])
async def test_a_fork_in_the_middle_of_anything_leaves_a_child_that_works(root: Path, kind: str) -> None:
    """`FORKS=100` forks a hundred times."""
    with running("fork_while_busy", root, kind, FORKS) as forking:
        said = forking.finish()
    assert said == [{"child_exit": 0}] * FORKS
    found = (await contents(root)).values()
    assert sum(content.startswith("child") for content in found) == FORKS


async def test_a_forked_child_does_not_keep_the_lock_of_a_parent_that_is_gone(root: Path) -> None:
    storage = open_storage(str(root))
    await storage.store(memory_of("before"))
    with running("fork_with_lock", root) as parent:
        child = parent.hear()["child"]
        try:
            parent.process.kill()
            parent.process.wait(PATIENCE)
            await storage.store(memory_of("after"))
        finally:
            os.kill(child, signal.SIGKILL)
    await storage.close()
    assert list((await contents(root)).values()) == ["before", "after"]


async def test_a_program_that_takes_a_processs_place_does_not_have_its_lock(root: Path) -> None:
    storage = open_storage(str(root))
    await storage.store(memory_of("before"))
    with running("exec_with_lock", root) as other:
        assert other.hear() == {}
        await storage.store(memory_of("after"))
    await storage.close()


@pytest.mark.parametrize("kind", ["file", "vector"])
async def test_ctrl_c_in_the_middle_of_writing_leaves_what_was_acknowledged_and_no_half(root: Path, kind: str) -> None:
    """`INTERRUPTS=50` does it fifty times, each time a little later."""
    acknowledged: dict[str, str] = {}
    for number in range(INTERRUPTS):
        with running("write_many", root, kind) as writer:
            said = [writer.hear() for _ in range(3 + number)]
            time.sleep(0.003 * number)  # noqa: ASYNC251 - nothing else runs here
            writer.process.send_signal(signal.SIGINT)
            assert writer.process.stdout is not None
            rest = writer.rest()
            assert writer.process.returncode != 0
        acknowledged |= {message["id"]: message["content"] for message in [*said, *rest]}
    found = await contents(root)
    unheard = found.keys() - acknowledged.keys()
    assert acknowledged.keys() <= found.keys()
    assert len(unheard) <= INTERRUPTS, "at most the one that was on its way"
    for memory_id, content in acknowledged.items():
        assert found[memory_id] in {content, f"{content} changed"}
    assert not get_rejected_path(root / "bob" / "memories.yaml").exists()


@contextlib.contextmanager
def cli(root: Path, *arguments: str) -> Any:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "agent_memory.cli", *arguments, "--agent", "bob", "--root", str(root)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment()
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


async def test_ctrl_c_at_the_command_line_ends_with_130_and_stores_nothing(root: Path) -> None:
    storage = open_storage(str(root))
    await storage.store(memory_of("before"))
    await storage.close()
    with running("hold_lock_until_told", root) as holder:
        assert holder.hear() == {"locked": True}
        with cli(root, "store", "interrupted") as process:
            await asyncio.to_thread(_until_it_waits, process.pid)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) == 130
        holder.tell()
        holder.finish()
    assert list((await contents(root)).values()) == ["before"]
    with Journal(root / "bob" / "memories.yaml", {"memory"}).locked() as writer:
        assert writer.last_seq == 1


def _until_it_waits(pid: int) -> None:
    """Wait until a process has the threads that write and wait for the lock."""
    deadline = time.monotonic() + PATIENCE
    tasks = Path(f"/proc/{pid}/task")
    while time.monotonic() < deadline and (not tasks.exists() or len(list(tasks.iterdir())) < 3):
        time.sleep(0.02)
    time.sleep(0.2)
