"""Links, folders, pipes and monsters in place of our files, and names that no folder should have."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import AgentMemoryError, StorageError
from agent_memory.journal.format import add_checksum, encode_line
from agent_memory.memories import MigratableStorage
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.storage import FileStorage
from tests.hostile.attacks import attack
from tests.hostile.trouble import OFFLINE, open_storage, refusal, reopened
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock


async def test_a_root_that_is_a_file_is_told_so(tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError):
            await open_storage(root, clock).store(memory_of("tea"))


@attack("agents-folder-outside")
async def test_an_agents_folder_that_leads_out_of_the_root_is_refused(
    root: Path, tmp_path: Path, clock: FrozenClock
) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.mkdir()
    (root / "bob").symlink_to(tmp_path / "elsewhere")
    with raises(StorageError, "outside_root"):
        open_storage(root, clock)
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_root_that_is_a_link_is_the_users_own_choice(root: Path, tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    storage = open_storage(root, clock)
    await storage.store(memory_of("tea"))
    await storage.close()
    assert (tmp_path / "elsewhere" / "bob" / "memories.yaml").is_file()


@pytest.mark.parametrize("name", ["memories.yaml", "memories.rejected.yaml", ".lock"])
@attack("linked-journal")
async def test_a_linked_file_is_never_written_through(
    root: Path, tmp_path: Path, clock: FrozenClock, name: str
) -> None:
    storage = open_storage(root, clock)
    await storage.store(memory_of("before"))
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    path = storage.folder.path / name
    path.unlink(missing_ok=True)
    path.symlink_to(victim)
    if name == "memories.rejected.yaml":
        with storage.folder.journal.open("ab") as file:
            file.write(b"torn")
    with pytest.raises(StorageError):
        await storage.store(memory_of("after"))
    await storage.close()
    assert victim.read_bytes() == b"precious"


async def test_a_folder_in_place_of_the_journal_is_a_clear_error(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    storage.folder.journal.mkdir(parents=True)
    with pytest.raises(StorageError, match=r"memories\.yaml"):
        await storage.list_recent()
    with pytest.raises(StorageError, match=r"memories\.yaml"):
        await storage.store(memory_of("tea"))


async def test_every_error_says_what_to_do(root: Path, tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "file").write_text("x")
    for attempt in (lambda: open_storage(tmp_path / "file", clock), lambda: FileStorage("../x", root)):
        with pytest.raises(AgentMemoryError) as refused:
            attempt()
        assert set(refused.value.as_dict()) == {"message", "code", "recovery"}
        assert all(refused.value.as_dict().values())


@pytest.mark.parametrize(
    "name",
    ["memories.yaml", "scratchpad.yaml", "metadata.json", "events.jsonl", "memories.rejected.yaml", "memories.db"],
)
@pytest.mark.parametrize("what", ["pipe", "folder", "link to nowhere", "link in a circle"])
@attack("pipe-in-place-of-a-file")
async def test_what_is_no_file_never_makes_a_session_wait_and_costs_at_most_itself(
    root: Path, clock: FrozenClock, name: str, what: str
) -> None:
    service = new_service(root, clock)
    memory = (await service.store({"content": "peppermint tea"})).memory
    await service.close()
    put_in_place(root / "bob" / name, what)
    again = new_service(root, clock)
    async with asyncio.timeout(20):
        if name == "memories.yaml":
            refused = await refusal(again.store({"content": "black coffee"}))
            assert refused["code"] in {"not_a_file", "symlink"}
            assert "memories.yaml" in refused["message"]
            assert (await again.status()).health["status"] == "unreadable"
        else:
            await again.store({"content": "black coffee"})
            assert [hit.memory.id for hit in (await again.search("peppermint")).results] == [memory.id]
            assert len((await again.scratchpad()).entries) == 2
            assert (await again.status()).health["status"] in {"ok", "attention"}
        await again.settle()
        await again.close()


@pytest.mark.parametrize("what", ["pipe", "folder", "link to nowhere", "rubbish"])
@attack("pipe-in-place-of-the-cache")
async def test_a_vector_cache_that_is_none_costs_vectors_at_most(root: Path, what: str) -> None:
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    folder = storage.folder.path
    folder.mkdir(parents=True)
    put_in_place(folder / "embeddings.sqlite3", what)
    async with asyncio.timeout(20):
        await storage.store(memory_of("peppermint tea"))
        await storage.prepare(None)
        results = await storage.search("peppermint")
        await storage.close()
    assert [hit.memory.content for hit in results] == ["peppermint tea"]
    assert results.mode == "hybrid"


@attack("journal-line-of-ten-megabytes")
async def test_a_line_of_ten_megabytes_and_zeros_are_set_aside_and_cost_no_memory(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("before"))
    await storage.count()  # nothing is left to be done behind the store: it might see half of what comes now
    with storage.folder.journal.open("ab") as file:
        file.write(b"--- {" + b"x" * 10_000_000 + b"\n" + bytes(4096) + b"\n")
    await storage.store(memory_of("after"))
    health = await storage.health()
    assert (health["status"], health["problems"]) == ("damaged", 2)
    with storage.folder.journal.open("ab") as file:
        file.write(bytes(8192))  # as a file system may leave the end of a file after a power cut
    await storage.store(memory_of("last"))
    assert await reopened(root, clock) == ["before", "after", "last"]
    await storage.compact()
    assert await storage.health() == {"status": "ok"}
    assert storage.folder.journal.stat().st_size < 10_000


async def test_a_valid_line_of_ten_megabytes_is_read_past(storage: FileStorage, root: Path, clock: FrozenClock) -> None:
    await storage.store(memory_of("before"))
    await storage.count()
    huge = {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "mem-0123456789ab"}
    with storage.folder.journal.open("ab") as file:
        file.write(add_checksum(encode_line({**huge, "data": {"content": "x" * 10_000_000}})))
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == ["before", "after"]
    assert "mem-0123456789ab" in (await storage.health())["first_problems"][0]


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "_ours",
        "-x",
        "a b",
        "é",
        "e\u0301",
        "x" * 65,
        "con",
        "LPT1",
        "a\0b",
        "a\nb",
        "\ud800",
    ],
)
@attack("name-of-a-folder")
def test_a_name_that_no_folder_should_have_is_refused(root: Path, name: str) -> None:
    with raises(AgentMemoryError, "invalid_agent_id"):
        FileStorage(name, root)
    assert not root.exists()


async def test_names_that_differ_in_case_alone_are_one_agent(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("peppermint tea"))
    twin = FileStorage("BOB", root, settings=OFFLINE, clock=clock)
    assert twin.agent_id == "bob"
    await twin.store(memory_of("black coffee"))
    await twin.close()
    assert await reopened(root, clock) == ["peppermint tea", "black coffee"]
    assert [path.name for path in root.iterdir()] == ["bob"]


async def test_an_agents_folder_that_links_to_a_disk_that_is_not_mounted_is_named(
    root: Path, clock: FrozenClock
) -> None:
    root.mkdir()
    (root / "bob").symlink_to(root / "not mounted")
    with raises(StorageError, "symlink") as refused:
        open_storage(root, clock)
    assert "not mounted" in refused.value.recovery


def new_service(root: Path, clock: FrozenClock) -> MemoryService:
    storage = open_storage(root, clock)
    return MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit), clock=clock)


def put_in_place(path: Path, what: str) -> None:
    """Replace a file by something that is none."""
    if path.exists():
        path.unlink()
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
        (path / "inside").write_text("x")
    elif what == "rubbish":
        path.write_bytes(b"no database at all" * 100)
    else:
        path.symlink_to(path if what == "link in a circle" else path.with_name("nowhere"))


@pytest.mark.parametrize("value", ["1e999", "NaN", '"\\ud800"', "9" * 4000, "[" * 300 + "]" * 300])
@attack("value-that-cannot-be-written-again")
async def test_values_that_can_be_read_and_not_be_written_stop_no_compaction(
    storage: FileStorage, root: Path, clock: FrozenClock, value: str
) -> None:
    """In a field of a newer version, say; every other line is folded, and this one stays byte for byte."""
    memory_id = await storage.store(memory_of("tea"))
    head = (
        '--- {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "mem-0123456789ab", "data": '
    )
    line = f'{head}{{"content": "odd", "timestamp": "2026-03-01T12:00:00Z", "mood": {value}}}}}\n'
    with storage.folder.journal.open("ab") as file:
        file.write(add_checksum(line.encode()))
    await storage.touch(["mem-0123456789ab", memory_id])
    clock.advance(days=60)
    for text in ("milk", "water"):
        await storage.compact()
        await storage.store(memory_of(text))
    assert await reopened(root, clock) == ["tea", "odd", "milk", "water"]
    await storage.update("mem-0123456789ab", {"tags": ["mended"]})
    await storage.compact()
    assert (await storage.get("mem-0123456789ab")).tags == ["mended"]  # type: ignore[union-attr]


@pytest.mark.parametrize("seq", ["1e3", "-1", "true", "9" * 30, '"7"'])
@attack("forged-number-of-a-line")
async def test_a_number_that_is_none_does_not_number_what_follows(
    storage: FileStorage, root: Path, clock: FrozenClock, seq: str
) -> None:
    await storage.store(memory_of("before"))
    with storage.folder.journal.open("ab") as file:
        head = f'--- {{"seq": {seq}, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory"}}\n'
        file.write(add_checksum(head.encode()))
    await storage.store(memory_of("after"))
    assert b'"seq": 2,' in storage.folder.journal.read_bytes().splitlines()[-1]
    assert await reopened(root, clock) == ["before", "after"]
