"""Folders and disks that may only be read, or not even that, and files that belong to somebody else."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ReadOnlyError
from amplifier_module_tool_memory_semantic import mount
from tests.hostile.trouble import fail_at, inside, need_root, open_storage, reopened
from tests.support import coordinator_of, memory_of, raises

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.storage import FileStorage
    from tests.support import FrozenClock


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
    with raises(ReadOnlyError, "read_only"):
        await visitor.store(memory_of("coffee"))
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
    assert len(modes) == 7, sorted(modes)
    assert set(modes.values()) == {0o600}, modes
    assert {folder.stat().st_mode & 0o777 for folder in (root, root / "bob")} == {0o700}


def test_a_disk_that_becomes_read_only_under_a_session_is_read_on(tmp_path: Path) -> None:
    found = inside("read_only_disk", tmp_path / "memory", mounts=True)
    for attempt in ("store", "update", "forget", "compact"):
        assert found[attempt]["code"] == "read_only", attempt
        assert "Read-only file system" in found[attempt]["message"]
    assert found["searched"] == found["visitor"] == ["peppermint tea"]
    assert found["shown"] == ["peppermint tea"], "an edit that has to wait does not hide the scratchpad"
    assert found["health"] == {"status": "ok"}
    assert found["edited"] == ["jasmine tea"]
    assert found["after"] == "done"
    assert found["reopened"] == ["jasmine tea", "fits again"]


def test_an_index_that_may_only_be_read_stops_no_search(tmp_path: Path) -> None:
    found = inside("read_only_index", tmp_path / "memory", mounts=True)
    assert (found["backend"], found["mode"], found["best"]) == ("vector", "hybrid", "fact number 3")
    assert found["embedded"] == 0, "the vectors are read from the cache although nothing can be written beside it"
    assert found["store"]["code"] == found["rollback"]["code"] == "read_only"


@pytest.mark.parametrize(("mode", "search"), [("755", "storage"), ("700", "storage"), ("0", "storage")])
async def test_files_of_another_user_are_named_with_their_owner(
    storage: FileStorage, root: Path, tmp_path: Path, mode: str, search: str
) -> None:
    need_root()
    await storage.store(memory_of("peppermint tea"))
    open_to_others(tmp_path)
    root.chmod(0o755)
    found = inside("as_somebody_else", root, mode)
    for name in ("store", "search", "recent"):
        assert found[name]["code"] == "read_only", name
        assert "belongs to another user (uid 0)" in found[name]["recovery"]
        assert "chown" in found[name]["recovery"]


async def test_a_memory_that_everybody_may_read_is_read_by_others(
    storage: FileStorage, root: Path, tmp_path: Path
) -> None:
    need_root()
    await storage.store(memory_of("peppermint tea"))
    open_to_others(tmp_path)
    root.chmod(0o755)
    storage.folder.path.chmod(0o755)
    storage.folder.journal.chmod(0o644)
    found = inside("read_only_for_me", root)
    assert found["searched"] == ["peppermint tea"]
    assert found["store"]["code"] == "read_only"


async def test_a_memory_that_may_only_be_read_can_be_activated(
    storage: FileStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await storage.store(memory_of("peppermint tea"))
    await storage.close()
    coordinator = coordinator_of()
    leave = await mount(coordinator, {"storage_root": str(root), "embedder": "none"})
    tools = coordinator.get("tools")
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
    fail_at(monkeypatch, "open", errno.EROFS, lambda _path, flags, *_: bool(flags & writing))
    fail_at(monkeypatch, "mkdir", errno.EROFS)
    await coordinator.hooks.emit("prompt:submit", {"prompt": "start as bob"})
    assert (await tools["memory_activate"].execute({"agent_id": "bob"})).success
    found = await tools["memory_search"].execute({"query": "peppermint"})
    assert [result["content"] for result in found.output["results"]] == ["peppermint tea"]
    listed = await tools["memory_list_recent"].execute({"limit": 3})
    assert len(listed.output["memories"]) == 1
    refused = await tools["memory_store"].execute({"content": "coffee", "category": "note"})
    assert refused.error["code"] == "read_only"
    await leave()


def open_to_others(folder: Path) -> None:
    """Let other users through to a folder of this test."""
    for each in (folder, *folder.parents):
        if each.stat().st_uid == os.geteuid() and each != each.parent:
            each.chmod(each.stat().st_mode | 0o055)
