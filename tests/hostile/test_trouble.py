"""A disk that is full, sick or read-only, links and rewrites: a clear error or a clean recovery, nothing lost."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_memory.errors import AgentMemoryError, DiskFullError, ReadOnlyError, StorageError
from agent_memory.journal.format import encode_line
from agent_memory.journal.rejected import rejected_path
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.concurrency.processes import running
from tests.support import FrozenClock, lines_of, memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

OFFLINE = ServiceSettings(embedder="none")


def open_storage(root: Path, clock: FrozenClock) -> FileStorage:
    return FileStorage("bob", root, settings=OFFLINE, clock=clock)


@pytest.fixture
async def storage(root: Path, clock: FrozenClock) -> AsyncIterator[FileStorage]:
    storage = open_storage(root, clock)
    yield storage
    await storage.close()


async def reopened(root: Path, clock: FrozenClock) -> list[str]:
    storage = open_storage(root, clock)
    contents = [memory.content async for memory in storage.iter_all()]
    await storage.close()
    return contents


def fail_at(
    monkeypatch: pytest.MonkeyPatch, function: str, number: int, when: Callable[..., bool] = lambda *_: True
) -> None:
    """Let a function of `os` fail with an error number wherever `when` says so."""
    real = getattr(os, function)

    def failing(*args: Any, **kwargs: Any) -> Any:
        if when(*args):
            raise OSError(number, os.strerror(number))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, function, failing)


# -- no room ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 40, 160])
async def test_a_disk_that_fills_up_within_a_line_leaves_the_file_as_it_was(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    await storage.store(memory_of("before"))
    journal = storage.folder.journal
    before, real, left = journal.read_bytes(), os.write, room

    def filling(descriptor: int, content: bytes) -> int:
        nonlocal left
        if os.fstat(descriptor).st_ino != journal.stat().st_ino:
            return real(descriptor, content)
        if left <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = real(descriptor, bytes(content)[:left])
        left -= written
        return written

    monkeypatch.setattr(os, "write", filling)
    with pytest.raises(DiskFullError) as full:
        await storage.store(memory_of("does not fit " * 20))
    assert full.value.code == "disk_full"
    assert journal.read_bytes() == before
    monkeypatch.undo()
    await storage.store(memory_of("fits again"))
    assert await reopened(root, clock) == ["before", "fits again"]


async def test_a_real_limit_on_the_size_of_files_is_survived(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("before"))
    with running("store_under_file_size_limit", root, 50) as limited:
        refused, stored = limited.finish()
    assert refused["code"] == "disk_full"
    assert refused["untouched"]
    assert "safe" in refused["message"]
    assert await reopened(root, clock) == ["before", "fits"]
    assert stored["id"]


async def test_a_compaction_that_finds_no_room_changes_nothing(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("before"))
    before = storage.folder.journal.read_bytes()
    fail_at(monkeypatch, "write", errno.ENOSPC)
    with pytest.raises(DiskFullError):
        await storage.compact()
    monkeypatch.undo()
    assert storage.folder.journal.read_bytes() == before
    assert list(storage.folder.path.glob(".*.tmp")) == []
    await storage.compact()
    assert await reopened(root, clock) == ["before"]


# -- a sick disk ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("existing", [True, False])
async def test_what_could_not_be_synced_is_neither_acknowledged_nor_there(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, existing: bool
) -> None:
    expected = []
    if existing:
        await storage.store(memory_of("before"))
        expected = ["before"]
    folder = storage.folder.path
    folder.mkdir(parents=True, exist_ok=True)

    def is_journal(descriptor: int) -> bool:
        return os.fstat(descriptor).st_ino != folder.stat().st_ino

    fail_at(monkeypatch, "fsync", errno.EIO, is_journal)
    with pytest.raises(StorageError):
        await storage.store(memory_of("never durable"))
    monkeypatch.undo()
    assert [m.content async for m in storage.iter_all()] == expected
    assert await reopened(root, clock) == expected
    await storage.store(memory_of("after"))
    assert await reopened(root, clock) == [*expected, "after"]


async def test_a_store_is_written_then_synced_once_then_acknowledged(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("the first also makes the files"))
    steps: list[str] = []
    journal = storage.folder.journal.stat().st_ino
    real_write, real_sync = os.write, os.fsync

    def writing(descriptor: int, content: bytes) -> int:
        steps.append("write" if os.fstat(descriptor).st_ino == journal else "write elsewhere")
        return real_write(descriptor, content)

    def syncing(descriptor: int) -> None:
        steps.append("sync" if os.fstat(descriptor).st_ino == journal else "sync elsewhere")
        real_sync(descriptor)

    monkeypatch.setattr(os, "write", writing)
    monkeypatch.setattr(os, "fsync", syncing)
    await storage.store(memory_of("tea"))
    steps.append("acknowledged")
    assert [step for step in steps if step != "write elsewhere"] == ["write", "sync", "acknowledged"]


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE])
async def test_an_unreadable_journal_is_a_storage_error_and_readable_again_later(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    memory_id = await storage.store(memory_of("tea"))
    clean = await storage.get(memory_id)
    storage.folder.journal.touch()
    fail_at(monkeypatch, "pread", number)
    with pytest.raises(StorageError):
        await storage.get(memory_id)
    monkeypatch.undo()
    assert await storage.get(memory_id) == clean


# -- no permission ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
async def test_a_folder_that_may_only_be_read_is_read(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    await storage.store(memory_of("peppermint tea"))
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    fail_at(monkeypatch, "open", number, lambda _path, flags, *_: bool(flags & writing))
    visitor = open_storage(root, clock)
    assert [r.memory.content for r in await visitor.search("peppermint")] == ["peppermint tea"]
    assert (await visitor.health())["status"] == "ok"
    with pytest.raises(ReadOnlyError) as refused:
        await visitor.store(memory_of("coffee"))
    assert refused.value.code == "read_only"
    for attempt in (visitor.delete, visitor.update_access_stats):
        with pytest.raises(ReadOnlyError):
            await attempt((await visitor.list_recent())[0].id)
    await visitor.close()


async def test_a_torn_journal_that_may_only_be_read_shows_its_whole_lines(
    storage: FileStorage, root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("whole"))
    with storage.folder.journal.open("ab") as file:
        file.write(b'--- {"seq": 2')
    before = storage.folder.journal.read_bytes()
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    fail_at(monkeypatch, "open", errno.EROFS, lambda _path, flags, *_: bool(flags & writing))
    assert await reopened(root, clock) == ["whole"]
    assert storage.folder.journal.read_bytes() == before


async def test_a_root_that_is_a_file_is_told_so(tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "file").write_text("x")
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StorageError):
            await open_storage(root, clock).store(memory_of("tea"))


# -- links ------------------------------------------------------------------------------------------------------------


async def test_an_agents_folder_that_leads_out_of_the_root_is_refused(
    root: Path, tmp_path: Path, clock: FrozenClock
) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.mkdir()
    (root / "bob").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError) as refused:
        open_storage(root, clock)
    assert refused.value.code == "outside_root"
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_root_that_is_a_link_is_the_users_own_choice(root: Path, tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    storage = open_storage(root, clock)
    await storage.store(memory_of("tea"))
    await storage.close()
    assert (tmp_path / "elsewhere" / "bob" / "memories.yaml").is_file()


@pytest.mark.parametrize("name", ["memories.yaml", "memories.rejected.yaml", ".lock"])
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


# -- formats, damage, rewriting ---------------------------------------------------------------------------------------


async def test_a_journal_of_a_newer_format_is_read_and_not_written(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("peppermint tea"))
    journal = storage.folder.journal
    first, _, rest = journal.read_bytes().partition(b"\n")
    journal.write_bytes(encode_line({**json.loads(first[4:]), "min_reader": 2, "generation": "later"}) + rest)
    before = journal.read_bytes()
    assert len(await storage.search("peppermint")) == 1
    for attempt in (storage.store(memory_of("coffee")), storage.compact()):
        with pytest.raises(ReadOnlyError) as refused:
            await attempt
        assert refused.value.code == "newer_format"
        assert "upgrade" in refused.value.recovery.lower()
    assert journal.read_bytes() == before


async def test_damaged_lines_are_reported_survive_writes_and_are_set_aside_once(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("first"))
    with storage.folder.journal.open("ab") as file:
        file.write(b"--- {broken\n\x80\x81 not text\n")
    await storage.store(memory_of("last"))
    health = await storage.health()
    assert (health["status"], health["problems"]) == ("damaged", 2)
    assert health["first_problems"][0].startswith("line 3: ")
    assert b"--- {broken\n\x80\x81 not text\n" in storage.folder.journal.read_bytes()
    await storage.compact()
    await storage.compact()
    assert await storage.health() == {"status": "ok"}
    kept = list(yaml.safe_load_all(rejected_path(storage.folder.journal).read_text(encoding="utf-8")))
    assert len(kept) == 2
    assert await reopened(root, clock) == ["first", "last"]


async def test_a_record_that_breaks_the_data_model_is_reported_and_set_aside(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    await storage.store(memory_of("first"))
    bad = {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "memory", "id": "mem-0123456789ab"}
    with storage.folder.journal.open("ab") as file:
        file.write(encode_line({**bad, "data": {"content": ""}}))
        file.write(encode_line({**bad, "seq": 3, "id": "not-an-id", "data": {"content": "text"}}))
    health = await storage.health()
    assert health["problems"] == 2
    assert any("mem-0123456789ab" in problem for problem in health["first_problems"])
    await storage.compact()
    assert await storage.health() == {"status": "ok"}
    assert await reopened(root, clock) == ["first"]


async def test_a_memory_that_a_foreign_patch_broke_is_shown_as_it_was_also_after_a_compaction(
    storage: FileStorage, root: Path, clock: FrozenClock
) -> None:
    memory_id = await storage.store(memory_of("good"))
    broken = {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "patch", "kind": "memory", "id": memory_id}
    with storage.folder.journal.open("ab") as file:
        file.write(encode_line({**broken, "data": {"content": ""}}))
    clock.advance(days=60)
    await storage.compact()
    health = await storage.health()
    assert (health["status"], health["problems"]) == ("damaged", 1)
    assert await reopened(root, clock) == ["good"]
    await storage.update(memory_id, {"tags": ["mended"]})
    assert await storage.health() == {"status": "ok"}
    again = open_storage(root, clock)
    mended = await again.get(memory_id)
    await again.close()
    assert mended is not None
    assert (mended.content, mended.tags) == ("good", ["mended"])


@pytest.mark.parametrize("same_inode", [True, False])
async def test_a_journal_that_an_editor_saved_is_noticed_copied_and_reported(
    storage: FileStorage, root: Path, clock: FrozenClock, same_inode: bool
) -> None:
    for text in ("peppermint tea", "black coffee"):
        await storage.store(memory_of(text))
    await storage.count()  # nothing is left to do behind the stores, so nobody looks while the editor saves
    journal = storage.folder.journal
    edited = journal.read_bytes().replace(b"black coffee", b"white coffee")
    if same_inode:
        journal.write_bytes(edited)
    else:
        journal.with_name("saved").write_bytes(edited)
        journal.with_name("saved").replace(journal)
    assert [m.content async for m in storage.iter_all()] == ["peppermint tea", "white coffee"]
    assert list(await storage.search("black")) == []
    health = await storage.health()
    assert any("rewritten" in problem for problem in health["first_problems"])
    assert [copy.read_bytes() for copy in storage.folder.path.glob("*rewritten*")] == [edited]
    await storage.store(memory_of("milk"))
    assert await reopened(root, clock) == ["peppermint tea", "white coffee", "milk"]


async def test_an_editor_that_dropped_lines_gets_no_number_given_twice(storage: FileStorage) -> None:
    for text in ("one", "two", "three"):
        await storage.store(memory_of(text))
    journal = storage.folder.journal
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]))
    await storage.store(memory_of("four"))
    assert [json.loads(line[4:])["seq"] for line in lines_of(journal)] == [1, 4]


# -- permissions ------------------------------------------------------------------------------------------------------


async def test_all_files_are_0600_and_all_folders_0700_whatever_the_umask(
    storage: FileStorage, root: Path, open_umask: None
) -> None:
    memory_id = await storage.store(memory_of("tea"))
    with storage.folder.journal.open("ab") as file:
        file.write(b"torn")
    await storage.touch([memory_id])
    await storage.compact()
    journal = storage.folder.journal
    journal.write_bytes(journal.read_bytes().replace(b"tea", b"TEA"))
    await storage.count()
    modes = {path.name: path.stat().st_mode & 0o777 for path in storage.folder.path.iterdir()}
    assert len(modes) == 5, sorted(modes)
    assert set(modes.values()) == {0o600}, modes
    assert {folder.stat().st_mode & 0o777 for folder in (root, root / "bob")} == {0o700}


async def test_every_error_says_what_to_do(root: Path, tmp_path: Path, clock: FrozenClock) -> None:
    (tmp_path / "file").write_text("x")
    for attempt in (lambda: open_storage(tmp_path / "file", clock), lambda: FileStorage("../x", root)):
        with pytest.raises(AgentMemoryError) as refused:
            attempt()
        assert set(refused.value.as_dict()) == {"message", "code", "recovery"}
        assert all(refused.value.as_dict().values())
