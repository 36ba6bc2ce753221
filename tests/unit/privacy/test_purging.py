"""What is purged is gone from every byte of every file, and never comes back."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import UnknownIdError, UnsupportedError
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.journal import PurgeList, keep_lost
from agent_memory.lifecycle.archive import Archive
from agent_memory.lifecycle.backups import create_backup, restore_backup, verify_backup
from agent_memory.models import Observation
from agent_memory.privacy import Purging
from agent_memory.privacy.erasing import Erased, erase_beside
from agent_memory.privacy.hiding import Hiding
from agent_memory.privacy.searching import search
from agent_memory.service import Caller, MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock

SECRET = "Ann's salary is seventy-two thousand a year."
OTHER = "Kate owns the ledger of the harbour."


class House:
    """Bob's memory; `service` is opened anew by `again`."""

    def __init__(self, root: Path, clock: FrozenClock) -> None:
        self.root, self.clock, self.folder = root, clock, root / "bob"
        self.settings = ServiceSettings(embedder="none", storage_root=str(root))
        self.service = self._opened()

    def _opened(self) -> MemoryService:
        return MemoryService(
            FileStorage("bob", settings=self.settings, clock=self.clock), self.settings, clock=self.clock
        )

    async def again(self) -> MemoryService:
        await self.service.close()
        self.service = self._opened()
        return self.service

    async def keep(self, content: str, **fields: Any) -> str:
        return (await self.service.store({"content": content, **fields})).memory.id

    async def purge(self, *ids: str) -> Any:
        purging = Purging(self.service, clock=self.clock)
        return await purging.run(await purging.plan(ids))

    def holding(self, text: str = SECRET) -> list[str]:
        """Return the files under the root in which a text stands, by a search of the test's own."""
        words = text.split()[1:-1]
        needle = " ".join(words).encode()
        return [
            str(path.relative_to(self.root))
            for path in self.root.rglob("*")
            if path.is_file() and needle in path.read_bytes()
        ]


@pytest.fixture
async def house(root: Path, clock: FrozenClock) -> AsyncIterator[House]:
    house = House(root, clock)
    yield house
    await house.service.close()


async def test_a_purged_memory_is_in_no_file_any_more(house: House) -> None:
    secret, other = await house.keep(SECRET), await house.keep(OTHER)
    await house.service.pad.settle()
    assert house.holding()
    receipt = await house.purge(secret)
    assert receipt.is_clean
    assert house.holding() == []
    assert [memory.id for memory in await house.service.admin.everything()] == [other]
    assert "bob/memories.yaml" not in receipt.files
    assert "memories.yaml" in receipt.files


async def test_what_else_was_forgotten_can_still_be_brought_back(house: House) -> None:
    secret, other = await house.keep(SECRET), await house.keep(OTHER)
    await house.service.forget(other)
    await house.purge(secret)
    assert [memory.id for memory, _ in await house.service.past.forgotten()] == [other]
    assert (await house.service.past.restore(other)).memories[0].content == OTHER


async def test_every_wording_of_a_memory_goes_and_so_do_the_older_versions(house: House) -> None:
    old = await house.keep(SECRET)
    new = await house.keep("Ann's salary is eighty thousand a year by now.", supersedes=old)
    await house.service.update(new, {"content": "Ann's salary is ninety thousand a year by now."})
    receipt = await house.purge(new)
    assert receipt.is_clean
    assert set(receipt.records["ids"]) == {old, new}
    assert [house.holding(text) for text in (SECRET, "is eighty thousand a year by now", "is ninety thousand a")] == [
        []
    ] * 3


async def test_a_forgotten_and_an_archived_memory_can_be_purged(house: House) -> None:
    forgotten, archived = await house.keep(SECRET), await house.keep("Ann's bonus is four thousand a year.")
    await house.service.forget(forgotten)
    archive = Archive(house.service, clock=house.clock)
    await archive.add([archived])
    assert (await house.purge(forgotten, archived)).is_clean
    assert house.holding() == house.holding("Ann's bonus is four thousand a year.") == []
    assert await archive.everything() == []
    await archive.close()


async def test_the_same_words_within_another_memory_are_made_unreadable(house: House) -> None:
    secret = await house.keep(SECRET)
    other = await house.keep(f"Minutes. {SECRET} The crane is repaired.")
    assert (await house.purge(secret)).is_clean
    content = (await house.service.get(other)).content
    assert house.holding() == []
    assert content == f"Minutes. {chr(0x2588) * len(SECRET)} The crane is repaired."


