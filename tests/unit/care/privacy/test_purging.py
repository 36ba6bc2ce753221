"""What is purged is gone from every byte of every file, and never comes back."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
import zipfile
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.care.archive import Archive
from agent_memory.care.backups.backup_reader import verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.care.privacy.erasure import ErasureResult, TextHider, erase_other_files
from agent_memory.care.privacy.purge import Purging
from agent_memory.care.privacy.text_search import search
from agent_memory.errors import UnknownIdError, UnsupportedError
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.journal import PurgeList, keep_lost
from agent_memory.memories import FileStorage
from agent_memory.memory import Caller, MemoryService
from agent_memory.models import Observation
from tests.house import OTHER, SECRET, House

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_purged_memory_is_in_no_file_any_more(bobs: House) -> None:
    secret, other = await bobs.keep(SECRET), await bobs.keep(OTHER)
    await bobs.service.pad.settle()
    assert bobs.holding()
    receipt = await bobs.purge(secret)
    assert receipt.is_clean
    assert bobs.holding() == []
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [other]
    assert "bob/memories.yaml" not in receipt.files
    assert "memories.yaml" in receipt.files


async def test_what_else_was_forgotten_can_still_be_brought_back(bobs: House) -> None:
    secret, other = await bobs.keep(SECRET), await bobs.keep(OTHER)
    await bobs.service.forget(other)
    await bobs.purge(secret)
    assert [memory.id for memory, _ in await bobs.service.history.forgotten()] == [other]
    assert (await bobs.service.history.restore(other)).memories[0].content == OTHER


async def test_every_wording_of_a_memory_goes_and_so_do_the_older_versions(bobs: House) -> None:
    old = await bobs.keep(SECRET)
    new = await bobs.keep("Ann's salary is eighty thousand a year by now.", supersedes=old)
    await bobs.service.update(new, {"content": "Ann's salary is ninety thousand a year by now."})
    receipt = await bobs.purge(new)
    assert receipt.is_clean
    assert set(receipt.records["ids"]) == {old, new}
    assert [bobs.holding(text) for text in (SECRET, "is eighty thousand a year by now", "is ninety thousand a")] == [
        []
    ] * 3


async def test_a_forgotten_and_an_archived_memory_can_be_purged(bobs: House) -> None:
    forgotten, archived = await bobs.keep(SECRET), await bobs.keep("Ann's bonus is four thousand a year.")
    await bobs.service.forget(forgotten)
    archive = Archive(bobs.service, clock=bobs.clock)
    await archive.add([archived])
    assert (await bobs.purge(forgotten, archived)).is_clean
    assert bobs.holding() == bobs.holding("Ann's bonus is four thousand a year.") == []
    assert await archive.everything() == []
    await archive.close()


async def test_the_same_words_within_another_memory_are_made_unreadable(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    other = await bobs.keep(f"Minutes. {SECRET} The crane is repaired.")
    assert (await bobs.purge(secret)).is_clean
    content = (await bobs.service.get(other)).content
    assert bobs.holding() == []
    assert content == f"Minutes. {chr(0x2588) * len(SECRET)} The crane is repaired."


async def test_finish_purge_with_displaced_scratchpad_changes_no_memory(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    other = await bobs.keep(f"{SECRET} So said Kate.")
    await bobs.service.pad.settle()
    rendered = (bobs.folder / "scratchpad.yaml").read_bytes()
    await bobs.purge(secret)
    content = (await bobs.service.get(other)).content
    await bobs.service.close()
    displaced = bobs.folder / ".scratchpad.yaml.0123abcd.old"  # as of a process killed between two renames
    displaced.write_bytes(rendered)
    purged = bobs.folder / "purged.yaml"
    purged.write_bytes(b"".join(purged.read_bytes().splitlines(keepends=True)[:-1]))  # and before its receipt
    await bobs.again()
    await Purging(bobs.service, clock=bobs.clock).finish()
    assert (await bobs.service.get(other)).content == content
    assert bobs.holding() == []


async def test_another_record_that_says_just_the_same_goes_with_it(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    await bobs.service.forget(secret)
    again = await bobs.keep(SECRET.upper())
    purging = Purging(bobs.service, clock=bobs.clock)
    plan = await purging.plan([secret])
    assert plan.same == (again,)
    assert (await purging.run(plan)).is_clean
    assert bobs.holding() == []


async def test_backups_are_made_anew_without_it_and_stay_whole(bobs: House) -> None:
    secret, other = await bobs.keep(SECRET), await bobs.keep(OTHER)
    made = create_backup(bobs.service.folder, clock=bobs.clock)
    untouched = made.path.stat().st_ino
    receipt = await bobs.purge(secret)
    assert receipt.is_clean
    assert f"_backups/{made.path.name}" in receipt.files
    assert made.path.stat().st_ino != untouched
    assert verify_backup(made.path).problems == ()
    await bobs.service.close()
    restore_backup(made.path, bobs.root, clock=bobs.clock)
    await bobs.again()
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [other]


async def test_record_that_only_a_backup_holds_is_purged_from_it(bobs: House) -> None:
    def read_backup() -> bytes:
        with zipfile.ZipFile(made.path) as archive:
            return b"".join(archive.read(name) for name in archive.namelist())

    secret = await bobs.keep(SECRET)
    made = create_backup(bobs.service.folder, clock=bobs.clock)
    await bobs.service.forget(secret)
    await bobs.service.writer.compact(timedelta(0))
    assert SECRET.encode() in read_backup()
    assert (await bobs.purge(secret)).is_clean
    assert SECRET.encode() not in read_backup()
    with pytest.raises(UnknownIdError):
        await bobs.purge("mem-ffffffffffff")


async def test_a_copy_of_an_older_backup_does_not_bring_it_back(bobs: House, tmp_path: Path) -> None:
    secret, other = await bobs.keep(SECRET), await bobs.keep(OTHER)
    made = create_backup(bobs.service.folder, clock=bobs.clock)
    carried = tmp_path / made.path.name
    carried.write_bytes(made.path.read_bytes())
    await bobs.purge(secret)
    await bobs.service.close()
    restore_backup(carried, bobs.root, clock=bobs.clock)
    await bobs.again()
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [other]
    assert bobs.holding() == []


async def test_an_import_and_a_capture_do_not_bring_it_back_but_a_person_may_store_it_anew(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    exported = await bobs.service.get(secret)
    await bobs.purge(secret)
    outcomes: list[str] = []
    other_id = exported.model_copy(update={"id": "mem-0123456789ab"})
    await bobs.service.writer.import_memories(
        [exported, other_id], lambda each: outcomes.append(each.outcome), Caller("s"), trusted=True
    )
    assert outcomes == ["forgotten", "forgotten"]
    seen = await bobs.service.capture([Observation(content=SECRET, category="note", confidence=0.9)])
    assert seen.stored == []
    assert bobs.holding() == []
    assert await bobs.keep(SECRET) != secret


async def test_a_session_that_had_it_in_memory_keeps_no_copy_of_it_as_lost(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    raw = {"content": SECRET, "timestamp": "2026-01-01T00:00:00+00:00"}
    await bobs.purge(secret)
    assert keep_lost(bobs.folder / "memories.yaml", {secret: raw}) is None
    assert keep_lost(bobs.folder / "memories.yaml", {"mem-0123456789ab": {"content": SECRET.lower()}}) is None
    assert bobs.holding() == bobs.holding(SECRET.lower()) == []
    assert keep_lost(bobs.folder / "memories.yaml", {"mem-0123456789ab": {"content": OTHER}}) is not None


async def test_other_sessions_know_it_no_more(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    second = MemoryService(
        FileStorage("bob", settings=bobs.settings, clock=bobs.clock), bobs.settings, clock=bobs.clock
    )
    assert await second.get(secret)
    await bobs.purge(secret)
    with pytest.raises(UnknownIdError):
        await second.get(secret)
    assert list((await second.search("what is the salary of Ann")).results) == []
    await second.close()
    assert bobs.holding() == []


async def test_what_was_kept_aside_loses_it_and_keeps_the_rest(bobs: House) -> None:
    secret, other = await bobs.keep(SECRET), await bobs.keep(OTHER)
    await bobs.service.settle()
    copy = bobs.folder / "memories.yaml.before-repair-20260301T120000"
    copy.write_bytes((bobs.folder / "memories.yaml").read_bytes())
    broken = bobs.folder / "scratchpad.broken-20260301T120000.yaml"
    broken.write_text(f"- note: |\n    {SECRET[:20]}\n    {SECRET[21:]}\n- note: {OTHER}\n", "utf-8")
    rejected = bobs.folder / "memories.rejected.yaml"
    rejected.write_text(
        "--- " + json.dumps({"at": "x", "reason": "torn", "line": f'{{"content": "{SECRET}'}) + "\n", "utf-8"
    )
    assert (await bobs.purge(secret)).is_clean
    assert bobs.holding() == []
    assert OTHER in broken.read_text("utf-8")
    assert other in copy.read_text("utf-8")
    assert "torn" in rejected.read_text("utf-8")


async def test_what_a_killed_process_left_the_next_one_finishes(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    purging = Purging(bobs.service, clock=bobs.clock)
    plan = await purging.plan([secret])
    await bobs.service.forget(secret)
    PurgeList(bobs.folder).begin(plan.ids, plan.texts, "2026-01-01T00:00:00+00:00")
    assert bobs.holding()  # it was killed here
    await bobs.again()
    assert await bobs.service.history.forgotten() == []
    assert await bobs.service.history.history(secret) == []
    with pytest.raises(UnknownIdError, match="purged"):
        await bobs.service.history.restore(secret)
    (receipt,) = await Purging(bobs.service, clock=bobs.clock).finish()
    assert receipt.is_clean
    assert bobs.holding() == []
    assert await Purging(bobs.service, clock=bobs.clock).finish() == []


async def test_a_line_of_a_newer_version_that_names_it_stops_the_purge(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    await bobs.service.settle()
    line = f'--- {{"seq": 900, "at": "2026-01-01T00:00:00+00:00", "op": "weigh", "kind": "memory", "id": "{secret}"}}\n'
    from agent_memory.journal.format import add_checksum

    with (bobs.folder / "memories.yaml").open("ab") as journal:
        journal.write(add_checksum(line.encode()))
    with pytest.raises(UnsupportedError, match="newer version"):
        await bobs.purge(secret)
    assert len(PurgeList(bobs.folder).list_unfinished()) == 1


async def test_an_id_that_no_file_knows_is_refused(bobs: House) -> None:
    await bobs.keep(SECRET)
    with pytest.raises(UnknownIdError):
        await Purging(bobs.service, clock=bobs.clock).plan(["mem-0123456789ab"])
    assert not (bobs.folder / "purged.yaml").exists()


async def test_the_list_and_its_key_say_nothing_and_only_the_owner_reads_them(bobs: House) -> None:
    receipt = await bobs.purge(await bobs.keep(SECRET))
    for name in ("purged.yaml", "purge.key"):
        assert (bobs.folder / name).stat().st_mode & 0o777 == 0o600
        assert b"salary" not in (bobs.folder / name).read_bytes()
    assert len(receipt.records["fingerprints"]) == 1


async def test_verify_finds_what_came_back_by_hand(bobs: House) -> None:
    secret = await bobs.keep(SECRET)
    await bobs.service.settle()
    before = (bobs.folder / "memories.yaml").read_bytes()
    await bobs.purge(secret)
    purging = Purging(bobs.service, clock=bobs.clock)
    assert await purging.verify([SECRET]) == []
    (bobs.folder / "memories.bak.yaml").write_bytes(before)
    assert [each.path.name for each in await purging.verify()] == ["memories.bak.yaml"]
    assert [each.path.name for each in await purging.verify([SECRET])] == ["memories.bak.yaml"]


@pytest.mark.parametrize(
    "written", [SECRET, json.dumps("Änne's salary — “72” thousand"), SECRET.replace(" ", "\n    ")]
)
def test_words_are_found_however_a_file_writes_them(tmp_path: Path, written: str) -> None:
    folder = tmp_path / "bob"
    folder.mkdir()
    (folder / "page.md").write_text(f"x {written} y", "utf-8")
    text = SECRET if "Ann's" in written else "Änne's salary — “72” thousand"
    assert [each.count for each in search(AgentFolder(folder), [text])] == [1]
    assert search(AgentFolder(folder), ["Something else is written here."]) == []


async def test_a_backup_of_another_agent_does_not_bring_it_back_either(bobs: House) -> None:
    secret, other = await bobs.keep(SECRET), await bobs.keep(OTHER)
    copy = bobs.root / "carl"
    await bobs.service.settle()
    copy.mkdir()
    (copy / "memories.yaml").write_bytes((bobs.folder / "memories.yaml").read_bytes())
    made = create_backup(folder_of("carl", bobs.root), clock=bobs.clock)
    await bobs.purge(secret)
    await bobs.service.close()
    restore_backup(made.path, bobs.root, agent="bob", clock=bobs.clock)
    await bobs.again()
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [other]


def test_searching_leaves_the_locks_of_this_process_alone(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite3"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode = WAL")
        own.execute("CREATE TABLE vectors (hash BLOB)")
        own.execute("BEGIN IMMEDIATE")
        own.execute("INSERT INTO vectors VALUES (x'00')")
        assert search(AgentFolder(tmp_path), [SECRET]) == []
        erase_other_files(AgentFolder(tmp_path), TextHider([SECRET], ()), ErasureResult())
        tried = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        other = subprocess.run([sys.executable, "-c", tried, str(path)], capture_output=True, text=True, check=False)
        assert "database is locked" in other.stderr


def test_free_pages_of_the_vectors_are_searched_too(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "embeddings.sqlite3")) as database, database:
        database.execute("PRAGMA secure_delete = OFF")
        database.execute("CREATE TABLE notes (text TEXT)")
        database.execute("INSERT INTO notes VALUES (?)", (SECRET,))
        database.commit()
        database.execute("DELETE FROM notes")
    assert [each.path.name for each in search(AgentFolder(tmp_path), [SECRET])] == ["embeddings.sqlite3"]


async def test_a_text_that_is_too_short_to_be_searched_for_is_told(bobs: House) -> None:
    short, other = await bobs.keep("Tea at 4"), await bobs.keep("Tea at 4 in the kitchen.")
    receipt = await bobs.purge(short)
    assert (receipt.searched, receipt.unsearched, receipt.is_clean) == (0, 1, True)
    assert [memory.id for memory in await bobs.service.searcher.list_all()] == [other]
    assert (await bobs.purge(other)).searched == 1


async def test_a_text_of_signs_alone_is_purged_and_others_stay(bobs: House) -> None:
    signs, other = await bobs.keep("'" * 20), await bobs.keep(OTHER)
    receipt = await bobs.purge(signs)
    assert (receipt.is_clean, receipt.unsearched) == (True, 1)
    assert [memory.content for memory in await bobs.service.searcher.list_all()] == [OTHER]
    assert (await bobs.service.get(other)).content == OTHER
