"""One module that declares a kind of record gets it all that memories have, with no file of the library touched."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks.examination import examine_agent
from agent_memory.care.checks.journal_survey import JournalReading, JournalSurvey
from agent_memory.embeddings import text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_builder import build
from agent_memory.engines.server_storage import Server
from agent_memory.errors import ValidationError
from agent_memory.files.layout import agents_under, folder_of
from agent_memory.journal.format import add_checksum
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.models import MEMORY, Kind, SearchRequest, filters_of
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, copy_agent, summary_of
from agent_memory.store.record_redaction import Redacted, make_record, redact_fields, text_fields
from agent_memory.store.record_storage import RecordStorage
from tests.new_kind import THING, Thing, open_things
from tests.power.checker import cut_power, record
from tests.power.deaths import AFTER_A_DEATH
from tests.power.scenarios import Bob, changes, compactions, first_store
from tests.qdrant_server import QUIET, QdrantServer
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.models import Clock
    from tests.power.scenarios import Scenario
    from tests.support import FrozenClock

pytestmark = QUIET
SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def thing(said: str, **fields: Any) -> Thing:
    return Thing(agent_id="bob", said=said, **{"name": "Ada", **fields})


@pytest.fixture(params=["files", "server"])
async def things(request: pytest.FixtureRequest, root: Path, clock: FrozenClock) -> AsyncIterator[RecordStorage[Thing]]:
    storage = open_things(root, clock) if request.param == "files" else on_server(clock)
    yield storage
    await storage.close()


def on_server(clock: Clock) -> RecordStorage[Thing]:

    settings = ServiceSettings(embedder="none", backend="server")
    return RecordStorage(Server(THING, "bob", settings, clock, QdrantServer().connect, None, None).backend())


async def found(storage: RecordStorage[Thing], query: str, clock: FrozenClock, **filters: Any) -> list[str]:
    answer = await storage.answer(SearchRequest(query, 5, clock(), filters_of(filters or None)))
    return [record.said for record in answer.records]


async def test_what_is_stored_is_found_by_word_and_by_filter(things: RecordStorage[Thing], clock: FrozenClock) -> None:
    await things.store(thing("Maintains the payment ledger", tags=["team-a"]))
    await things.store(thing("Runs the warehouse", tags=["team-b"]))
    assert await found(things, "who keeps the ledger", clock) == ["Maintains the payment ledger"]
    assert await found(things, "runs", clock, tags=["team-b"]) == ["Runs the warehouse"]
    assert await found(things, "ledger", clock, tags=["team-b"]) == []


async def test_no_secret_of_it_is_stored(things: RecordStorage[Thing]) -> None:
    known = await things.store(thing(f"Uses the token {SECRET} at night", name=SECRET, metadata={"key": SECRET}))
    assert SECRET not in (await things.get(known) or thing("nothing")).model_dump_json()
    await things.update(known, {"said": f"Now uses {SECRET}"})
    assert SECRET not in (await things.get(known) or thing("nothing")).model_dump_json()
    with pytest.raises(ValidationError):
        await things.store(thing(SECRET))
    assert {"said", "name", "metadata"} <= set(text_fields(THING))


async def test_it_is_counted_changed_replaced_and_forgotten(things: RecordStorage[Thing]) -> None:
    old = await things.store(thing("Lives in Turin"))
    assert await things.store(thing("Lives in  Turin"), unique=True) == old
    new = await things.store(thing("Lives in Rome", supersedes=old))
    await things.touch([new])
    assert (await things.superseded(), await things.older_versions(new)) == ({old: new}, [old])
    assert [(each.said, each.access_count) for each in await things.list_recent()] == [("Lives in Rome", 1)]
    await things.delete(new)
    assert (await things.count(), await things.was_forgotten("Lives in Rome")) == (0, True)
    assert (await things.health())["status"] == "ok"


async def test_its_past_comes_back_until_it_is_compacted_away(root: Path, clock: FrozenClock) -> None:
    things = open_things(root, clock)
    known = await things.store(thing("Lives in Turin"))
    await things.update(known, {"said": "Lives in Rome"})
    await things.delete(known)
    assert [version.op for version in await things.history(known)] == ["put", "patch", "delete"]
    assert [each.said for each in await things.forgotten_with(known)] == ["Lives in Rome"]
    await things.compact(timedelta(0))
    assert b"Rome" not in (root / "bob" / THING.journal).read_bytes()
    await things.close()


async def test_it_lies_beside_memories_and_neither_touches_the_other(root: Path, clock: FrozenClock) -> None:
    memories, things = FileStorage("bob", root, clock=clock), open_things(root, clock)
    await memories.store(memory_of("tea"))
    before = (root / "bob" / MEMORY.journal).read_bytes()
    await things.store(thing("Drinks tea"))
    await things.compact(timedelta(0))
    assert (root / "bob" / MEMORY.journal).read_bytes() == before
    assert (await memories.count(), await things.count()) == (1, 1)
    await memories.close()
    await things.close()


async def test_an_agent_is_listed_counted_and_copied_with_its_records(root: Path, clock: FrozenClock) -> None:
    things = open_things(root, clock)
    await things.store(thing("Lives in Turin"))
    await things.close()
    assert agents_under(root) == ["bob"]
    copy_agent(folder_of("bob", root), "eve", root)
    copied, original = ((root / name / THING.journal).read_bytes().splitlines() for name in ("eve", "bob"))
    assert copied[1:] == original[1:]  # the header has a generation of its own
    (root / "bob" / "notes.yaml").write_text("tea: green\n")
    (root / "dave").mkdir()
    (root / "dave" / "notes.yaml").write_text("tea: green\n")
    assert agents_under(root) == ["bob", "eve"]
    summary = summary_of("bob", root)
    assert (summary.memories, summary.others, summary.problem) == (0, {THING.journal: 1}, "")
    assert summary.last_used is not None


def texts_kept(root: Path) -> set[str]:
    with closing(sqlite3.connect(root / "bob" / "embeddings.sqlite3")) as cache:
        kept = {key for (key,) in cache.execute("SELECT hash FROM vectors")}
    return {text for text in ("tea", "Drinks tea", "Lives in Turin") if text_hash(text) in kept}


def codes(root: Path, clock: FrozenClock, *kinds: Kind[Any]) -> set[str]:
    report = examine_agent(root, "bob", now=clock(), settings=ServiceSettings(), kinds=kinds)
    return {finding.code for finding in report.findings}


async def test_a_vector_stays_as_long_as_a_record_of_any_kind_has_its_text(root: Path, clock: FrozenClock) -> None:
    embedder = HashEmbedder()
    memories = FileStorage("bob", root, clock=clock, embedder=embedder)
    things = open_things(root, clock, embedder)
    ids = [await memories.store(memory_of(text)) for text in ("tea", "Drinks tea")]
    known = [await things.store(thing(text)) for text in ("Drinks tea", "Lives in Turin")]
    assert await memories.prepare()
    assert await things.prepare()
    assert texts_kept(root) == {"tea", "Drinks tea", "Lives in Turin"}
    for memory_id in ids:  # the first looks through all vectors, the second drops its own
        await memories.delete(memory_id)
    await memories.close()
    assert texts_kept(root) == {"Drinks tea", "Lives in Turin"}
    assert "vectors_orphaned" not in codes(root, clock, MEMORY) | codes(root, clock, MEMORY, THING)
    for thing_id in known:
        await things.delete(thing_id)
    await things.close()
    assert texts_kept(root) == set()


async def test_what_a_start_is_shown_is_kept_for_each_kind(root: Path, clock: FrozenClock) -> None:
    order = Selection(5, 3)
    for _ in range(2):  # what one of them keeps, the other neither reads nor removes
        memories, things = FileStorage("bob", root, clock=clock), open_things(root, clock)
        await things.store(thing("Drinks tea"), unique=True)
        await memories.store(memory_of("tea"), unique=True)
        assert [each.said for each in await things.recent(order)] == ["Drinks tea"]
        assert [each.content for each in await memories.recent(order)] == ["tea"]
        await things.close()
        await memories.close()
    assert {path.name for path in root.glob("bob/*shortlist.json")} == {"shortlist.json", "things.shortlist.json"}
    things = open_things(root, clock)
    await things.delete((await things.list_recent())[0].id)
    await things.close()
    assert [path.name for path in root.glob("bob/*shortlist.json")] == ["shortlist.json"]


async def test_it_is_shown_as_its_kind_says(things: RecordStorage[Thing]) -> None:
    known = await things.get(await things.store(thing("Lives in Turin", tags=["team-a"], pinned=True)))
    assert known is not None
    assert THING.view(known) == {"id": known.id, "said": "Lives in Turin", "name": "Ada", "tags": ["team-a"]}
    assert replace(THING, view=lambda each: {"person": each.name}).view(known) == {"person": "Ada"}


async def test_what_points_to_nothing_is_noted(root: Path, clock: FrozenClock) -> None:
    things = open_things(root, clock)
    gone, kept, other = THING.new_id(), await things.store(thing("Lives in Turin")), MEMORY.new_id()
    links = [{"rel": "knows", "id": each} for each in (gone, kept, other)]
    known = await things.store(thing("Lives in Rome", links=links, supersedes=kept))
    assert [*THING.references((await things.get(known)) or thing("x"))] == [kept, gone, kept, other]
    await things.close()
    reading = JournalReading(root / "bob" / THING.journal, "bob", (THING,))
    assert JournalSurvey(reading, ServiceSettings(), clock()).dangling == [f"{known} points to {gone}"]
    assert "journal_references" in codes(root, clock, THING)


async def test_it_is_exported_as_json_and_imported_as_it_was(
    things: RecordStorage[Thing], tmp_path: Path, clock: FrozenClock
) -> None:
    old = await things.store(thing("Lives in Turin"))
    await things.store(thing("Lives in Rome", supersedes=old, pinned=True))
    exported = [each.model_dump_json() async for each in things.iter_all()]
    elsewhere = open_things(tmp_path / "elsewhere", clock)
    read: list[Thing | Redacted[Thing]] = [make_record(THING, json.loads(line), "bob") for line in exported]
    await elsewhere.store_many(read)
    assert [each async for each in elsewhere.iter_all()] == [each async for each in things.iter_all()]
    assert redact_fields(THING, {"said": SECRET + " is it"}).kinds
    await elsewhere.close()


async def test_the_doctor_reads_it_and_asks_what_its_kind_asks(root: Path, clock: FrozenClock) -> None:
    things = open_things(root, clock)
    nameless = await things.store(thing("Who is this", name=""))
    await things.close()
    with (root / "bob" / THING.journal).open("ab") as file:
        file.write(
            add_checksum(
                b'--- {"seq": 2, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "thing", "id": "x", "data": {}}\n'
            )
        )
    reading = JournalReading(root / "bob" / THING.journal, "bob", (THING,))
    survey = JournalSurvey(reading, ServiceSettings(), clock())
    assert survey.wrong == [f"{nameless}: it has no name"]
    assert survey.invalid.keys() == {"x"}


def test_another_process_finds_it_by_its_place() -> None:
    assert THING.place == "tests.new_kind:THING"
    assert Kind.at(THING.place) is THING
    with pytest.raises(TypeError, match="new_kind:Thing"):
        Kind.at("tests.new_kind:Thing")
    with pytest.raises(LookupError, match="under no name"):
        _ = replace(THING, name="other").place


async def test_an_index_is_built_of_its_records(root: Path, clock: FrozenClock) -> None:
    things = open_things(root, clock, embedder := HashEmbedder())
    await things.store(thing("Lives in Turin"))
    assert await things.prepare()
    await things.close()
    said: list[dict[str, Any]] = []
    build(folder_of("bob", root), THING, embedder.identity, activate=False, report=lambda **fields: said.append(fields))
    assert (said[-1]["stage"], said[-1]["points"]) == ("done", 1)


async def test_the_doctor_examines_it_alone(root: Path, clock: FrozenClock) -> None:
    things = open_things(root, clock)
    await things.store(thing("Lives in Turin"))
    await things.close()
    settings = ServiceSettings()
    alone = examine_agent(root, "bob", now=clock(), settings=settings, kinds=(THING,))
    both = examine_agent(root, "bob", now=clock(), settings=settings, kinds=(THING, MEMORY))
    assert (alone.memories, both.memories) == (1, 0)
    assert {finding.code for finding in alone.findings}.isdisjoint({"not_examined", "folder_unusable", "scratchpad"})
    assert {"journal", "vectors_none"} <= {finding.code for finding in alone.findings}


@pytest.mark.parametrize(
    "scenario", [first_store, changes, compactions, *AFTER_A_DEATH], ids=lambda each: each.__name__
)
def test_it_survives_a_power_cut_and_a_process_that_died(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bob, "kind", THING)
    (tmp_path / "base").mkdir()
    events = record(scenario, tmp_path / "base")
    report = cut_power(scenario.__name__, events, tmp_path, seed=1, per_step=2, most=12)
    assert report.cuts > 3
    assert report.failures == []
