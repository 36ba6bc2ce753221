"""The thirteen steps of a deletion, of what was forgotten and of what was purged; each is a test of its own name.

A person says: this has to go. What was forgotten is found nowhere from then on, and its text ends with the grace time.
What was purged is in no byte of any file, and nothing brings it back.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import zipfile
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

import pytest

from agent_memory.care.account import list_held_records
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.care.privacy.purge import Purging
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import AgentMemoryError, UnknownIdError
from agent_memory.journal import keep_lost
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import undo
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memories import FileStorage, VectorStorage
from agent_memory.memory import NOBODY, Caller, MemoryService
from agent_memory.models import Observation
from agent_memory.settings import ServiceSettings
from agent_memory.storage import copy_agent, rename_agent
from tests.engines import made_index, options
from tests.house import OTHER, SECRET
from tests.support import read_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock

How = Literal["forget", "purge"]
MINUTES = f"Minutes of May. {SECRET} The crane is repaired."
QUESTION = "What is the salary of Ann?"
DOCUMENT = (
    "# Payroll\nAnn Meyer earns seventy-two thousand euros at Initech.\n\nThe crane in Kiel is repaired each May."
)


class Bob:
    """An agent who was told a secret; `memory` is its id, `other` that of something else."""

    def __init__(self, root: Path, clock: FrozenClock, embedder: HashEmbedder | None = None) -> None:
        self.root, self.clock, self.folder, self.embedder = root, clock, root / "bob", embedder
        self.settings = ServiceSettings(embedder="none", storage_root=str(root))
        self.service = self.opened()

    def opened(self) -> MemoryService:
        storage = FileStorage("bob", settings=self.settings, clock=self.clock, embedder=self.embedder)
        return MemoryService(storage, self.settings, clock=self.clock)

    async def told(self) -> Bob:
        self.memory = (await self.service.store({"content": SECRET, "tags": ["payroll"]})).memory.id
        self.other = (await self.service.store(OTHER)).memory.id
        await self.service.settle()
        return self

    async def again(self) -> MemoryService:
        await self.service.close()
        self.service = self.opened()
        return self.service

    async def delete(self, how: How) -> Any:
        if how == "forget":
            return await self.service.forget(self.memory)
        purging = Purging(self.service, clock=self.clock)
        receipt = await purging.run(await purging.plan([self.memory]))
        assert receipt.is_clean
        return receipt

    async def knows(self, service: MemoryService | None = None) -> list[str]:
        """Return by which ways the secret is found."""
        service, ways = service or self.service, []
        found = await service.search(QUESTION, include_superseded=True, explain=True)
        ways += ["search"] if any(hit.memory.id == self.memory for hit in found.results) else []
        ways += ["list"] if any(each.content == SECRET for each in await service.searcher.list_all()) else []
        ways += ["scratchpad"] if self.memory in await service.scratchpad() else []
        ways += ["recent"] if any(each.id == self.memory for each in await service.list_recent(10)) else []
        try:
            await service.get(self.memory)
            ways.append("id")
        except UnknownIdError:
            pass
        return ways

    def vectors(self) -> int:
        """Return how many vectors are kept."""
        with contextlib.closing(sqlite3.connect(self.folder / "embeddings.sqlite3")) as database:
            return int(database.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def holding(self, words: str = "seventy-two") -> list[str]:
        """Return the files with these words, backups unpacked, by a search of the test's own."""
        found = []
        for path, file_bytes in read_files(self.root):
            content = file_bytes
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    content = b"".join(map(archive.read, archive.namelist()))
            found += [path.name] if words.encode() in content else []
        return found


@pytest.fixture
async def bob(root: Path, clock: FrozenClock) -> AsyncIterator[Bob]:
    bob = await Bob(root, clock, HashEmbedder()).told()
    yield bob
    await bob.service.close()


each_way = pytest.mark.parametrize("how", ["forget", "purge"])


