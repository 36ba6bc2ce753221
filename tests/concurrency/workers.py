"""What the other processes of these tests do. Each is started fresh, reports by its standard output, and is no test."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import AgentMemoryError
from agent_memory.files.lock import folder_lock
from agent_memory.journal import Change, Journal
from agent_memory.memories import VectorStorage
from agent_memory.memory import MemoryService
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

OFFLINE = ServiceSettings(embedder="none")


def open_storage(root: str) -> FileStorage:
    return FileStorage("bob", root, settings=OFFLINE)


async def contents(root: Path) -> dict[str, str]:
    """Return the texts of a storage that is sound, by id."""
    storage = open_storage(str(root))
    found = {memory.id: memory.content async for memory in storage.iter_all()}
    assert (await storage.health())["status"] == "ok"
    await storage.close()
    return found


def say(**message: Any) -> None:
    """Tell the test one thing, at once."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def write(root: str, name: str, count: str) -> None:
    """Store, change and forget; report each memory's last acknowledged text, None once it is forgotten."""
    storage, choose = open_storage(root), random.Random(name)
    mine: dict[str, str] = {}
    for number in range(int(count)):
        memory = Memory(agent_id="bob", content=f"{name} {number}")
        await storage.store(memory)
        mine[memory.id] = memory.content
        say(id=memory.id, content=memory.content)
        chosen = choose.choice(list(mine))
        if number % 3 == 1:
            await storage.update(chosen, {"content": f"{mine[chosen]} changed"})
            mine[chosen] += " changed"
            say(id=chosen, content=mine[chosen])
        if number % 5 == 4:
            await storage.delete(chosen)
            del mine[chosen]
            say(id=chosen, content=None)
        await storage.touch(list(mine)[:3])
    await storage.close()


async def keep_storing(root: str, name: str) -> None:
    """Store again and again, which renders the scratchpad each time, until told to stop."""
    service = MemoryService(open_storage(root), OFFLINE)
    stop, number = threading.Event(), 0
    threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
    while not stop.is_set():
        await service.store({"content": f"session {name} item {number}"})
        if not number:
            await service.settle()
            say(begun=True)
        number += 1
        await asyncio.sleep(0.005)
    await service.scratchpad()
    await service.close()
    say(stored=number)


async def compact(root: str, times: str) -> None:
    """Compact again and again while the others write."""
    storage = open_storage(root)
    for _ in range(int(times)):
        await storage.compact()
        await asyncio.sleep(0.01)
    await storage.close()


async def write_until_killed(root: str) -> None:
    """Store without end; report each acknowledged memory."""
    storage = open_storage(root)
    while True:
        memory = Memory(agent_id="bob", content=os.urandom(40).hex())
        await storage.store(memory)
        say(id=memory.id, content=memory.content)


async def hold_lock_with_half_a_line(root: str) -> None:
    """Take the lock, begin a line, and wait to be killed."""
    folder = Path(root) / "bob"
    with folder_lock(folder):
        with (folder / "memories.yaml").open("ab") as journal:
            journal.write(b'--- {"seq": 99, "at": "2026-03-0')
        say(locked=True)
        time.sleep(600)  # noqa: ASYNC251 - nothing else runs here


async def fold_until_killed(root: str) -> None:
    """Make a new version of a journal, and wait to be killed before it is in place."""
    journal = Journal(Path(root) / "bob" / "memories.yaml", {"memory"})
    for number in range(3):
        with journal.locked() as writer:
            writer.append([Change("put", "memory", f"m{number}")])
    with journal.prepare_compaction():
        say(folded=True)
        time.sleep(600)  # noqa: ASYNC251 - nothing else runs here


async def hold_lock_until_told(root: str) -> None:
    """Take the lock and give it back when a line comes in."""
    with folder_lock(Path(root) / "bob"):
        say(locked=True)
        sys.stdin.readline()
    say(locked=False)


async def store_one(root: str, content: str) -> None:
    """Store one text."""
    storage = open_storage(root)
    say(id=await storage.store(Memory(agent_id="bob", content=content)))
    await storage.close()


async def store_under_file_size_limit(root: str, spare: str) -> None:
    """Store while the system lets files grow by a few bytes only; then lift the limit and store again."""
    import resource  # exists on Unix alone
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    journal = Path(root) / "bob" / "memories.yaml"
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size + int(spare), hard))
    storage, before = open_storage(root), journal.read_bytes()
    try:
        await storage.store(Memory(agent_id="bob", content="does not fit" * 20))
    except AgentMemoryError as error:
        say(code=error.code, message=error.message, untouched=journal.read_bytes() == before)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    say(id=await storage.store(Memory(agent_id="bob", content="fits")))
    await storage.close()


def after_fork(root: str) -> None:
    """Fork with a storage whose thread has run; each side stores and reads through the same object."""
    storage = open_storage(root)
    asyncio.run(_store(storage, "before the fork"))
    child = os.fork()
    side = "child" if child == 0 else "parent"
    asyncio.run(_store(storage, f"in the {side}"))
    if child == 0:
        asyncio.run(storage.close())
        os._exit(0)
    _, status = os.waitpid(child, 0)
    asyncio.run(storage.close())
    say(child_exit=os.waitstatus_to_exitcode(status))


async def migrate(root: str) -> None:
    """Move to the vector engine, telling each stage."""
    storage = VectorStorage("bob", root, embedder=HashEmbedder(), wanted=False)

    async def progress(stage: str, _done: int, _total: int) -> None:
        say(stage=stage)

    await storage.migrate(progress)
    say(stage="done")
    await storage.close()


