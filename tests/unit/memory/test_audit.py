"""`AuditLog`: one line an event, whatever others do to the file at the same moment."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from agent_memory.files.lock import file_lock
from agent_memory.memories import FileStorage
from agent_memory.memory import AuditLog, MemoryService, events
from agent_memory.memory.caller import NOBODY, Caller
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest

EVENT = {"timestamp": "2026-03-01T12:00:00Z", "session_id": "s1", "memory_id": "mem-0123456789ab"}


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def test_half_a_line_of_somebody_who_dies_at_the_same_moment_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = AuditLog(path)
    log.append("memory:stored", EVENT)
    other = os.open(path, os.O_WRONLY | os.O_APPEND)
    fcntl.flock(other, fcntl.LOCK_EX)

    def die_while_writing() -> None:
        time.sleep(0.01)
        os.write(other, b'{"at": "2026-03-01T12')
        os.close(other)

    dying = threading.Thread(target=die_while_writing)
    dying.start()
    log.append("memory:updated", EVENT)
    dying.join()
    first, half, last = lines(path)
    assert json.loads(first)["event"] == "memory:stored"
    assert half == b'{"at": "2026-03-01T12'
    assert json.loads(last)["event"] == "memory:updated"


def test_somebody_who_holds_the_file_for_ever_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = AuditLog(path)
    log.append("memory:stored", EVENT)
    with path.open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        log.append("memory:updated", EVENT)
    assert len(lines(path)) == 2


def test_a_child_forked_while_a_line_is_written_does_not_keep_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    ended, may_end = os.pipe()

    def fork_and_write(descriptor: int, data: bytes) -> None:
        child = os.fork()
        if not child:  # lives on with a copy of what the parent had open
            os.close(may_end)
            os.read(ended, 1)
            os._exit(0)
        monkeypatch.undo()
        events.write_all(descriptor, data)
        os._exit(0)  # the parent dies without letting go

    writer = os.fork()
    if not writer:
        monkeypatch.setattr(events, "write_all", fork_and_write)
        AuditLog(path).append("memory:stored", EVENT)
    os.close(ended)
    try:
        os.waitpid(writer, 0)
        with file_lock(path, lambda: os.open(path, os.O_RDWR), 5.0):
            pass  # the child closes its copy while it begins, maybe after the writer died
    finally:
        os.close(may_end)


async def test_what_is_told_at_the_same_moment_is_noted_with_one_look_at_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage("bob", tmp_path, settings=ServiceSettings(embedder="none"))
    service = MemoryService(storage, ServiceSettings(embedder="none"), audit=AuditLog(storage.folder.audit))
    written: list[int] = []
    real = AuditLog.append_all

    def append_all(log: AuditLog, events: list[tuple[str, Mapping[str, Any]]]) -> None:
        written.append(len(events))
        real(log, events)

    monkeypatch.setattr(AuditLog, "append_all", append_all)
    memories = [Memory(agent_id="bob", content=f"fact {number} of day {number}") for number in range(250)]
    await service.writer.import_memories(memories, lambda _: None, NOBODY)
    await service.settle()
    noted = [json.loads(line)["memory_id"] for line in lines(storage.folder.audit)]
    assert sorted(noted) == sorted(memory.id for memory in memories)
    assert written == [100, 100, 50]
    await service.close()


async def test_history_waits_for_lines_that_are_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FileStorage("bob", tmp_path, settings=ServiceSettings(embedder="none"))
    service = MemoryService(storage, ServiceSettings(embedder="none"), audit=AuditLog(storage.folder.audit))
    may_write, real = threading.Event(), AuditLog.append_all

    def append_all(log: AuditLog, events: list[tuple[str, Mapping[str, Any]]]) -> None:
        may_write.wait(60)
        real(log, events)

    monkeypatch.setattr(AuditLog, "append_all", append_all)
    stored = await service.store({"content": "The ledger is in MySQL."}, Caller(session_id="today"))
    asyncio.get_running_loop().call_later(0.1, may_write.set)
    changes = await service.history.list_session("today")
    assert [part.record_id for change in changes for part in change.parts] == [stored.memory.id]
    await service.close()


def test_the_latest_come_first_and_no_line_is_read_behind_the_first_that_is_older(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    days = [f"2026-03-0{day}T12:00:00Z" for day in range(1, 6)]
    old, new = ([json.dumps({"at": day, "event": "memory:stored"}) for day in some] for some in (days[:3], days[3:]))
    path.with_name("events.1.jsonl").write_text("\n".join(["{broken", *old]) + "\n")
    path.write_text("\n".join([*new, "{torn"]))
    assert [entry["at"] for entry in events.read_latest_audit(path, days[2])] == days[:1:-1]
    assert [entry["at"] for entry in events.read_audit(path)] == days
    assert list(events.read_latest_audit(tmp_path / "none" / "events.jsonl", days[0])) == []


def test_append_to_a_log_with_other_names_leaves_those_as_they_are(tmp_path: Path) -> None:
    path, snapshot = tmp_path / "events.jsonl", tmp_path / "snapshot"
    log = AuditLog(path)
    log.append("memory:stored", EVENT)
    snapshot.hardlink_to(path)
    log.append("memory:updated", EVENT)
    assert len(lines(snapshot)) == 1
    assert len(lines(path)) == 2
