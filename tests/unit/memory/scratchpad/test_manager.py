"""`ScratchpadManager` on a real storage: load, add, promote, save, read back."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError, UnknownIdError, ValidationError
from agent_memory.scratchpad import MARKER, ScratchpadManager
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON, FrozenClock, memory_of, raises

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def manager(root: Path, clock: FrozenClock) -> AsyncIterator[ScratchpadManager]:
    storage = FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)
    yield ScratchpadManager("bob", max_size=3, storage=storage, clock=clock)
    await storage.close()


async def test_an_empty_scratchpad_loads_and_formats_to_nothing(manager: ScratchpadManager) -> None:
    assert len(await manager.load()) == 0
    assert await manager.format_for_context() == ""
    assert not manager.pad_file.look().saves


async def test_a_new_memory_is_stored_and_shown_and_the_oldest_leaves(
    manager: ScratchpadManager, clock: FrozenClock
) -> None:
    first = memory_of("0")
    assert await manager.add_memory(first) is None
    for number in (1, 2):
        clock.advance(hours=1)
        assert await manager.add_memory(memory_of(str(number), timestamp=clock())) is None
    clock.advance(hours=1)
    assert await manager.add_memory(memory_of("3", timestamp=clock())) == first.id
    assert [entry.content for entry in (await manager.load()).entries] == ["3", "2", "1"]
    assert await manager.storage.count() == 4


async def test_adding_a_known_memory_brings_it_up(manager: ScratchpadManager, clock: FrozenClock) -> None:
    memories = [memory_of(str(number), timestamp=NOON + timedelta(minutes=number)) for number in range(5)]
    for memory in memories:
        await manager.storage.store(memory)
    clock.advance(hours=1)
    assert await manager.add_memory(memories[0]) == memories[2].id
    assert await manager.storage.count() == 5


async def test_promoting_tells_whether_it_was_there(manager: ScratchpadManager, clock: FrozenClock) -> None:
    memories = [memory_of(str(number), timestamp=NOON + timedelta(minutes=number)) for number in range(4)]
    for memory in memories:
        await manager.storage.store(memory)
    clock.advance(hours=1)
    assert await manager.promote(memories[0].id) is True
    assert await manager.promote(memories[0].id) is False
    with pytest.raises(UnknownIdError):
        await manager.promote("mem-000000000000")


async def test_superseded_and_expired_memories_are_not_shown(manager: ScratchpadManager, clock: FrozenClock) -> None:
    old = await manager.storage.store(memory_of("old"))
    await manager.storage.store(memory_of("new", supersedes=old))
    await manager.storage.store(memory_of("milk", expires_at=NOON + timedelta(hours=1)))
    clock.advance(hours=2)
    assert [entry.content for entry in (await manager.load()).entries] == ["new"]


async def test_the_file_is_private_rendered_whole_and_shows_no_edit(
    manager: ScratchpadManager, root: Path, open_umask: None
) -> None:
    await manager.add_memory(memory_of("tea", tags=["hot"]))
    await manager.save(await manager.load())
    path = root / "bob" / "scratchpad.yaml"
    assert path.stat().st_mode & 0o777 == 0o600
    assert "content: tea" in path.read_text()
    assert not manager.pad_file.look().saves
    assert sorted(entry.name for entry in path.parent.glob("*scratchpad*")) == ["scratchpad.yaml"]


async def test_saving_the_same_again_does_not_touch_the_file(manager: ScratchpadManager, root: Path) -> None:
    await manager.add_memory(memory_of("tea"))
    await manager.save(await manager.load())
    before = (root / "bob" / "scratchpad.yaml").stat()
    await manager.save(await manager.load())
    after = (root / "bob" / "scratchpad.yaml").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_saving_does_not_overwrite_what_a_person_saved(manager: ScratchpadManager, root: Path) -> None:
    await manager.add_memory(memory_of("tea"))
    await manager.save(await manager.load())
    path = root / "bob" / "scratchpad.yaml"
    edited = path.read_text().replace("# rendered", "- content: milk\n# rendered")
    path.write_text(edited)
    with raises(StorageError, "edited", match="not applied"):
        await manager.save(await manager.load())
    assert path.read_text() == edited


def test_broken_files_are_kept_under_other_names_even_in_one_second(manager: ScratchpadManager, root: Path) -> None:
    path, kept = root / "bob" / "scratchpad.yaml", set()
    path.parent.mkdir(parents=True)
    for text in ("{ one", "{ two"):
        path.write_text(text)
        save = manager.pad_file.take_out()
        assert save.problem is not None
        kept.add(manager.pad_file.keep_aside(save.content))
        assert not path.exists()
    assert {path.with_name(name).read_text() for name in kept} == {"{ one", "{ two"}


async def test_a_file_that_cannot_be_read_is_a_storage_error(manager: ScratchpadManager, root: Path) -> None:
    (root / "bob" / "scratchpad.yaml").mkdir(parents=True)
    with pytest.raises(StorageError):
        manager.pad_file.look()


async def test_the_block_for_the_model_keeps_the_budget(manager: ScratchpadManager) -> None:
    await manager.add_memory(memory_of("tea"))
    assert (await manager.format_for_context()).startswith(f"{MARKER} of bob]")
    assert await manager.format_for_context(token_budget=5) == ""


async def test_it_opens_a_storage_of_its_own_when_given_none(root: Path) -> None:
    manager = ScratchpadManager("bob", storage_root=root)
    assert len(await manager.load()) == 0
    assert not root.exists()
    await manager.storage.close()
    with pytest.raises(ValidationError):
        ScratchpadManager("../bob", storage_root=root)


@pytest.mark.parametrize("max_size", [0, -1, 101, 200, 2.5, True, "5"])
def test_a_size_out_of_range_is_refused(root: Path, max_size: Any) -> None:
    with pytest.raises(ValidationError, match="from 1 to 100"):
        ScratchpadManager("bob", max_size, storage_root=root)
