"""A journal from before a purge that is put back brings nothing back that was purged."""

from __future__ import annotations

import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.care.checks.examination import examine
from agent_memory.care.privacy.purge import Purging
from agent_memory.errors import StorageError
from agent_memory.files.layout import folder_of
from agent_memory.files.names import PURGE_KEY, PURGED
from agent_memory.journal import Journal, PurgeList
from agent_memory.journal.reader import is_put_back
from tests.house import OTHER, SECRET, House

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MINUTES = f"Minutes. {SECRET} The crane is repaired."


async def purged_and_put_back(bobs: House, replace: Callable[[Path, Path], Any] = shutil.copyfile) -> str:
    """Purge `SECRET`, put the journal of before back, and return the ID of the memory that has the words, too."""
    secret, minutes = await bobs.keep(SECRET), await bobs.keep(MINUTES)
    await bobs.service.settle()
    await bobs.service.close()
    shutil.copyfile(bobs.folder / "memories.yaml", bobs.root / "earlier")
    await bobs.again()
    assert (await bobs.purge(secret)).is_clean
    await bobs.service.close()
    replace(bobs.root / "earlier", bobs.folder / "memories.yaml")
    (bobs.root / "earlier").unlink(missing_ok=True)
    await bobs.again()
    return minutes


async def shown(bobs: House) -> str:
    """Return all that the entry points of a service show."""
    service = bobs.service
    pad = await service.scratchpad()
    found = await service.search("salary of Ann")
    everything = await service.searcher.list_all()
    listed = await service.list_recent(50)
    forgotten = await service.history.forgotten()
    return repr([pad, found, everything, listed, forgotten])


@pytest.mark.parametrize("replace", [shutil.copyfile, shutil.move], ids=["in place", "renamed"])
async def test_earlier_journal_put_back_shows_nothing_purged(bobs: House, replace: Callable[[Path, Path], Any]) -> None:
    minutes = await purged_and_put_back(bobs, replace)
    assert "seventy-two" not in await shown(bobs)
    assert (await bobs.service.get(minutes)).content.startswith("Minutes. █")


async def test_earlier_journal_put_back_is_clean_after_compaction(bobs: House) -> None:
    await purged_and_put_back(bobs)
    assert bobs.holding() == ["bob/memories.yaml"]
    await bobs.service.writer.compact()
    assert bobs.holding() == []
    assert "seventy-two" not in await shown(bobs)


async def test_earlier_journal_put_back_is_clean_after_store(bobs: House) -> None:
    await purged_and_put_back(bobs)
    await bobs.keep(OTHER)
    await bobs.service.settle()
    await bobs.service.close()
    assert bobs.holding() == []


async def test_open_session_with_journal_put_back_shows_nothing_purged(bobs: House) -> None:
    secret, minutes = await bobs.keep(SECRET), await bobs.keep(MINUTES)
    await bobs.service.settle()
    earlier = (bobs.folder / "memories.yaml").read_bytes()
    assert (await bobs.purge(secret)).is_clean
    other = await bobs.keep(OTHER)
    (bobs.folder / "memories.yaml").write_bytes(earlier)
    assert "seventy-two" not in await shown(bobs)
    assert (await bobs.service.get(minutes)).content.startswith("Minutes. █")
    await bobs.service.writer.compact()
    await bobs.service.close()
    assert bobs.holding() == []
    assert [path for path in bobs.folder.glob("memories.lost-*") if other in path.read_text()]


async def test_journal_unpacked_by_hand_shows_nothing_purged(bobs: House) -> None:
    await purged_and_put_back(bobs)
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    moved = made.path.rename(bobs.root.parent / "kept.zip")  # no purge reaches it there
    await bobs.service.writer.compact()
    await bobs.service.close()
    with zipfile.ZipFile(moved) as archive:
        (bobs.folder / "memories.yaml").write_bytes(archive.read("memories.yaml"))
    await bobs.again()
    assert "seventy-two" not in await shown(bobs)
    await bobs.service.writer.compact()
    assert bobs.holding() == []


async def test_text_stored_again_after_a_purge_stays_everywhere(bobs: House) -> None:
    await purged_and_put_back(bobs)
    again = await bobs.keep(SECRET)
    await bobs.service.settle()
    await bobs.again()
    assert (await bobs.service.get(again)).content == SECRET
    await bobs.service.writer.compact()
    await bobs.again()
    assert (await bobs.service.get(again)).content == SECRET


async def test_text_stored_again_with_a_clock_set_back_stays(bobs: House) -> None:
    await purged_and_put_back(bobs)
    bobs.clock.advance(days=-3)
    again = await bobs.keep(SECRET)
    await bobs.service.settle()
    await bobs.again()
    assert (await bobs.service.get(again)).content == SECRET


async def test_text_stored_again_comes_back_from_a_later_backup(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    assert (await bobs.purge(secret)).is_clean
    bobs.clock.advance(hours=1)
    again = await bobs.keep(SECRET)
    await bobs.service.settle()
    made = create_backup(folder_of("bob", bobs.root), clock=bobs.clock)
    await bobs.service.forget(again)
    await bobs.service.close()
    restore_backup(made.path, bobs.root, clock=bobs.clock)
    await bobs.again()
    assert (await bobs.service.get(again)).content == SECRET


async def test_doctor_names_a_journal_that_was_put_back(bobs: House) -> None:
    await purged_and_put_back(bobs)
    await bobs.service.close()
    codes = {finding.code for finding in examine(bobs.root, now=bobs.clock()).agents[0].findings}
    assert "journal_returned" in codes


@pytest.mark.parametrize("name", [PURGED, PURGE_KEY])
async def test_purge_list_that_is_damaged_refuses_to_open(bobs: House, name: str) -> None:
    secret = await bobs.keep(SECRET)
    await bobs.keep(OTHER)
    assert (await bobs.purge(secret)).is_clean
    await bobs.service.close()
    content = (bobs.folder / name).read_bytes()
    (bobs.folder / name).write_bytes(content[:-12] + b"_" + content[-11:])
    await bobs.again()
    with pytest.raises(StorageError) as caught:
        await bobs.keep("The crane is repaired.")
    assert caught.value.code in {"purge_list", "purge_key"}
    with pytest.raises(StorageError):
        await bobs.service.search("ledger")
    (bobs.folder / name).write_bytes(content)
    assert await bobs.keep("The crane is repaired.")


async def test_older_folder_with_purges_is_read_through_once(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    other = await bobs.keep(OTHER)
    assert (await bobs.purge(secret)).is_clean
    await bobs.service.close()
    (bobs.folder / "agent.yaml").unlink()
    await bobs.again()
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [other]
    await bobs.service.close()
    journal = Journal(bobs.folder / "memories.yaml", {"memory"})
    journal.poll()
    assert not is_put_back(journal.reader)


async def test_purge_verifies_a_returned_journal(bobs: House) -> None:
    await purged_and_put_back(bobs)
    purging = Purging(bobs.service, clock=bobs.clock)
    assert [each.path.name for each in await purging.verify()] == ["memories.yaml"]
    await bobs.service.writer.compact()
    assert await purging.verify() == []
    assert PurgeList(bobs.folder).list_unfinished() == []