def vector_after_fork(root: str) -> None:
    """Fork with an index held; the child must answer without it and leave the parent's alone."""
    storage = VectorStorage("bob", root, embedder=HashEmbedder())
    asyncio.run(_held(storage))
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        found = asyncio.run(_found(storage))
        os.write(send, json.dumps([found, storage.index.sync.is_holding]).encode())
        os._exit(0)
    child_found, child_holds = json.loads(os.read(receive, 1000))
    os.waitpid(child, 0)
    parent_holds = asyncio.run(_found(storage)) and storage.index.sync.is_holding
    asyncio.run(storage.close())
    say(child_found=child_found, child_holds=child_holds, parent_holds=parent_holds)


async def _held(storage: VectorStorage) -> None:
    await storage.store(Memory(agent_id="bob", content="before the fork"))
    await storage.prepare(None)
    assert await storage.caught_up(60)


async def _found(storage: VectorStorage) -> bool:
    found = any(hit.memory.content == "before the fork" for hit in await storage.search("fork"))
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
    return found


async def _store(storage: FileStorage, content: str) -> None:
    await storage.store(Memory(agent_id="bob", content=content))
    assert any(memory.content == content for memory in await storage.list_recent())


def fork_while_busy(root: str, kind: str, forks: str) -> None:
    """Fork again and again while a thread works with the same storage; tell what each child came to.

    A child stores, searches and compares what it sees with what somebody sees who just came.
    """
    storage, warm, stop = _storage_of(kind, root), threading.Event(), threading.Event()
    working = threading.Thread(target=lambda: asyncio.run(_keep_busy(storage, warm, stop)))
    working.start()
    # A child hangs if it imports what another thread was importing at the fork. A busy storage imports this late.
    importlib.import_module("agent_memory.store.segment_opener")
    warm.wait()
    choose = random.Random(kind)
    for number in range(int(forks)):
        time.sleep(choose.uniform(0.01, 0.04))
        child = os.fork()
        if child == 0:
            os._exit(_work_in_child(storage, root, number))
        _, status = os.waitpid(child, 0)
        say(child_exit=os.waitstatus_to_exitcode(status))
    stop.set()
    working.join()


def _storage_of(kind: str, root: str) -> FileStorage:
    if kind == "vector":
        return VectorStorage("bob", root, embedder=HashEmbedder(), wanted=False)
    return FileStorage("bob", root, settings=OFFLINE, embedder=HashEmbedder())


async def _keep_busy(storage: FileStorage, warm: threading.Event, stop: threading.Event) -> None:
    number = 0
    await storage.store(Memory(agent_id="bob", content="parent 0"))
    await storage.prepare(None)
    await storage.search("parent")
    warm.set()
    while not stop.is_set():
        number += 1
        await storage.store(Memory(agent_id="bob", content=f"parent {number} {os.urandom(8).hex()}"))
        if number % 5 == 0:
            await storage.search("parent")
        if number % 20 == 0:
            await storage.compact()
    await storage.close()


def _work_in_child(storage: FileStorage, root: str, number: int) -> int:
    import signal

    signal.alarm(60)  # ends a child that hangs

    async def work() -> int:
        memory_id = await storage.store(Memory(agent_id="bob", content=f"child {number}"))
        await storage.prepare(10)
        found = [hit.memory.id for hit in await storage.search(f"child {number}")]
        there = {memory.id async for memory in open_storage(root).iter_all()}
        seen = {memory.id async for memory in storage.iter_all()}
        return 0 if memory_id in found and there <= seen else 3

    try:
        return asyncio.run(work())
    except BaseException:  # noqa: BLE001 - this process is left by force
        return 4


def fork_with_lock(root: str) -> None:
    """Take the lock, fork, and tell the child's id; both wait to be killed, and it is the parent who has the lock."""
    with Journal(Path(root) / "bob" / "memories.yaml", {"memory"}).locked():
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        say(child=child)
        time.sleep(600)


def exec_with_lock(root: str) -> None:
    """Take the lock and become another program."""
    with Journal(Path(root) / "bob" / "memories.yaml", {"memory"}).locked():
        os.execv(sys.executable, [sys.executable, "-c", "print('{}', flush=True); import time; time.sleep(600)"])


async def write_many(root: str, kind: str) -> None:
    """Store, change and forget without end, through a service; report what was acknowledged. SIGINT ends it."""
    storage = _storage_of(kind, root)
    service = MemoryService(storage, OFFLINE)
    while True:
        stored = (await service.store({"content": os.urandom(20).hex(), "category": "note"})).memory
        say(id=stored.id, content=stored.content)
        changed = (await service.update(stored.id, {"content": f"{stored.content} changed"})).memory
        say(id=changed.id, content=changed.content)


async def use_for_months(root: str, months: str) -> None:
    """Store and forget with a clock that runs ahead, so that this process compacts; tell the generations seen."""
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    storage = FileStorage("bob", root, settings=OFFLINE, clock=lambda: now[0])
    for month in range(int(months)):
        for number in range(3):
            memory_id = await storage.store(Memory(agent_id="bob", content=f"month {month} number {number}"))
            await storage.delete(memory_id)
        now[0] += timedelta(days=32)
        await storage.compact()
        say(generation=storage.folder.journal.read_text().split("\n", 1)[0])
    await storage.close()


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    if not asyncio.iscoroutinefunction(globals()[name]):
        globals()[name](*arguments)
    else:
        asyncio.run(globals()[name](*arguments))