@each_way
async def test_1_find(bob: Bob, how: How) -> None:
    """It is found before, by every way, and by none afterwards; the rest is found as before."""
    assert await bob.knows() == ["search", "list", "scratchpad", "recent", "id"]
    await bob.delete(how)
    assert await bob.knows() == []
    assert [each.id for each in await bob.service.searcher.list_all()] == [bob.other]


async def test_2_forget(bob: Bob) -> None:
    """The answer says until when the text can be brought back, and until then it can."""
    outcome = await bob.delete("forget")
    assert outcome.kept_until == bob.clock.now + timedelta(days=30)
    assert (await bob.service.history.restore(bob.memory)).memories[0].content == SECRET


async def test_2_purge(bob: Bob) -> None:
    """Nothing can be brought back, and the receipt says what was not reached."""
    await bob.delete("forget")
    receipt = await bob.delete("purge")
    assert bob.holding() == []
    assert await bob.service.history.forgotten() == []
    assert "swap" in " ".join(receipt.beyond)
    with pytest.raises(UnknownIdError, match="was purged"):
        await bob.service.history.restore(bob.memory)
    assert await Purging(bob.service).verify([SECRET]) == []


@each_way
async def test_3_derived(bob: Bob, how: How) -> None:
    """What was made of a document alone goes with it: items, names, pages, summaries."""
    knowledge = Knowledge("bob", bob.settings, clock=bob.clock)
    source = (await Ingest(knowledge).resource(DOCUMENT)).record.id
    await runner_of(knowledge, bob.service, at_once=True).run()
    assert [each for each in await bob.service.searcher.list_all() if "Ann Meyer" in each.content]
    if how == "forget":
        await undo(knowledge, bob.service, [source], NOBODY)
    else:
        purging = Purging(bob.service, clock=bob.clock)
        assert (await purging.run(await purging.plan([source]))).is_clean
        assert bob.holding("Ann Meyer") == bob.holding("Initech") == []
    await runner_of(knowledge, bob.service, at_once=True).run()
    assert [each.content for each in await bob.service.searcher.list_all() if each.is_item] == []
    assert [each async for each in knowledge.entities.iter_all()] == []
    assert await knowledge.resources.get(source) is None
    await knowledge.close()


@each_way
async def test_4_caches(bob: Bob, how: How) -> None:
    """No short list and no segment brings it up; after a purge no vector of it is left."""
    await bob.service.storage.vectors_of([bob.memory, bob.other])
    assert bob.vectors() == 2
    before = {path.name: path.read_bytes() for path in bob.folder.glob("*shortlist*")}
    await bob.delete(how)
    await bob.again()
    for name, content in before.items():
        (bob.folder / name).write_bytes(content)
    assert await bob.knows() == []
    await bob.again()
    if how == "purge":
        assert (bob.vectors(), bob.holding()) == (1, [])


@each_way
async def test_5_other_sessions(bob: Bob, how: How) -> None:
    """A session that has it in memory, and showed it in its scratchpad, knows it no more by its next call."""
    second = bob.opened()
    shown = (await second.scratchpad()).entries
    assert bob.memory in {each.id for each in shown}
    assert await second.pad.still_true(shown)
    await bob.delete(how)
    assert not await second.pad.still_true(shown)
    assert await bob.knows(second) == []
    await second.close()
    assert not (how == "purge" and bob.holding())


@each_way
async def test_6_restart(bob: Bob, how: How) -> None:
    await bob.delete(how)
    await bob.again()
    assert await bob.knows() == []


@each_way
async def test_7_compaction(bob: Bob, how: How) -> None:
    """When the grace time is over, by itself or by order, no text of it is left in any file."""
    await bob.delete(how)
    await bob.service.writer.compact(timedelta(0))
    await bob.again()
    assert await bob.knows() == []
    assert bob.holding() == []


