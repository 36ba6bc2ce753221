"""What waits for the disk is bounded, written as soon as that can be, and never lost in silence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError
from agent_memory.files.lock import only_one
from agent_memory.integrations.amplifier.hooks import turn_intake
from agent_memory.integrations.amplifier.hooks.turn_intake import IntakeLimits
from agent_memory.integrations.amplifier.hooks.turn_writer import TurnWriter
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pipeline.background_work import Runner
from agent_memory.knowledge.pipeline.stages import RunOutcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.hooks_memory_ingestion.conftest import Begin, Talk

    Limit = Callable[[IntakeLimits], None]

PATIENT = IntakeLimits(drain_seconds=60, work_seconds=60)
FACT = "The boat is moored at pier four in Bergen."
ANSWER = "The diesel for it was paid in cash in May."


async def test_more_than_may_wait_is_dropped_counted_and_told(begin: Begin) -> None:
    talk = await begin(max_waiting=1)
    await talk.whole(FACT, ANSWER)
    assert [each.content for each in await talk.episodes()] == [FACT]
    assert talk.reasons() == talk.statistics()["skipped"] == {"queue_full": 1}
    await talk.whole("There is room again for words.", "Yes, there is.")
    assert [each.content for each in await talk.episodes()] == [FACT, "There is room again for words."]


async def test_more_characters_than_may_wait_are_dropped_and_told(begin: Begin, limit: Limit) -> None:
    limit(IntakeLimits(characters=50))
    talk = await begin()
    await talk.whole(FACT, ANSWER)
    assert [each.content for each in await talk.episodes()] == [FACT]
    assert talk.reasons() == {"queue_full": 1}


async def test_a_turn_is_written_behind_its_answer_without_an_end_of_the_session(talk: Talk) -> None:
    await talk.say(FACT)
    await talk.answer(ANSWER)
    await talk.stored.wait()
    assert len(await talk.episodes()) == 2


async def test_a_turn_that_takes_long_is_written_as_far_as_it_is(begin: Begin) -> None:
    talk = await begin(flush_seconds=0.001)
    await talk.say(FACT)
    await talk.stored.wait()
    assert [each.content for each in await talk.episodes()] == [FACT]
    await talk.answer(ANSWER)
    await talk.end()
    assert [(each.content, each.order) for each in await talk.episodes()] == [(FACT, 0), (ANSWER, 1)]


async def test_a_turn_that_takes_long_waits_while_no_agent_is_active(begin: Begin) -> None:
    talk = await begin(flush_seconds=0.001, agent_id=None, tenant_id="acme")
    await talk.say("Start as bob with memory enabled.")
    await asyncio.sleep(0.01)
    assert talk.statistics()["waiting"] == 1
    await talk.session.activate("bob")
    await talk.answer(ANSWER)
    await talk.end()
    assert [each.content for each in await talk.episodes()] == ["Start as bob with memory enabled.", ANSWER]


async def test_what_finds_no_room_is_told_once_and_written_when_there_is_room_again(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, "write", _failing)
        await talk.whole(FACT, ANSWER)
        await talk.whole("The next turn is said meanwhile.", "So it is.")
        assert talk.statistics()["waiting"] == 4
    await talk.whole("Now there is room.", "There is.")
    assert len(await talk.episodes()) == 6
    assert talk.reasons() == {}
    assert [(data["component"], data["code"]) for data in talk.told("memory:degraded")] == [("ingestion", "disk_full")]


async def test_what_finds_no_room_until_the_end_is_dropped_and_told(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TurnWriter, "write", _failing)
    await talk.whole(FACT, ANSWER)
    await talk.cleanup()
    assert talk.reasons() == talk.statistics()["skipped"] == {"disk_full": 2}


async def test_a_defect_of_ours_is_told_and_the_next_turn_is_kept(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patched:
        patched.setattr(TurnWriter, "write", broken)
        await talk.whole(FACT, ANSWER)
    await talk.whole("The next turn is kept.", "It is.")
    assert len(await talk.episodes()) == 2
    assert talk.reasons() == {"internal_error": 2}


async def test_an_agent_on_a_server_takes_nothing_in_and_says_so_once(begin: Begin) -> None:
    talk = await begin(backend="server", qdrant_url="http://127.0.0.1:1")
    for _ in range(2):
        await talk.whole(FACT, ANSWER)
    assert talk.reasons() == {"knowledge_needs_files": 4}
    assert [data["code"] for data in talk.told("memory:degraded")] == ["knowledge_needs_files"]


async def test_a_disk_that_does_not_answer_ends_no_session_later_than_it_may(
    begin: Begin, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stuck(*_: Any) -> None:
        await asyncio.Event().wait()

    limit(IntakeLimits(drain_seconds=0.01))
    monkeypatch.setattr(TurnWriter, "write", stuck)
    talk = await begin()
    await talk.whole(FACT, ANSWER)
    await talk.cleanup()
    assert talk.reasons() == {"drain_timeout": 2}


async def test_background_work_that_takes_long_is_cut_short_at_the_end_and_done_by_the_next_session(
    begin: Begin, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(IntakeLimits(work_seconds=0.01))
    talk, begun = await begin(), asyncio.Event()

    async def endless(*_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(Runner, "run", endless)
        await talk.say(FACT)
        await talk.answer(ANSWER)
        await begun.wait()
        await talk.end()
        await talk.cleanup()
    limit(PATIENT)
    again = await begin()
    await again.whole("A third fact about the old harbour.")
    assert FACT in {item.content for item in await again.items()}


async def test_background_work_ends_with_the_portion_under_way_when_the_session_does(
    begin: Begin, limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(IntakeLimits(work_seconds=0.01))
    talk, begun, portions = await begin(), asyncio.Event(), 0

    async def run(_: Runner, most: int, progress: Callable[[RunOutcome], None]) -> RunOutcome:
        nonlocal portions
        begun.set()
        for portions in range(1, most + 1):
            await asyncio.sleep(0.005)
            progress(RunOutcome({"items": portions}))
        return RunOutcome({"items": most})

    monkeypatch.setattr("agent_memory.integrations.amplifier.hooks.turn_writer._MAX_BATCHES", 1_000_000)
    monkeypatch.setattr(Runner, "run", run)
    await talk.say(FACT)
    await talk.answer(ANSWER)
    await begun.wait()
    await talk.end()
    assert 0 < portions < 1_000_000
    assert talk.statistics()["worked"] == {}


async def test_background_work_that_another_process_does_is_left_to_it(talk: Talk, root: Path) -> None:
    await talk.whole("Hello there!")
    with only_one(root / "bob" / "tasks.lock") as is_ours:
        assert is_ours
        await talk.whole(FACT, ANSWER)
    assert [item.content for item in await talk.items()] == ["Hello there!"]
    assert talk.statistics()["worked"] == {"items": 3, "entities": 3, "summaries": 2}
    assert talk.told("memory:degraded") == []


async def test_sessions_that_speak_to_one_agent_at_the_same_time_lose_nothing_and_make_nothing_twice(
    begin: Begin,
) -> None:
    talks = [await begin(session_id=f"session-{name}") for name in "abc"]

    async def talk_of(talk: Talk) -> None:
        for number in range(5):
            await talk.say(f"The shed of {talk.session.session_id} has the number {number} on its door.")
            await talk.answer("So it has, I was told.")
        await talk.end()

    await asyncio.gather(*map(talk_of, talks))
    await talks[0].say("One more turn, for what another session was busy with.")
    await talks[0].end()
    assert len(await talks[0].conversations()) == 3
    said = [each.content for each in await talks[0].episodes()]
    sheds = [
        f"The shed of session-{name} has the number {number} on its door." for name in "abc" for number in range(5)
    ]
    assert sorted(each for each in said if "shed" in each) == sheds
    assert len(said) == 31
    assert sorted(item.content for item in await talks[0].items() if item.content.startswith("The shed")) == sheds


async def test_background_work_paused_when_session_ends_is_done_at_once(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_intake, "PAUSE_SECONDS", 3_600)
    talk = await begin()
    await talk.whole(FACT, ANSWER)
    assert FACT in {item.content for item in await talk.items()}


async def test_background_work_is_done_for_all_groups(begin: Begin) -> None:
    talk = await begin(tenant_id="acme")
    knowledge = talk.knowledge("bob")
    await Ingest(knowledge).resource("The shed of the neighbours has a green door.", group="other:session-1")
    await knowledge.close()
    await talk.whole(FACT, ANSWER)
    found = {item.content: item.group for item in await talk.items()}
    own = f"acme:{talk.session.root_id}"
    assert found == {"The shed of the neighbours has a green door.": "other:session-1", FACT: own, ANSWER: own}


async def test_background_work_may_be_left_to_others(begin: Begin) -> None:
    talk = await begin(background=False)
    await talk.whole(FACT, ANSWER)
    assert len(await talk.episodes()) == 2
    assert (await talk.items(), talk.told("memory:background_worked")) == ([], [])


@pytest.mark.parametrize(
    ("error", "told"), [(StorageError("no room", code="disk_full"), ["background"]), (ZeroDivisionError(), [])]
)
async def test_background_work_that_fails_is_counted_and_ends_no_session(
    talk: Talk, monkeypatch: pytest.MonkeyPatch, error: Exception, told: list[str]
) -> None:
    async def failing(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Runner, "run", failing)
        for _ in range(2):
            await talk.whole(FACT, ANSWER)
    assert talk.statistics()["worked"] == {"trouble": 2}
    assert [data["component"] for data in talk.told("memory:degraded")] == told
    await talk.whole("A third fact about the old harbour.")
    assert talk.statistics()["worked"]["items"] == 7


async def test_a_conversation_that_was_taken_back_begins_anew(talk: Talk) -> None:
    await talk.whole(FACT, ANSWER)
    (conversation,) = await talk.conversations()
    knowledge = talk.knowledge("bob")
    for each in await talk.episodes():
        await knowledge.episodes.delete(each.id)
    await knowledge.resources.delete(conversation.id)
    await knowledge.close()
    await talk.whole("What is said now is new.", "Yes, it is.")
    (again,) = await talk.conversations()
    assert again.id == conversation.id
    assert [each.content for each in await talk.episodes()] == ["What is said now is new.", "Yes, it is."]


async def _failing(*_: Any) -> None:
    raise StorageError("There is no room on the disk.", code="disk_full")
