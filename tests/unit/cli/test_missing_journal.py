"""A journal that is missing is an error that says what brings memories back, and not an empty memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.journal.journal import check_all_present
from agent_memory.models import MEMORY
from agent_memory.storage import copy_agent, delete_agent, reset_agent
from tests.house import OTHER, SECRET, House
from tests.support import NOON

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock


@pytest.fixture
async def bobs(root: Path, clock: FrozenClock) -> AsyncIterator[House]:
    """Bob's memory, which is closed afterwards."""
    house = House(root, clock)
    yield house
    await house.service.close()


async def lost(bobs: House, *, is_old: bool = False) -> bytes:
    """Remove the journal of a memory with one record; return the scratchpad of before."""
    await bobs.keep(SECRET)
    await bobs.service.settle()
    await bobs.service.pad.settle()
    await bobs.service.close()
    (bobs.folder / "memories.yaml").unlink()
    if is_old:
        (bobs.folder / "agent.yaml").unlink()
    await bobs.again()
    return (bobs.folder / "scratchpad.yaml").read_bytes()


@pytest.mark.parametrize("is_old", [False, True], ids=["named", "older folder"])
async def test_missing_journal_refuses_everything_and_changes_nothing(bobs: House, is_old: bool) -> None:
    pad = await lost(bobs, is_old=is_old)
    with pytest.raises(StorageError, match='the journal of "bob" is missing') as caught:
        await bobs.keep(OTHER)
    assert "agents reset bob" in caught.value.recovery
    for question in (bobs.service.search("salary"), bobs.service.list_recent(), bobs.service.scratchpad()):
        with pytest.raises(StorageError, match="is missing"):
            await question
    await bobs.service.close()
    assert not (bobs.folder / "memories.yaml").exists()
    assert (bobs.folder / "scratchpad.yaml").read_bytes() == pad


async def test_empty_journal_file_counts_as_missing(bobs: House) -> None:
    await lost(bobs)
    (bobs.folder / "memories.yaml").touch()
    with pytest.raises(StorageError, match=r"generation .*, 1 record"):
        await bobs.keep(OTHER)


async def test_missing_journal_names_the_newest_backup(bobs: House) -> None:
    await bobs.keep(OTHER)
    create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await lost(bobs)
    with pytest.raises(StorageError) as caught:
        await bobs.keep(OTHER)
    restore = f"run agent-memory restore bob --root {bobs.root} (newest backup {NOON:%Y-%m-%d})"
    assert caught.value.recovery.startswith(restore)
    with pytest.raises(StorageError):
        create_backup(folder_of("bob", bobs.root), clock=bobs.clock)


async def test_backup_restores_a_missing_journal(bobs: House) -> None:
    other = await bobs.keep(OTHER)
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await lost(bobs)
    await bobs.service.close()
    restore_backup(made.path, bobs.root, clock=bobs.clock)
    await bobs.again()
    assert (await bobs.service.get(other)).content == OTHER


async def test_reset_keeps_what_is_left_and_starts_again(bobs: House) -> None:
    secret = await bobs.keep(OTHER)
    await bobs.purge(secret)
    await lost(bobs)
    await bobs.service.close()
    moved = reset_agent(folder_of("bob", bobs.root), bobs.clock())
    assert SECRET in (moved / "scratchpad.yaml").read_text()
    assert (bobs.folder / "purged.yaml").exists()
    await bobs.again()
    assert await bobs.keep("The crane is repaired.")
    check_all_present(bobs.folder)


async def test_fresh_copied_and_deleted_agents_miss_nothing(bobs: House) -> None:
    assert await bobs.service.list_recent() == []
    await bobs.keep(OTHER)
    create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await bobs.service.close()
    check_all_present(copy_agent(folder_of("bob", bobs.root), "eve", bobs.root).path)
    delete_agent(folder_of("bob", bobs.root))
    await bobs.again()
    assert await bobs.service.list_recent() == []
    assert await bobs.keep(OTHER)


async def test_emptied_memory_misses_nothing(bobs: House) -> None:
    only = await bobs.keep(OTHER)
    await bobs.service.forget(only)
    await bobs.service.writer.compact()
    await bobs.again()
    assert await bobs.service.list_recent() == []
    assert (bobs.folder / MEMORY.journal).exists()
