"""What rests on a purged record alone goes with it; what others say, too, stays."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.backups.backup_reader import verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.privacy.erasure import TextHider
from agent_memory.care.privacy.purge import Purging
from agent_memory.care.privacy.purge_survey import PurgeSurvey
from agent_memory.journal import PurgeList
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.intake.transfer import iter_entries, store_entries
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import read_files

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support import FrozenClock

DOCUMENT = (
    "# Payroll\nAnn Meyer earns seventy-two thousand euros at Initech.\n\nThe crane in Kiel is repaired each May."
)
TALK = [
    ("Ann", "I earn ninety-one thousand crowns at Contoso since March."),
    *[("Bob", f"Box {number} went to Hamburg on ship number {number} with Clara.") for number in range(24)],
]


class Given:
    """Bob, who was given a document and a talk, with all that is made of these."""

    def __init__(self, root: Path, clock: FrozenClock) -> None:
        self.root, self.clock, self.folder = root, clock, root / "bob"
        settings = ServiceSettings(embedder="none", storage_root=str(root))
        self.service = MemoryService(FileStorage("bob", settings=settings, clock=clock), settings, clock=clock)
        self.knowledge = Knowledge("bob", settings, clock=clock)
        self.ingest = Ingest(self.knowledge)

    async def fill(self) -> None:
        self.document = (await self.ingest.resource(DOCUMENT)).record.id
        self.talk = (await self.ingest.conversation("c1")).record.id
        turns = [ReceivedTurn(text, "user", speaker=name) for name, text in TALK]
        kept, _ = await self.ingest.turns(turns, conversation=self.talk)
        self.turns = [each.record.id for each in kept]
        await self.work()

    async def work(self) -> None:
        await runner_of(self.knowledge, self.service, at_once=True).run()

    async def item(self, word: str) -> str:
        return next(each.id for each in await self.items() if word in each.content)

    async def items(self) -> list[Any]:
        return [each async for each in self.service.storage.iter_all()]

    async def purge(self, *ids: str) -> Any:
        purging = Purging(self.service, clock=self.clock)
        return await purging.run(await purging.plan(ids))

    def holding(self, *words: str) -> dict[str, list[str]]:
        """Return in which files words stand, by a search of the test's own; backups are unpacked for it."""
        found: dict[str, list[str]] = {}
        for path, file_bytes in read_files(self.root):
            content = file_bytes
            if path.suffix == ".zip":
                with zipfile.ZipFile(path) as archive:
                    content = b"".join(archive.read(name) for name in archive.namelist())
            for word in words:
                if word.lower().encode() in content.lower():
                    found.setdefault(word, []).append(path.name)
        return found


@pytest.fixture
async def given(root: Path, clock: FrozenClock) -> AsyncIterator[Given]:
    given = Given(root, clock)
    await given.fill()
    yield given
    await given.knowledge.close()
    await given.service.close()


async def test_with_a_document_goes_all_that_was_made_of_it(given: Given) -> None:
    made = create_backup(given.service.folder, clock=given.clock)
    words = "seventy-two", "Meyer", "Initech", "crane", "Kiel"
    assert set(given.holding(*words)) == set(words)
    receipt = await given.purge(given.document)
    assert receipt.is_clean
    assert given.holding(*words) == {}
    assert given.holding("ninety-one")
    assert verify_backup(made.path).problems == ()


async def test_with_a_talk_go_its_turns_items_names_summaries_and_pages(given: Given) -> None:
    made = create_backup(given.service.folder, clock=given.clock)
    words = "ninety-one", "Contoso", "Hamburg", "Clara"
    assert "bob.md" in given.holding("Clara")["Clara"]
    receipt = await given.purge(given.talk)
    assert receipt.is_clean
    assert given.holding(*words) == {}
    assert [each async for each in given.knowledge.episodes.iter_all()] == []
    assert [topic.name async for topic in given.knowledge.topics.iter_all()] == ["payroll"]
    assert {each.content.partition("\n")[0] for each in await given.items()} == {"Payroll"}
    assert verify_backup(made.path).problems == ()


async def test_with_one_turn_goes_what_says_it_and_the_others_stay(given: Given) -> None:
    receipt = await given.purge(given.turns[0])
    assert receipt.is_clean
    assert given.holding("ninety-one", "Contoso") == {}
    assert len([each async for each in given.knowledge.episodes.iter_all()]) == len(TALK) - 1
    assert "bob.md" in given.holding("Clara")["Clara"]


async def test_of_an_item_the_words_in_its_source_go_too(given: Given) -> None:
    receipt = await given.purge(await given.item("seventy-two"))
    assert receipt.is_clean
    assert given.holding("seventy-two") == {}
    document = await given.knowledge.resources.get(given.document)
    assert document is not None
    assert "Ann" not in document.content
    assert "\u2588" in document.content


async def test_what_another_source_says_too_stays_and_loses_one_source(given: Given) -> None:
    other = (await given.ingest.resource(f"{DOCUMENT}\n\n# Harbour\n\nThe harbour has two docks.")).record.id
    await given.work()
    kept = await given.item("seventy-two")
    receipt = await given.purge(given.document)
    assert receipt.failed == ()
    item = await given.service.get(kept)
    assert [link.id for link in item.links] == [other]
    assert given.document not in json.dumps(item.model_dump(mode="json"))