async def test_another_record_that_says_just_the_same_goes_with_it(house: House) -> None:
    secret = await house.keep(SECRET)
    await house.service.forget(secret)
    again = await house.keep(SECRET.upper())
    purging = Purging(house.service, clock=house.clock)
    plan = await purging.plan([secret])
    assert plan.same == (again,)
    assert (await purging.run(plan)).is_clean
    assert house.holding() == []


async def test_backups_are_made_anew_without_it_and_stay_whole(house: House) -> None:
    secret, other = await house.keep(SECRET), await house.keep(OTHER)
    made = create_backup(house.service.admin.folder, clock=house.clock)
    untouched = made.path.stat().st_ino
    receipt = await house.purge(secret)
    assert receipt.is_clean
    assert f"_backups/{made.path.name}" in receipt.files
    assert made.path.stat().st_ino != untouched
    assert verify_backup(made.path).problems == ()
    await house.service.close()
    restore_backup(made.path, house.root, clock=house.clock)
    await house.again()
    assert [memory.id for memory in await house.service.admin.everything()] == [other]


async def test_a_copy_of_an_older_backup_does_not_bring_it_back(house: House, tmp_path: Path) -> None:
    secret, other = await house.keep(SECRET), await house.keep(OTHER)
    made = create_backup(house.service.admin.folder, clock=house.clock)
    carried = tmp_path / made.path.name
    carried.write_bytes(made.path.read_bytes())
    await house.purge(secret)
    await house.service.close()
    restore_backup(carried, house.root, clock=house.clock)
    await house.again()
    assert [memory.id for memory in await house.service.admin.everything()] == [other]
    assert house.holding() == []


async def test_an_import_and_a_capture_do_not_bring_it_back_but_a_person_may_store_it_anew(house: House) -> None:
    secret = await house.keep(SECRET)
    exported = await house.service.get(secret)
    await house.purge(secret)
    outcomes: list[str] = []
    other_id = exported.model_copy(update={"id": "mem-0123456789ab"})
    await house.service.admin.import_memories(
        [exported, other_id], lambda each: outcomes.append(each.outcome), Caller("s"), trusted=True
    )
    assert outcomes == ["forgotten", "forgotten"]
    seen = await house.service.capture([Observation(content=SECRET, category="note", confidence=0.9)])
    assert seen.stored == []
    assert house.holding() == []
    assert await house.keep(SECRET) != secret


async def test_a_session_that_had_it_in_memory_keeps_no_copy_of_it_as_lost(house: House) -> None:
    secret = await house.keep(SECRET)
    raw = {"content": SECRET, "timestamp": "2026-01-01T00:00:00+00:00"}
    await house.purge(secret)
    assert keep_lost(house.folder / "memories.yaml", {secret: raw}) is None
    assert keep_lost(house.folder / "memories.yaml", {"mem-0123456789ab": {"content": SECRET.lower()}}) is None
    assert house.holding() == house.holding(SECRET.lower()) == []
    assert keep_lost(house.folder / "memories.yaml", {"mem-0123456789ab": {"content": OTHER}}) is not None


async def test_other_sessions_know_it_no_more(house: House) -> None:
    secret = await house.keep(SECRET)
    second = MemoryService(
        FileStorage("bob", settings=house.settings, clock=house.clock), house.settings, clock=house.clock
    )
    assert await second.get(secret)
    await house.purge(secret)
    with pytest.raises(UnknownIdError):
        await second.get(secret)
    assert list((await second.search("what is the salary of Ann")).results) == []
    await second.close()
    assert house.holding() == []


async def test_what_was_kept_aside_loses_it_and_keeps_the_rest(house: House) -> None:
    secret, other = await house.keep(SECRET), await house.keep(OTHER)
    await house.service.settle()
    copy = house.folder / "memories.yaml.before-repair-20260301T120000"
    copy.write_bytes((house.folder / "memories.yaml").read_bytes())
    broken = house.folder / "scratchpad.broken-20260301T120000.yaml"
    broken.write_text(f"- note: |\n    {SECRET[:20]}\n    {SECRET[21:]}\n- note: {OTHER}\n", "utf-8")
    rejected = house.folder / "memories.rejected.yaml"
    rejected.write_text(
        "--- " + json.dumps({"at": "x", "reason": "torn", "line": f'{{"content": "{SECRET}'}) + "\n", "utf-8"
    )
    assert (await house.purge(secret)).is_clean
    assert house.holding() == []
    assert OTHER in broken.read_text("utf-8")
    assert other in copy.read_text("utf-8")
    assert "torn" in rejected.read_text("utf-8")