async def test_7_the_grace_time_ends_by_itself(bob: Bob) -> None:
    await bob.delete("forget")
    bob.clock.advance(days=29)
    await bob.service.writer.compact()
    assert [each.id for each, _ in await bob.service.history.forgotten()] == [bob.memory]
    bob.clock.advance(days=2)
    await bob.service.store("Something that is said a month later.")
    await bob.service.writer.compact()
    assert await bob.service.history.forgotten() == []
    await bob.service.settle()
    assert bob.holding() == []


async def test_7_an_expiry_ends_by_itself(bob: Bob) -> None:
    """It is found until then, not from then on, and its text ends with the grace time."""
    await bob.service.update(bob.memory, {"expires_at": bob.clock.now + timedelta(days=2)})
    bob.clock.advance(days=1)
    assert "search" in await bob.knows()
    bob.clock.advance(days=2)
    assert await bob.knows() == ["list", "id"]  # for whoever looks after the memory, as long as the grace time lasts
    bob.clock.advance(days=31)
    await bob.service.writer.compact()
    await bob.service.settle()
    assert bob.holding() == []


@each_way
async def test_8_rebuild(bob: Bob, how: How) -> None:
    """What is derived is thrown away and made anew: it is not in it."""
    await bob.delete(how)
    await bob.service.close()
    shutil.rmtree(bob.folder / "derived", ignore_errors=True)
    for path in [
        *bob.folder.glob("*shortlist*"),
        *bob.folder.glob("embeddings.sqlite3*"),
        bob.folder / "scratchpad.yaml",
    ]:
        path.unlink(missing_ok=True)
    await bob.again()
    assert await bob.knows() == []
    bob.service.pad.schedule()
    await bob.service.pad.settle()
    assert "seventy-two" not in (bob.folder / "scratchpad.yaml").read_text()


async def test_9_restore(bob: Bob) -> None:
    """A backup that lies elsewhere, put back: what was purged stays out, within other texts, too."""
    minutes = (await bob.service.store(MINUTES)).memory.id
    made = create_backup(bob.service.folder, clock=bob.clock)
    elsewhere = bob.root.parent / made.path.name
    elsewhere.write_bytes(made.path.read_bytes())
    await bob.delete("purge")
    session = bob.opened()
    assert await bob.knows(session) == []
    await bob.service.close()
    restore_backup(elsewhere, bob.root, clock=bob.clock)
    assert await bob.knows(session) == []
    await session.close()
    await bob.again()
    assert await bob.knows() == []
    assert (await bob.service.get(minutes)).content.startswith("Minutes of May. \u2588")
    assert bob.holding() == []


async def test_9_restore_after_forget(bob: Bob) -> None:
    """A person who puts a backup back wants that state; a single memory comes back by `restore` alone."""
    await bob.delete("forget")
    made = create_backup(bob.service.folder, clock=bob.clock)
    await bob.service.close()
    restore_backup(made.path, bob.root, clock=bob.clock)
    await bob.again()
    assert await bob.knows() == []
    assert (await bob.service.history.restore(bob.memory)).memories[0].id == bob.memory


async def test_9_lost(bob: Bob) -> None:
    """A session that had it in memory while an older file was put in place keeps no copy of it as lost."""
    minutes = {"content": MINUTES, "timestamp": "2026-01-01T00:00:00+00:00"}
    secret = {**minutes, "content": SECRET}
    await bob.delete("purge")
    keep_lost(bob.folder / "memories.yaml", {bob.memory: secret, "mem-0123456789ab": minutes})
    (lost,) = bob.folder.glob("memories.lost-*.yaml")
    assert "The crane is repaired" in lost.read_text()
    assert bob.holding() == []