async def test_an_untitled_talk_does_not_take_the_other_ones_along(given: Given) -> None:
    other = (await given.ingest.conversation("c2")).record
    purging = Purging(given.service, clock=given.clock)
    plan = await purging.plan([given.talk])
    assert plan.same == ()
    assert other.content not in plan.texts


async def test_a_title_that_was_cut_from_the_words_goes(given: Given) -> None:
    titled = (await given.ingest.conversation("c3", title="I earn ninety-one thousand\u2026")).record.id
    await given.purge(given.turns[0])
    record = await given.knowledge.resources.get(titled)
    assert record is not None
    assert "ninety-one" not in record.title + record.content
    assert given.holding("ninety-one") == {}


async def test_an_old_export_does_not_bring_it_back(given: Given) -> None:
    entries = [(at, entry) async for at, entry in _numbered(given)]
    await given.purge(given.talk)
    done = await store_entries(given.knowledge, entries, trusted=True, dry_run=False)
    assert done.purged["episode"] == len(TALK)
    assert done.stored["episode"] == 0
    assert given.holding("ninety-one", "Contoso", "Clara") == {}


async def test_the_same_turn_said_again_in_a_session_is_not_kept_and_a_file_may_bring_it(given: Given) -> None:
    await given.purge(given.talk)
    again = (await given.ingest.conversation("c4")).record.id
    said = [ReceivedTurn(TALK[0][1], "user"), ReceivedTurn("The weather in Oslo is fine today.", "user")]
    await given.purge(await _kept_item(given))
    kept, refused = await given.ingest.turns(said, conversation=again, is_live=True)
    assert refused == [(0, "forgotten")]
    assert [each.record.content for each in kept] == [said[1].text]


async def test_an_item_is_not_drawn_again_from_what_says_it_later(given: Given) -> None:
    await given.purge(await given.item("seventy-two"))
    await given.ingest.resource(f"{DOCUMENT}\n\n# Harbour\n\nThe harbour has two docks.")
    await given.work()
    assert not [each for each in await given.items() if "seventy-two" in each.content]
    assert [each for each in await given.items() if "two docks" in each.content]


async def test_what_is_made_again_later_of_other_words_may_come_back_from_a_backup(given: Given) -> None:
    await given.purge(given.document)
    purged = PurgeList(given.folder)
    (purge,) = purged.purges()
    entity = next(one for one in purge.resting if one.startswith("ent-"))
    line = b'--- {"seq": 1, "at": "%s", "op": "put", "kind": "entity", "id": "' + entity.encode() + b'", "data": {}}\n'
    assert purged.filter_line(line % b"2026-02-28T12:00:00.000000Z") == b""
    assert purged.filter_line(line % b"2026-03-02T12:00:00.000000Z") != b""
    named = line.replace(entity.encode(), given.document.encode())
    assert purged.filter_line(named % b"2026-03-02T12:00:00.000000Z") == b""


async def test_what_a_killed_process_left_of_such_a_purge_is_finished(given: Given) -> None:
    purging = Purging(given.service, clock=given.clock)
    plan = await purging.plan([given.document])
    PurgeList(given.folder).begin(plan.ids, plan.texts, "2026-03-01T12:00:00Z", plan.resting)
    (receipt,) = await purging.finish()
    assert receipt.is_clean
    assert given.holding("seventy-two", "Meyer", "Initech", "crane") == {}
    assert "entities.yaml" in receipt.files


def test_a_page_loses_claims_that_rest_on_a_purged_item_whoever_worded_them() -> None:
    page = (
        "- She is paid well. [^1]\n- Boxes go north. [^1] [^2]\n- By hand.\n\n"
        '[^1]: "x" (file, at 0-1, mem-0123456789ab): y\n[^2]: "z" (file, at 0-1, mem-ba9876543210): z\n'
    )
    hidden = TextHider((), {"mem-0123456789ab"}).hide(page)
    assert "paid well" not in hidden
    assert "mem-0123456789ab" not in hidden
    assert "Boxes go north." in hidden
    assert "mem-ba9876543210" in hidden
    assert "By hand." in hidden


def test_a_survey_of_nothing_knows_nobody(root: Path) -> None:
    from agent_memory.files.layout import AgentFolder

    (root / "bob").mkdir(parents=True)
    survey = PurgeSurvey(AgentFolder(root / "bob"))
    assert "mem-0123456789ab" not in survey
    assert survey.said_by(["mem-0123456789ab"]) == ()
    assert survey.resting_on(["mem-0123456789ab"]) == set()


async def _numbered(given: Given) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    at = 0
    async for entry in iter_entries(given.knowledge):
        at += 1
        yield at, entry


async def _kept_item(given: Given) -> str:
    """Store the first turn of the talk as a memory, by order of a person, and return its id."""
    return (await given.service.store(TALK[0][1])).memory.id