async def test_what_a_killed_process_left_the_next_one_finishes(house: House) -> None:
    secret = await house.keep(SECRET)
    purging = Purging(house.service, clock=house.clock)
    plan = await purging.plan([secret])
    await house.service.forget(secret)
    PurgeList(house.folder).begin(plan.ids, plan.texts, "2026-01-01T00:00:00+00:00")
    assert house.holding()  # it was killed here
    await house.again()
    assert await house.service.past.forgotten() == []
    assert await house.service.past.history(secret) == []
    with pytest.raises(UnknownIdError, match="purged"):
        await house.service.past.restore(secret)
    (receipt,) = await Purging(house.service, clock=house.clock).finish()
    assert receipt.is_clean
    assert house.holding() == []
    assert await Purging(house.service, clock=house.clock).finish() == []


async def test_a_line_of_a_newer_version_that_names_it_stops_the_purge(house: House) -> None:
    secret = await house.keep(SECRET)
    await house.service.settle()
    line = f'--- {{"seq": 900, "at": "2026-01-01T00:00:00+00:00", "op": "weigh", "kind": "memory", "id": "{secret}"}}\n'
    from agent_memory.journal.format import sealed

    with (house.folder / "memories.yaml").open("ab") as journal:
        journal.write(sealed(line.encode()))
    with pytest.raises(UnsupportedError, match="newer version"):
        await house.purge(secret)
    assert len(PurgeList(house.folder).unfinished()) == 1


async def test_an_id_that_no_file_knows_is_refused(house: House) -> None:
    await house.keep(SECRET)
    with pytest.raises(UnknownIdError):
        await Purging(house.service, clock=house.clock).plan(["mem-0123456789ab"])
    assert not (house.folder / "purged.yaml").exists()


async def test_the_list_and_its_key_say_nothing_and_only_the_owner_reads_them(house: House) -> None:
    receipt = await house.purge(await house.keep(SECRET))
    for name in ("purged.yaml", "purge.key"):
        assert (house.folder / name).stat().st_mode & 0o777 == 0o600
        assert b"salary" not in (house.folder / name).read_bytes()
    assert len(receipt.records["fingerprints"]) == 1


async def test_verify_finds_what_came_back_by_hand(house: House) -> None:
    secret = await house.keep(SECRET)
    await house.service.settle()
    before = (house.folder / "memories.yaml").read_bytes()
    await house.purge(secret)
    purging = Purging(house.service, clock=house.clock)
    assert await purging.verify([SECRET]) == []
    (house.folder / "memories.bak.yaml").write_bytes(before)
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


async def test_a_backup_of_another_agent_does_not_bring_it_back_either(house: House) -> None:
    secret, other = await house.keep(SECRET), await house.keep(OTHER)
    copy = house.root / "carl"
    await house.service.settle()
    copy.mkdir()
    (copy / "memories.yaml").write_bytes((house.folder / "memories.yaml").read_bytes())
    made = create_backup(folder_of("carl", house.root), clock=house.clock)
    await house.purge(secret)
    await house.service.close()
    restore_backup(made.path, house.root, agent="bob", clock=house.clock)
    await house.again()
    assert [memory.id for memory in await house.service.admin.everything()] == [other]


def test_searching_leaves_the_locks_of_this_process_alone(tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite3"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode = WAL")
        own.execute("CREATE TABLE vectors (hash BLOB)")
        own.execute("BEGIN IMMEDIATE")
        own.execute("INSERT INTO vectors VALUES (x'00')")
        assert search(AgentFolder(tmp_path), [SECRET]) == []
        erase_beside(AgentFolder(tmp_path), Hiding([SECRET], ()), Erased())
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


async def test_a_text_that_is_too_short_to_be_searched_for_is_told(house: House) -> None:
    short, other = await house.keep("Tea at 4"), await house.keep("Tea at 4 in the kitchen.")
    receipt = await house.purge(short)
    assert (receipt.searched, receipt.unsearched, receipt.is_clean) == (0, 1, True)
    assert [memory.id for memory in await house.service.admin.everything()] == [other]
    assert (await house.purge(other)).searched == 1