@each_way
async def test_10_import(bob: Bob, how: How) -> None:
    """An old export does not bring it back, under another id neither, nor its words within another text."""
    exported = await bob.service.get(bob.memory)
    renamed = exported.model_copy(update={"id": "mem-0123456789ab"})
    minutes = exported.model_copy(update={"id": "mem-ba9876543210", "content": MINUTES})
    await bob.delete(how)
    outcomes: list[str] = []
    await bob.service.writer.import_memories(
        [exported, renamed, minutes], lambda each: outcomes.append(each.outcome), Caller("s"), trusted=how == "purge"
    )
    assert outcomes == ["forgotten", "forgotten", "stored"]
    assert await bob.knows() == []
    if how == "purge":
        assert bob.holding() == []


@each_way
@pytest.mark.parametrize("words", [SECRET, SECRET.upper(), "\uff21nn's  salary is seventy-two thousand a year."])
async def test_11_recapture(bob: Bob, how: How, words: str) -> None:
    """Capture does not keep it again, however it is written; who stores it on purpose may."""
    await bob.delete(how)
    if how == "purge":
        await bob.service.writer.compact(timedelta(0))
    seen = Observation(content=words, category="note", confidence=0.9)
    outcome = await bob.service.capture([seen])
    assert (outcome.stored, dict(outcome.skipped)) == ([], {"forgotten": 1})
    assert (await bob.service.store(SECRET)).memory.id != bob.memory


@each_way
async def test_12_migration(bob: Bob, how: How) -> None:
    """Neither another backend, nor a copy of the agent, nor one of another name knows it."""
    await bob.delete(how)
    await bob.service.close()
    embedder = HashEmbedder()
    made_index(bob.root, embedder.identity)
    storage = VectorStorage("bob", bob.root, clock=bob.clock, embedder=embedder, options=options())
    await storage.prepare(None)
    assert await storage.caught_up(30)
    assert await bob.knows(MemoryService(storage, bob.settings, clock=bob.clock)) == []
    await storage.close()
    copied = copy_agent(bob.service.folder, "eve", bob.root)
    renamed = rename_agent(copied, "kim", bob.root)
    assert not (how == "purge" and bob.holding())
    service = MemoryService(FileStorage("kim", settings=bob.settings, clock=bob.clock), bob.settings, clock=bob.clock)
    assert await bob.knows(service) == []
    seen = await service.capture([Observation(content=SECRET, category="note", confidence=0.9)])
    assert seen.stored == []
    await service.close()
    assert renamed.path.name == "kim"


async def test_13_backup(bob: Bob) -> None:
    """Our backups are made anew without it and stay whole; one that is made later has nothing of it."""
    old = create_backup(bob.service.folder, clock=bob.clock)
    assert old.path.name in bob.holding()
    await bob.delete("purge")
    bob.clock.advance(hours=1)
    new = create_backup(bob.service.folder, clock=bob.clock)
    assert bob.holding() == []
    await bob.service.close()
    for made in (old, new):
        restore_backup(made.path, bob.root, clock=bob.clock)
        await bob.again()
        assert await bob.knows() == []
        assert (await bob.service.get(bob.other)).content == OTHER
        await bob.service.close()


@each_way
async def test_an_account_for_people_tells_what_is_left(bob: Bob, how: How) -> None:
    """What was forgotten is told as such as long as it is in the files; of what was purged there is nothing to tell."""
    await bob.delete(how)
    held = {each.id: each.is_gone for each in list_held_records(bob.service.folder)}
    assert held == {bob.other: False, **({bob.memory: True} if how == "forget" else {})}


async def test_nothing_is_deleted_by_a_failure_on_the_way(bob: Bob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A purge that fails before it was noted has forgotten the memory, which can be brought back."""
    purging = Purging(bob.service, clock=bob.clock)
    plan = await purging.plan([bob.memory])

    def full(*_: object, **__: object) -> Any:
        raise AgentMemoryError("No room.")

    monkeypatch.setattr(purging.list, "begin", full)
    with pytest.raises(AgentMemoryError):
        await purging.run(plan)
    assert await bob.knows() == []
    assert (await bob.service.history.restore(bob.memory)).memories[0].content == SECRET
