"""A document has versions: what it no longer says is hidden, what it still says stays as it is."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from agent_memory.knowledge.intake.document_index import COPY_OF
from agent_memory.knowledge.intake.drafts import ReceivedDocument
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.withdrawal import find_ingested, undo, undo_version
from agent_memory.knowledge.passages.replaced_items import PROPOSED
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.search_source import add_knowledge
from agent_memory.memory import NOBODY, open_service
from agent_memory.memory.views import describe_said_day, view_brief_memory
from agent_memory.models import SearchFilters
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.knowledge.intake.ingest import FileIngested
    from agent_memory.memory import Caller
    from agent_memory.models import Memory

FERRY = "# Ferry\n\n## Times\n\nThe ferry to Bergen leaves at {time}.\n\n## Bar\n\nThe bar opens at noon.\n"
BAR = "Ferry \u203a Bar\n\nThe bar opens at noon."


def at(time: str) -> str:
    return f"Ferry \u203a Times\n\nThe ferry to Bergen leaves at {time}."


class Library:
    """An agent that is given files of one folder."""

    def __init__(self, folder: Path) -> None:
        settings = ServiceSettings(storage_root=str(folder / "root"), embedder="none")
        self.folder, self.service, self.knowledge = folder, open_service("bob", settings), Knowledge("bob", settings)
        self.ingest = Ingest(self.knowledge, self.service.report)

    async def give(
        self, text: str, name: str = "ferry.md", *, caller: Caller = NOBODY, group: str = ""
    ) -> FileIngested:
        """Write a file and ingest it."""
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        done = await self.ingest.file(file, caller=caller, group=group)
        await runner_of(self.knowledge, self.service, config=ITEMS_ONLY).run()
        return done

    async def shown(self) -> dict[str, Memory]:
        """Return the current items by their text."""
        every = [memory.id for memory in await self.service.searcher.list_all()]
        return {memory.content: memory for memory in (await self.service.storage.valid_among(every)).values()}

    async def found(self, query: str) -> list[str]:
        """Return the texts that a search finds."""
        answer = await self.service.search(query, 10, SearchFilters(include_items=True))
        return [result.memory.content for result in answer.results]

    async def titles(self) -> list[str]:
        """Return the titles of the current resources."""
        return sorted(record.title for record in await self.knowledge.resources.valid())


@pytest.fixture
async def library(tmp_path: Path) -> AsyncIterator[Library]:
    opened = Library(tmp_path)
    yield opened
    await opened.knowledge.close()
    await opened.service.close()


async def test_new_content_of_a_file_is_a_version(library: Library) -> None:
    first = await library.give(FERRY.format(time="9:00"))
    before = (await library.shown())[BAR]
    done = await library.give(FERRY.format(time="10:30"))
    assert (done.replaced, done.new) == (first.resources[0], 1)
    shown = await library.shown()
    assert shown.keys() == {at("10:30"), BAR}
    assert (shown[BAR].id, shown[BAR].timestamp, shown[BAR].observed_at) == (
        before.id,
        before.timestamp,
        before.observed_at,
    )
    assert await library.titles() == ["ferry.md"]
    assert not any("9:00" in text for text in await library.found("when does the ferry to Bergen leave"))


async def test_deleted_text_is_not_found(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    await library.give("# Ferry\n\n## Bar\n\nThe bar opens at noon.\n")
    assert (await library.shown()).keys() == {BAR}


async def test_versions_given_at_once_end_with_the_last(library: Library) -> None:
    for time in ("9:00", "10:30", "9:00", "11:15"):
        (library.folder / "ferry.md").write_text(FERRY.format(time=time))
        await library.ingest.file(library.folder / "ferry.md")
    await runner_of(library.knowledge, library.service, config=ITEMS_ONLY).run()
    assert (await library.shown()).keys() == {at("11:15"), BAR}


async def test_text_that_comes_back_is_shown_again(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    first = (await library.shown())[at("9:00")].id
    await library.give(FERRY.format(time="10:30"))
    await library.give(FERRY.format(time="9:00"))
    shown = await library.shown()
    assert shown.keys() == {at("9:00"), BAR}
    assert shown[at("9:00")].id == first


async def test_undo_of_a_version_brings_back_the_one_before(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    done = await library.give(FERRY.format(time="10:30"))
    await undo(library.knowledge, library.service, done.resources, NOBODY)
    assert (await library.shown()).keys() == {at("9:00"), BAR}
    assert await library.titles() == ["ferry.md"]
    records = await find_ingested(library.knowledge, "ferry.md", str((library.folder / "ferry.md").resolve()))
    await undo(library.knowledge, library.service, [record.id for record in records], NOBODY)
    assert await library.shown() == {}


async def test_undo_version_twice_changes_nothing(library: Library) -> None:
    text = "".join(f"# Part {part}\n\nIt weighs {{weight}} kg {part}.\n\n" for part in range(4))
    await library.give(text.format(weight=1), "parts.md")
    before = await library.shown()
    done = await library.give(text.format(weight=2), "parts.md")
    assert await undo_version(library.knowledge, library.service, done.resources[0], NOBODY) == ""
    assert (await library.shown()).keys() == before.keys()
    assert "taken back since" in await undo_version(library.knowledge, library.service, done.resources[0], NOBODY)
    assert (await library.shown()).keys() == before.keys()


async def test_undo_of_middle_version_keeps_newest_current(library: Library) -> None:
    done = [await library.give(FERRY.format(time=time)) for time in ("9:00", "10:30", "11:15")]
    ids = [each.resources[0] for each in done]
    await undo(library.knowledge, library.service, [ids[1]], NOBODY)
    assert (await library.shown()).keys() == {at("11:15"), BAR}
    assert [record.id for record in await library.knowledge.resources.valid()] == [ids[2]]
    await undo(library.knowledge, library.service, [ids[2]], NOBODY)
    assert at("9:00") in await library.shown()
    assert [record.id for record in await library.knowledge.resources.valid()] == [ids[0]]


async def test_front_matter_alone_changes_no_passage(library: Library) -> None:
    await library.give(f"---\nupdated: 2026-01-01\n---\n{FERRY.format(time='9:00')}")
    before = await library.shown()
    await library.give(f"---\nupdated: 2026-02-01\n---\n{FERRY.format(time='9:00')}")
    after = await library.shown()
    assert {text: memory.id for text, memory in after.items()} == {text: memory.id for text, memory in before.items()}
    assert await library.titles() == ["ferry.md"]


async def test_front_matter_id_names_a_document_anywhere(library: Library) -> None:
    await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='9:00')}", "a/ferry.md")
    (library.folder / "a" / "ferry.md").unlink()
    await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='10:30')}", "b/times.md")
    assert (await library.shown()).keys() == {at("10:30"), BAR}
    assert await library.titles() == ["times.md"]
    await library.give("# Other\n\nA new file of the old name.\n", "a/ferry.md")
    assert len(await library.shown()) == 3


async def test_front_matter_id_of_an_existing_file_makes_two_documents(library: Library) -> None:
    first = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='9:00')}", "a/ferry.md")
    other = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='10:30')}", "b/download.md")
    assert (other.maybe_version_of, other.replaced) == (first.resources[0], "")
    assert (await library.shown()).keys() == {at("9:00"), at("10:30"), BAR}
    newer = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='11:15')}", "b/download.md")
    assert newer.replaced == other.resources[0]
    again = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='9:00')}", "a/ferry.md")
    assert (again.resources, again.new, again.maybe_version_of) == (first.resources, 0, "")
    assert (await library.shown()).keys() == {at("9:00"), at("11:15"), BAR}


async def test_copy_with_a_front_matter_id_stays_a_copy(library: Library) -> None:
    text = f"---\nid: ferry\n---\n{FERRY.format(time='9:00')}"
    first = await library.give(text, "a/ferry.md")
    copy = await library.give(text, "b/ferry.md")
    again = await library.give(text, "a/ferry.md")
    assert (copy.copy_of, again.resources, again.new) == (first.resources[0], first.resources, 0)
    assert await library.titles() == ["ferry.md", "ferry.md"]


async def test_file_whose_id_moved_elsewhere_is_two_documents(library: Library) -> None:
    first = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='9:00')}", "a/ferry.md")
    (library.folder / "a" / "ferry.md").write_text("---\nid: boat\n---\n# Boat\n\nIt is blue.\n")
    moved = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='10:30')}", "b/ferry.md")
    assert moved.replaced == first.resources[0]
    await library.give("---\nid: boat\n---\n# Boat\n\nIt is blue.\n", "a/ferry.md")
    assert (await library.shown()).keys() == {at("10:30"), BAR, "Boat\n\nIt is blue."}


async def test_file_replaces_no_document_without_a_path(library: Library) -> None:
    document = ReceivedDocument(FERRY.format(time="9:00"), "ferry.md", metadata={"document_id": "ferry"})
    first = await library.ingest.resource(document)
    done = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='10:30')}", "ferry.md")
    assert (done.maybe_version_of, done.replaced) == (first.record.id, "")
    assert {at("9:00"), at("10:30")} <= (await library.shown()).keys()


async def test_two_documents_of_one_missing_id_are_not_guessed(library: Library) -> None:
    for folder, time in (("a", "9:00"), ("b", "10:30")):
        await library.give(f"---\nid: ferry\n---\n{FERRY.format(time=time)}", f"{folder}/ferry.md")
    for folder in "ab":
        (library.folder / folder / "ferry.md").unlink()
    done = await library.give(f"---\nid: ferry\n---\n{FERRY.format(time='11:15')}", "c/ferry.md")
    assert not done.replaced
    assert done.maybe_version_of
    assert {at("9:00"), at("10:30"), at("11:15")} <= (await library.shown()).keys()


async def test_files_of_one_name_are_two_documents(library: Library) -> None:
    await library.give("# A\n\nThe mast is of wood.\n", "a/README.md")
    await library.give("# B\n\nThe mast is of steel.\n", "b/README.md")
    assert len(await library.shown()) == 2


async def test_copy_is_listed_and_is_not_a_version(library: Library) -> None:
    first = await library.give(FERRY.format(time="9:00"), "a/ferry.md")
    copy = await library.give(FERRY.format(time="9:00"), "b/ferry.md")
    assert copy.copy_of == first.resources[0]
    assert len(await library.shown()) == 2
    records = await library.knowledge.resources.valid()
    assert sorted(str(record.metadata.get(COPY_OF, "")) for record in records) == ["", first.resources[0]]
    await library.give(FERRY.format(time="10:30"), "a/ferry.md")
    assert (await library.shown()).keys() == {at("9:00"), at("10:30"), BAR}, "the copy still says 9:00"
    await library.give(FERRY.format(time="10:30"), "b/ferry.md")
    assert (await library.shown()).keys() == {at("10:30"), BAR}


async def test_moved_file_stays_the_same_document(library: Library) -> None:
    first = await library.give(FERRY.format(time="9:00"), "a/ferry.md")
    (library.folder / "a" / "ferry.md").unlink()
    moved = await library.give(FERRY.format(time="9:00"), "b/times.md")
    assert (moved.resources, moved.new, moved.copy_of) == (first.resources, 0, "")
    await library.give(FERRY.format(time="10:30"), "b/times.md")
    assert (await library.shown()).keys() == {at("10:30"), BAR}
    (library.folder / "b" / "times.md").unlink()
    again = await library.give(FERRY.format(time="10:30"), "c/times.md")
    assert (again.new, again.copy_of) == (0, "")


async def test_text_without_a_path_is_never_a_version(library: Library) -> None:
    for time in ("9:00", "10:30"):
        await library.ingest.resource(ReceivedDocument(FERRY.format(time=time), "ferry.md"))
    await library.give(FERRY.format(time="9:00"))
    await library.give(FERRY.format(time="11:15"))
    assert {at("9:00"), at("10:30"), at("11:15")} <= (await library.shown()).keys()


@pytest.mark.parametrize("change", [{"pinned": True}, {"content": "The ferry leaves at 9:00 sharp."}])
async def test_what_a_person_touched_stays_and_is_marked(library: Library, change: dict[str, object]) -> None:
    await library.give(FERRY.format(time="9:00"))
    own = (await library.shown())[at("9:00")].id
    await library.service.update(own, change)
    await library.give(FERRY.format(time="10:30"))
    kept = {memory.id: memory for memory in (await library.shown()).values()}[own]
    assert PROPOSED in kept.metadata


async def test_forgotten_passage_stays_forgotten_in_the_next_version(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    await library.service.forget((await library.shown())[BAR].id)
    await library.give(FERRY.format(time="10:30"))
    assert (await library.shown()).keys() == {at("10:30")}


async def test_forgotten_passage_does_not_come_back_in_another_document(library: Library) -> None:
    await library.give("# Barn\n\nThe goats are fed at six.\n")
    await library.service.forget((await library.shown())["Barn\n\nThe goats are fed at six."].id)
    await library.give("# Barn\n\nThe barn is red.\n\nThe goats are fed at six.\n", "other.md")
    assert (await library.shown()).keys() == {"Barn\n\nThe barn is red."}


async def test_groups_and_projects_have_their_own_documents(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"), group="acme:ada")
    await library.give(FERRY.format(time="10:30"), group="acme:ben")
    await library.give(FERRY.format(time="11:15"), caller=replace(NOBODY, project="ferry"))
    assert {at("9:00"), at("10:30"), at("11:15")} <= (await library.shown()).keys()


async def test_document_of_an_earlier_version_gets_its_path(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    [old] = await library.knowledge.resources.valid()
    await library.knowledge.resources.update(old.id, {"metadata": {}})  # as earlier versions stored it
    library.ingest = Ingest(library.knowledge, library.service.report)
    assert (await library.give(FERRY.format(time="9:00"))).resources == [old.id]
    assert (await library.give(FERRY.format(time="10:30"))).replaced == old.id
    assert (await library.shown()).keys() == {at("10:30"), BAR}


async def test_document_of_an_earlier_version_is_named_and_kept(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    [old] = await library.knowledge.resources.valid()
    await library.knowledge.resources.update(old.id, {"metadata": {}})  # as earlier versions stored it
    library.ingest = Ingest(library.knowledge, library.service.report)
    done = await library.give(FERRY.format(time="10:30"))
    assert (done.maybe_version_of, done.replaced) == (old.id, "")
    assert (await library.shown()).keys() == {at("9:00"), at("10:30"), BAR}
    await undo(library.knowledge, library.service, [old.id], NOBODY)
    assert (await library.shown()).keys() == {at("10:30"), BAR}


async def test_file_of_another_text_resembles_no_earlier_document(library: Library) -> None:
    await library.give(FERRY.format(time="9:00"))
    [old] = await library.knowledge.resources.valid()
    await library.knowledge.resources.update(old.id, {"metadata": {}})  # as earlier versions stored it
    library.ingest = Ingest(library.knowledge, library.service.report)
    done = await library.give("# Boat\n\nAnother text of that name.\n")
    assert (done.replaced, done.maybe_version_of) == ("", "")
    assert len(await library.shown()) == 3


async def test_date_of_a_document_is_that_of_its_front_matter_or_file(library: Library) -> None:
    await library.give(f"---\ndate: 2024-05-06\ntags: [sea]\n---\n{FERRY.format(time='9:00')}")
    item = (await library.shown())[BAR]
    assert (item.observed_at, item.tags) == (datetime(2024, 5, 6, tzinfo=UTC), ["sea"])
    assert str(item.metadata["path"]).endswith("/ferry.md")
    file = library.folder / "plain.md"
    file.write_text("The mast is of wood.")
    os.utime(file, (86_400, 86_400))
    await library.ingest.file(file)
    await runner_of(library.knowledge, library.service, config=ITEMS_ONLY).run()
    assert (await library.shown())["The mast is of wood."].observed_at == datetime(1970, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "text", "day"),
    [
        ("notes.md", "# Meeting notes 2026-01-16: Weekly sync\n\n## Minutes\n\nI leave on Friday.", "2026-01-16 (Fri)"),
        ("notes.md", "# Notes\n\n## 2026-01-16\n\nI leave on Friday.\n\n## 2026-01-23\n\nOk.", "2026-01-16 (Fri)"),
        ("Retro 2026-01-16.md", "# Retro\n\nI leave on Friday.", "2026-01-16 (Fri)"),
        ("notes.md", "---\ndate: 2026-01-16\n---\nI leave on Friday.", "2026-01-16 (Fri)"),
        ("notes.md", "# Notes\n\nI leave on Friday.", "on an unknown day; file of 2026-02-20"),
        ("notes.md", "# Agenda of 2999-01-16\n\nI leave on Friday.", "on an unknown day; file of 2026-02-20"),
        ("Plan 2999-01-16.md", "I leave on Friday.", "on an unknown day; file of 2026-02-20"),
        ("notes.md", "# From 2026-01-16 to 2026-01-30\n\nI leave on Friday.", "on an unknown day; file of 2026-02-20"),
        ("notes.md", "# Notes\n\nThe gate is blue.", ""),
    ],
)  # fmt: skip
async def test_document_said_day_is_never_file_time(library: Library, name: str, text: str, day: str) -> None:
    file = library.folder / name
    file.write_text(text)
    written = datetime(2026, 2, 20, 12, tzinfo=UTC).timestamp()
    os.utime(file, (written, written))
    await library.ingest.file(file)
    await runner_of(library.knowledge, library.service, config=ITEMS_ONLY).run()
    item = next(item for words, item in (await library.shown()).items() if "Friday" in words or "gate" in words)
    assert describe_said_day(item, item.content) == day
    assert view_brief_memory(item).get("said", "") == day


async def test_talk_without_day_has_no_said_day(library: Library) -> None:
    turns = ["Ada: I leave on Friday, I think.", "Tom: We met last Monday at the port."] * 2
    await library.give("\n".join(f"{turn} {number}" for number, turn in enumerate(turns)), "chat.txt")
    days = {describe_said_day(item, item.content) for item in (await library.shown()).values()}
    assert {day[:26] for day in days} == {"on an unknown day; file of"}
    [turn, *_] = await library.knowledge.episodes.valid()
    hit = await add_knowledge(library.service).search(turn.id)
    assert view_brief_memory(hit.results[0].memory)["said"] in days
