"""Planning changes nothing; a run does what was planned within its budget; undo brings back every field."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import StorageError, UnknownIdError, ValidationError
from agent_memory.memory import Caller
from agent_memory.memory.events import COMMON, EVENTS
from agent_memory.models import Link, Memory
from tests.support import NOON, FrozenClock, raises
from tests.unit.care.conftest import House

if TYPE_CHECKING:
    from pathlib import Path

OLD = {"days": 94}


async def many(house: House, count: int, **fields: Any) -> list[Memory]:
    return [await house.keep(f"What does number {number} mean", **{**OLD, **fields}) for number in range(count)]


async def test_a_plan_changes_nothing(house: House) -> None:
    memories = await many(house, 12)
    before = {path.name: path.read_bytes() for path in house.folder.iterdir() if path.is_file()}
    plan = await house.tidying().plan()
    assert (len(plan.suggestions), plan.budget.most, plan.waiting) == (10, 10, 2)
    assert (plan.memories, plan.archived, plan.made_at) == (12, 0, NOON)
    assert sum(item.size for item in plan.suggestions) == 10
    assert {path.name: path.read_bytes() for path in house.folder.iterdir() if path.is_file()} == before
    assert await house.live() == {each.id: each for each in memories}


async def test_a_run_moves_what_was_planned_and_undo_brings_back_every_field(house: House) -> None:
    await many(house, 5, tags=["x"], access_count=1, metadata={"a": [1]})
    first = await house.keep("The ledger is in MySQL.", days=200)
    await house.keep("The ledger is in SQLite.", days=100, supersedes=first.id, importance=0.1)
    before, tidying = await house.live(), house.tidying()
    done = await tidying.apply(await tidying.plan(), house.caller)
    assert (done.moved, done.left_out) == (7, ())
    assert (await house.live(), len(await house.put_away())) == ({}, 7)
    assert done.run is not None
    assert done.run.state == "done"
    undone = await tidying.undo(None, house.caller)
    assert await house.live() == before
    assert (len(undone.restored), undone.left_out, undone.run.state) == (7, (), "undone")
    assert [each.state for each in await tidying.runs()] == ["undone"]


async def test_a_run_compares_each_memory_with_itself_alone(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await many(house, 40)
    tidying, compared = house.tidying(), 0
    plan, same = await tidying.plan(budget=40), Memory.__eq__

    def counted(one: Memory, other: object) -> bool:
        nonlocal compared
        compared += 1
        return same(one, other)

    monkeypatch.setattr(Memory, "__eq__", counted)
    assert (await tidying.apply(plan)).moved == 40
    assert compared <= 3 * 40


async def test_of_two_that_tidy_at_once_each_memory_is_moved_by_one_and_none_is_lost(
    house: House, root: Path, clock: FrozenClock
) -> None:
    await many(house, 60)
    before, other = await house.live(), House(root, clock)
    try:
        plans = [await each.tidying().plan(budget=60) for each in (house, other)]
        runs = [each.tidying().apply(plan) for each, plan in zip((house, other), plans, strict=True)]
        done = await asyncio.gather(*runs)
        assert sum(each.moved for each in done) == 60
        assert (await house.live(), await house.put_away()) == ({}, set(before))
        assert len([each for each in done if each.run is not None]) == len(await house.tidying().runs()) == 1
        await other.tidying().undo()
        assert await house.live() == before
    finally:
        await other.close()


async def test_what_one_moves_another_does_not_take_for_the_rest_of_a_killed_process(
    house: House, root: Path, clock: FrozenClock
) -> None:
    await many(house, 60)
    before, other = await house.live(), House(root, clock)
    try:
        plan = await house.tidying().plan(budget=60)
        await asyncio.gather(house.tidying().apply(plan), *[other.archive.mend() for _ in range(20)])
        assert set(await house.live()) | await house.put_away() == set(before)
    finally:
        await other.close()


async def test_the_next_run_takes_what_waited(house: House) -> None:
    await many(house, 12)
    tidying = house.tidying()
    await tidying.apply(await tidying.plan())
    plan = await tidying.plan()
    assert (len(plan.suggestions), plan.waiting) == (2, 0)
    assert len((await tidying.apply(plan)).done) == 2
    assert (await tidying.apply(await tidying.plan())).run is None
    assert len(await tidying.runs()) == 2


async def test_a_budget_that_is_given_counts(house: House) -> None:
    await many(house, 12)
    assert len((await house.tidying().plan(budget=3)).suggestions) == 3
    assert len((await house.tidying(budget=12).plan()).suggestions) == 12
    with raises(ValidationError, "usage"):
        await house.tidying().plan(budget=0)


async def test_what_was_used_or_changed_since_is_left_out(house: House) -> None:
    used, changed, pinned, linked, gone, plain = await many(house, 6)
    tidying = house.tidying()
    plan = await tidying.plan()
    await house.storage.touch([used.id])
    await house.storage.update(changed.id, {"content": "What is that?"})
    await house.storage.update(pinned.id, {"pinned": True})
    await house.keep("The mug is blue.", links=[Link(rel="needs", id=linked.id)])
    await house.storage.delete(gone.id)
    done = await tidying.apply(plan)
    assert [each.memory.id for each in done.done] == [plain.id]
    assert {each.id for each in done.left_out} == {used.id, changed.id, pinned.id, linked.id, gone.id}
    assert await house.put_away() == {plain.id}


async def test_one_that_is_used_while_the_run_is_under_way_is_left_out(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, plain = await many(house, 2)
    tidying, moving = house.tidying(), house.service.writer.move_out

    async def used_first(*arguments: Any, **named: Any) -> list[str]:
        await house.storage.touch([used.id])
        return await moving(*arguments, **named)

    monkeypatch.setattr(house.service.writer, "move_out", used_first)
    done = await tidying.apply(await tidying.plan())
    assert ([each.memory.id for each in done.done], [each.id for each in done.left_out]) == ([plain.id], [used.id])
    assert done.run is not None
    assert [each.id for each in done.run.entries] == [plain.id]


async def test_what_is_said_twice_is_merged_and_tags_are_joined_and_parted_again(house: House) -> None:
    other = await house.keep("Maria likes tea", days=3, tags=["drinks", "maria"])
    stranger = await house.keep("Maria likes tea!", days=2, tags=["sale"], trust="low")
    kept = await house.keep("Maria likes tea.", days=1, tags=["maria"])
    before, tidying = await house.live(), house.tidying()
    await tidying.apply(await tidying.plan())
    live = await house.live()
    assert live.keys() == {kept.id}
    assert live[kept.id].tags == ["maria", "drinks"], "none of a stranger's"
    into = {each.id: each.merged_into for each in await house.archive.everything()}
    assert into == {other.id: kept.id, stranger.id: kept.id}
    await tidying.undo()
    assert await house.live() == before


async def test_runs_are_taken_back_in_any_order(house: House, clock: FrozenClock) -> None:
    """What something was merged into may be archived by a later run; it loses the tags it got all the same."""
    await house.keep("Maria likes tea", days=3, tags=["drinks"])
    kept = await house.keep("Maria likes tea.", days=1)
    before, tidying = await house.live(), house.tidying()
    first = (await tidying.apply(await tidying.plan())).run
    clock.advance(days=100)
    second = (await tidying.apply(await tidying.plan())).run
    assert first is not None
    assert second is not None
    assert [each.id for each in await tidying.runs()] == [second.id, first.id]
    await tidying.undo(first.id)
    assert kept.id not in await house.live()
    await tidying.undo(second.id)
    assert await house.live() == before


async def test_of_runs_of_one_moment_the_last_is_taken_back_first(house: House) -> None:
    await many(house, 5)
    tidying = house.tidying()
    runs = [(await tidying.apply(await tidying.plan(budget=1))).run for _ in range(5)]
    assert [(await tidying.undo()).run.id for _ in runs] == [run.id for run in reversed(runs) if run is not None]


async def test_deleting_has_a_word_of_its_own_and_can_be_taken_back(house: House, clock: FrozenClock) -> None:
    await many(house, 3)
    tidying = house.tidying()
    await tidying.apply(await tidying.plan())
    clock.advance(days=31)
    plan = await tidying.plan()
    assert [each.action for each in plan.suggestions] == ["delete"] * 3
    assert (await tidying.apply(plan)).run is None
    assert len(await house.put_away()) == 3
    done = await tidying.apply(plan, delete=True)
    assert (await house.put_away(), await house.live()) == (set(), {})
    undone = await tidying.undo()
    assert set(undone.undeleted) == {each.memory.id for each in done.done}
    assert (len(await house.put_away()), await house.live()) == (3, {})
    await tidying.undo()
    assert len(await house.live()) == 3


async def test_what_is_gone_for_good_is_said_to_be(house: House, clock: FrozenClock) -> None:
    first, second = await many(house, 2)
    tidying = house.tidying()
    run = (await tidying.apply(await tidying.plan())).run
    assert run is not None
    clock.advance(days=31)
    deleting = await tidying.apply(await tidying.plan(), delete=True)
    await house.archive.compact(timedelta(0))
    assert deleting.run is not None
    left = (await tidying.undo(deleting.run.id)).left_out
    assert {each.id for each in left} == {first.id, second.id}
    undone = await tidying.undo(run.id)
    assert ({each.id for each in undone.left_out}, undone.restored) == ({first.id, second.id}, ())


async def test_a_run_is_taken_back_once_and_only_if_there_is_one(house: House) -> None:
    tidying = house.tidying()
    assert await tidying.runs() == []
    with pytest.raises(UnknownIdError, match="No run to take back"):
        await tidying.undo()
    await many(house, 1)
    run = (await tidying.apply(await tidying.plan())).run
    assert run is not None
    await tidying.undo(run.id)
    with raises(ValidationError, "already_undone"):
        await tidying.undo(run.id)
    with pytest.raises(UnknownIdError, match="run-ffffffffffff"):
        await tidying.undo("run-ffffffffffff")


async def test_undo_leaves_what_somebody_brought_back_and_used(house: House) -> None:
    first, second = await many(house, 2)
    tidying = house.tidying()
    await tidying.apply(await tidying.plan())
    await house.archive.restore([first.id])
    await house.storage.update(first.id, {"tags": ["mine"]})
    undone = await tidying.undo()
    assert ([each.id for each in undone.restored], undone.left_out) == ([second.id], ())
    assert (await house.live())[first.id].tags == ["mine"]


@pytest.mark.parametrize("step", ["put", "out", "close"])
async def test_a_run_that_is_killed_loses_nothing_and_can_be_taken_back_or_done_again(
    house: House, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    await many(house, 4)
    before, tidying = await house.live(), house.tidying()

    async def killed(*_: Any, **__: Any) -> Any:
        raise StorageError("killed")

    with monkeypatch.context() as patch:
        where = {"put": house.archive, "out": house.service.writer, "close": house.archive.runs}[step]
        patch.setattr(where, {"put": "put", "out": "move_out", "close": "update"}[step], killed)
        with pytest.raises(StorageError):
            await tidying.apply(await tidying.plan())
    gone = await house.put_away()
    assert (await house.live()).keys() | gone == before.keys()
    assert not (await house.live()).keys() & gone
    again = await tidying.apply(await tidying.plan())
    assert again.run is None or again.moved == 4
    assert len(await house.put_away()) == 4
    for _ in await tidying.runs():
        await tidying.undo()
    assert await house.live() == before


async def test_a_stranger_cannot_have_it_done(house: House) -> None:
    await many(house, 2, trust="high")
    tidying = house.tidying()
    with raises(ValidationError, "needs_user"):
        await tidying.apply(await tidying.plan(), Caller("s", trust="low", prompt="What is the weather?"))
    assert await house.put_away() == set()


async def test_the_events_count_and_say_no_words(house: House) -> None:
    await many(house, 2)
    tidying = house.tidying()
    done = await tidying.apply(await tidying.plan(), house.caller)
    await tidying.undo(None, house.caller)
    names = [name for name, _ in house.events]
    moved = ["memory:archived"] * 2, ["memory:restored"] * 2
    assert names == [*moved[0], "memory:tidied", *moved[1], "memory:tidied"]
    for name, data in house.events:
        assert data.keys() == EVENTS[name].fields.keys() | COMMON
        assert "number" not in str(data)
    first, last = (data for name, data in house.events if name == "memory:tidied")
    assert done.run is not None
    assert (first["outcome"], first["archived"], first["run_id"]) == ("done", 2, done.run.id)
    assert (last["outcome"], last["archived"]) == ("undone", 2)
    assert {data["run_id"] for name, data in house.events if name == "memory:archived"} == {done.run.id}


async def test_the_importance_may_be_ones_own(house: House) -> None:
    from agent_memory.care.tidying.tidy_runs import Tidying

    await many(house, 2)
    assert (await Tidying(house.archive, importance=lambda *_: 0.9).plan()).suggestions == ()


_SAID = st.lists(
    st.fixed_dictionaries(
        {
            "content": st.sampled_from(["Maria likes tea.", "maria likes tea", "The mug is blue.", "What is that"]),
            "days": st.integers(0, 200),
            "category": st.sampled_from(["question", "insight", "note"]),
            "tags": st.lists(st.sampled_from("abc"), unique=True),
            "trust": st.sampled_from(["high", "medium", "low"]),
            "pinned": st.booleans(),
            "importance": st.none() | st.sampled_from([0.0, 0.3, 1.0]),
            "ends": st.none() | st.integers(-5, 5),
            "replaces": st.booleans(),
            "links": st.booleans(),
        }
    ),
    min_size=1,
    max_size=14,
)


@given(said=_SAID, budget=st.none() | st.integers(1, 6))
def test_whatever_there_is_is_tidied_within_the_budget_and_comes_back_exactly(
    said: list[dict[str, Any]], budget: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def run() -> None:
        house = House(tmp_path_factory.mktemp("house"), FrozenClock())
        last: str | None = None
        for each in said:
            fields = {
                key: each[key] for key in ("content", "days", "category", "tags", "trust", "pinned", "importance")
            }
            ends = None if each["ends"] is None else NOON + timedelta(days=each["ends"])
            links = [Link(rel="needs", id=last)] if each["links"] and last else []
            older = last if each["replaces"] else None
            last = (await house.keep(**fields, expires_at=ends, links=links, supersedes=older)).id
        before, replaced = await house.live(), await house.storage.superseded()
        valid = {each.id for each in await house.storage.valid()}
        tidying = house.tidying()
        for _ in range(3):
            plan = await tidying.plan(budget=budget)
            assert sum(item.size for item in plan.suggestions) <= plan.budget.most or len(plan.suggestions) == 1
            done = await tidying.apply(plan)
            assert done.left_out == ()
            live = await house.live()
            assert live.keys() | await house.put_away() == before.keys()
            assert {each.id for each in await house.storage.valid()} <= valid, "nothing counts that did not"
            assert all(each in live for each, memory in before.items() if memory.pinned)
        assert (await tidying.apply(await tidying.plan(budget=budget))).moved <= 14
        while any(each.state == "done" for each in await tidying.runs()):
            await tidying.undo()
        assert await house.live() == before
        assert await house.storage.superseded() == replaced
        await house.close()

    asyncio.run(run())
