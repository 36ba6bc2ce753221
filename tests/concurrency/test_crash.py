"""Processes killed in the middle of everything they write lose nothing. `CRASH_KILLS=500 CRASH_SEED=7` for more."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from agent_memory.cli.app import build
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.files import atomic
from agent_memory.files.atomic import claim, remove_leftovers, replace_file
from agent_memory.files.lock import index_lock
from agent_memory.files.names import BUILD_LOCK
from agent_memory.integrations.amplifier.session_notes import SessionNote, SessionNotes
from agent_memory.journal import Change, Journal, LineProblem
from agent_memory.journal.salvage import keep_rejected
from agent_memory.memories import MigratableStorage
from agent_memory.memory import AuditLog
from agent_memory.store.shards import Shards
from tests.concurrency.processes import REPOSITORY, environment
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

KILLS = int(os.environ.get("CRASH_KILLS", "50"))
SEED = os.environ.get("CRASH_SEED") or str(random.SystemRandom().getrandbits(32))
QUICK = ["store", "update", "forget", "compaction", "scratchpad", "import"]
SLOW = ["migration", "build", "rollback", "reindex", "seal"]
COLUMNS = ("lost", "reopen", "half", "leftovers")


def test_killed_at_any_moment_nothing_acknowledged_is_lost_and_nothing_stays_half_done() -> None:
    operations = [*QUICK * 4, *SLOW]  # moving an index takes seconds, a store milliseconds
    command = [sys.executable, "-m", "benchmarks.crash", "--json", "--kills", str(KILLS), "--seed", SEED]
    result = subprocess.run(
        [*command, "--operations", ",".join(operations)],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env=environment(),
        check=False,
    )
    assert result.stdout, result.stderr
    report = json.loads(result.stdout)
    assert report["problems"] == [], f"seed {SEED}"
    assert [report["total"][column] for column in COLUMNS] == [0, 0, 0, 0]
    assert result.returncode == 0
    assert report["total"]["kills"] == KILLS
    if len(operations) <= KILLS:
        assert report["operations"].keys() == set(operations)
        assert report["total"]["inside"] + report["total"]["after"] > KILLS / 2, "it kills beside the operations"


async def test_what_killed_builds_left_is_gone_once_somebody_starts(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("tea"))
    await storage.close()
    index = storage.folder.index
    for left in (".new-0123456789ab", "0123456789ab"):  # killed while building; killed between renaming and switching
        (index / left / "shard").mkdir(parents=True)
    later = MigratableStorage("bob", root, embedder=HashEmbedder())
    await later.search("tea")
    await later.index.wait_settled()
    assert [each.name for each in index.iterdir() if each.is_dir()] == []
    await later.close()


async def test_a_start_removes_nothing_while_the_switch_cannot_be_read(root: Path) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("tea"))
    (storage.folder.index / "0123456789ab" / "shard").mkdir(parents=True)
    storage.folder.metadata.write_text("{")
    Shards(storage.folder).sweep()
    assert (storage.folder.index / "0123456789ab").is_dir()
    await storage.close()


def test_a_build_waits_for_whoever_is_sweeping(root: Path) -> None:
    shards = Shards(MigratableStorage("bob", root, embedder=HashEmbedder()).folder)
    shards.path.mkdir(parents=True)
    sweeping = threading.Event()

    def sweep() -> None:
        with index_lock(shards.path / BUILD_LOCK, "remove"):
            sweeping.set()
            time.sleep(0.1)

    thread = threading.Thread(target=sweep)
    thread.start()
    sweeping.wait()
    with shards.building() as (_, unfinished):
        assert unfinished.is_dir()
    thread.join()


def test_temporary_files_of_the_dead_go_at_the_next_write_those_of_the_living_stay(root: Path) -> None:
    folder = root / "bob"
    folder.mkdir(parents=True)
    dead, living = (folder / f".scratchpad.yaml.{number}.tmp" for number in ("00000001", "00000002"))
    dead.write_bytes(b"half")
    descriptor = os.open(living, os.O_WRONLY | os.O_CREAT)
    claim(descriptor)
    for each in (dead, living):
        os.utime(each, (each.stat().st_mtime - 10,) * 2)
    try:
        with Journal(folder / "memories.yaml", {"memory"}).locked() as writer:
            writer.append([Change("mark", "memory", "x")])
        assert [each.exists() for each in (dead, living)] == [False, True]
    finally:
        os.close(descriptor)


def test_in_a_users_own_folder_only_what_was_left_of_our_file_goes(tmp_path: Path) -> None:
    ours, theirs = (tmp_path / f".{name}.00000001.tmp" for name in ("bob[1].jsonl", "letter"))
    for each in (ours, theirs):
        each.write_bytes(b"half")
        os.utime(each, (each.stat().st_mtime - 10,) * 2)
    remove_leftovers(tmp_path, of="bob[1].jsonl")
    assert [each.exists() for each in (ours, theirs)] == [False, True]


def test_what_a_killed_activation_or_export_left_goes_with_the_next(tmp_path: Path) -> None:
    activated, exported = tmp_path / "_sessions" / ".1.json.00000001.tmp", tmp_path / ".out.jsonl.00000001.tmp"
    activated.parent.mkdir()
    for each in (activated, exported):
        each.write_bytes(b"half")
        os.utime(each, (each.stat().st_mtime - 10,) * 2)
    SessionNotes(tmp_path).remember("s", SessionNote("bob"))
    for words in (["store", "tea"], ["export", str(tmp_path / "out.jsonl")]):
        command = [*words, "--agent", "bob", "--root", str(tmp_path / "memory")]
        assert CliRunner().invoke(build(), command).exit_code == 0
    assert [each.exists() for each in (activated, exported)] == [False, False]


def test_a_file_being_replaced_is_claimed_until_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    for name in ("claim", "write_all"):
        monkeypatch.setattr(atomic, name, lambda *_, name=name: order.append(name))
    monkeypatch.setattr(os, "replace", lambda *_: order.append("replace"))
    monkeypatch.setattr(os, "close", lambda _: order.append("close"))
    replace_file(tmp_path / "view.yaml", b"text", durable=False)
    assert order == ["claim", "write_all", "replace", "close"]


def test_what_was_set_aside_before_a_kill_is_set_aside_once_and_half_a_document_is_written_anew(root: Path) -> None:
    path = root / "memories.rejected.yaml"
    root.mkdir()
    problem, other = LineProblem(3, "no JSON", b"--- {nothing\n"), LineProblem(4, "no JSON", b"\xff\n")
    keep_rejected(path, [problem], "2026-03-01T12:00:00Z")
    with path.open("ab") as file:
        file.write(b'--- {"at": "2026-03-01T12:')
    keep_rejected(path, [problem, other], "2026-03-01T12:05:00Z")
    kept = [json.loads(line[4:]) for line in path.read_bytes().splitlines()]
    assert [(document["at"], document.get("line")) for document in kept] == [
        ("2026-03-01T12:00:00Z", "--- {nothing\n"),
        ("2026-03-01T12:05:00Z", None),
    ]


def test_an_event_torn_by_a_kill_does_not_spoil_the_next_one(root: Path) -> None:
    log = root / "bob" / "events.jsonl"
    audit = AuditLog(log)
    audit.append("memory:stored", {"memory_id": "mem-1"})
    with log.open("ab") as file:
        file.write(b'{"at": "2026-0')
    audit.append("memory:stored", {"memory_id": "mem-2"})
    first, torn, last = log.read_bytes().splitlines()
    assert (json.loads(first)["memory_id"], torn, json.loads(last)["memory_id"]) == (
        "mem-1",
        b'{"at": "2026-0',
        "mem-2",
    )
