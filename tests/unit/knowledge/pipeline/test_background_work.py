"""Background work: what is due is done once, in portions, by one process at a time, and goes on after a death."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.checks.examination import examine_agent
from agent_memory.errors import StorageError, ValidationError
from agent_memory.knowledge.pipeline.background_work import Runner
from agent_memory.knowledge.pipeline.stages import ATTEMPTS, Backlog, Batch, RunOutcome, StageCheckpoints
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import Episode, derived_id
from agent_memory.settings import ServiceSettings
from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from pathlib import Path

    from tests.support import FrozenClock


@dataclass
class Shouting:
    """Notes what it is given in capitals, by an id made of its source."""

    name: str = "shouting"
    version: int = 1
    source: str = "episode"
    made: dict[str, str] = field(default_factory=dict)
    calls: list[tuple[int, int]] = field(default_factory=list)
    bad: set[str] = field(default_factory=set)
    broken: bool = False
    away: set[str] = field(default_factory=set)

    async def gone(self) -> Collection[str]:
        return self.away

    async def do(self, batch: Batch) -> Mapping[str, str]:
        if self.broken:
            raise StorageError("no room", code="disk_full")
        self.calls.append((len(batch.records), len(batch.before)))
        for record in batch.records:
            if record.content in self.bad:
                raise ValidationError("bad", code="unfit")
        for record in batch.records:
            made = derived_id("mem-", self.name, record.id)
            if made not in batch.never:
                self.made[made] = record.content.upper()
        return {}


@pytest.fixture
async def knowledge(root: Path, clock: FrozenClock) -> AsyncIterator[Knowledge]:
    opened = Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"), clock=clock)
    yield opened
    await opened.close()


def runner_of(knowledge: Knowledge, *stages: Any, at_once: int = 10) -> Runner:
    lock = knowledge.folder.tasks_lock
    return Runner(lock, knowledge.marks, knowledge.of, stages, knowledge.clock, at_once)


async def say(knowledge: Knowledge, *texts: str) -> list[str]:
    turns = [Episode(agent_id="bob", content=text, timestamp=knowledge.clock()) for text in texts]
    return [await knowledge.episodes.store(turn) for turn in turns]


async def test_what_is_due_is_done_once_in_portions(knowledge: Knowledge) -> None:
    await say(knowledge, *(f"turn {number}" for number in range(25)))
    stage, seen = Shouting(), list[int]()
    runner = runner_of(knowledge, stage)
    assert (await runner.backlog())[0].due == 25
    ran = await runner.run(progress=lambda so_far: seen.append(so_far.done["shouting"]))
    assert ran == RunOutcome({"shouting": 25}, is_over=True)
    assert (seen, stage.calls) == ([10, 20, 25], [(10, 0), (10, 4), (5, 4)])
    assert (len(stage.made), (await runner.backlog())[0]) == (25, Backlog("shouting", "episode"))
    assert await runner.run() == RunOutcome({"shouting": 0}, is_over=True)
    await say(knowledge, "one more")
    assert (await runner.run()).done == {"shouting": 1}
    assert stage.calls[-1] == (1, 4)


async def test_what_was_stored_as_one_change_stays_together(knowledge: Knowledge) -> None:
    await knowledge.episodes.store_many([Episode(agent_id="bob", content=f"turn {number}") for number in range(17)])
    await say(knowledge, "one more")
    stage = Shouting()
    await runner_of(knowledge, stage).run()
    assert [count for count, _ in stage.calls] == [17, 1]


async def test_another_process_goes_on_where_the_last_one_ended(knowledge: Knowledge, clock: FrozenClock) -> None:
    await say(knowledge, *(f"turn {number}" for number in range(25)))
    assert (await runner_of(knowledge, first := Shouting()).run(batches=1)).is_over is False
    other = Knowledge("bob", knowledge.settings, clock=clock)
    assert (await runner_of(other, second := Shouting()).run()).done == {"shouting": 15}
    await other.close()
    assert first.made.keys().isdisjoint(second.made)
    assert len(first.made | second.made) == 25


async def test_a_portion_that_was_not_marked_is_done_again_and_makes_the_same(
    knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    await say(knowledge, "a", "b", "c")

    async def die(*_: object) -> None:
        raise KeyboardInterrupt

    stage = Shouting()
    with monkeypatch.context() as patched:
        patched.setattr(StageCheckpoints, "keep", die)
        with pytest.raises(KeyboardInterrupt):
            await runner_of(knowledge, stage).run()
    made = dict(stage.made)
    await runner_of(knowledge, stage).run()
    assert (stage.made, len(stage.calls)) == (made, 2)


async def test_a_record_that_fails_holds_up_no_other_and_is_tried_again(
    knowledge: Knowledge, clock: FrozenClock
) -> None:
    ids = await say(knowledge, "a", "bad", "c")
    stage = Shouting(bad={"bad"})
    runner = runner_of(knowledge, stage)
    assert await runner.run() == RunOutcome({"shouting": 2}, failed=1, is_over=True)
    (backlog,) = await runner.backlog()
    assert (backlog.due, backlog.failed, backlog.given_up, backlog.codes) == (1, 1, 0, ("unfit",))
    assert (await runner.run()).failed == 0, "not before a pause"
    clock.advance(minutes=2)
    stage.bad.clear()
    assert (await runner.run()).done == {"shouting": 1}
    assert (await runner.backlog())[0] == Backlog("shouting", "episode")
    assert derived_id("mem-", "shouting", ids[1]) in stage.made


async def test_what_fails_again_and_again_is_given_up_until_a_new_version(
    knowledge: Knowledge, clock: FrozenClock
) -> None:
    await say(knowledge, "bad", "good")
    stage = Shouting(bad={"bad"})
    for _ in range(ATTEMPTS + 2):
        await runner_of(knowledge, stage).run()
        clock.advance(days=1)
    (backlog,) = await runner_of(knowledge, stage).backlog()
    assert (backlog.due, backlog.given_up) == (0, 1)
    assert len(stage.calls) == 2 + 1 + 2 * (ATTEMPTS - 1)
    newer = Shouting(version=2)
    assert (await runner_of(knowledge, newer).run()).done == {"shouting": 2}
    assert (await runner_of(knowledge, newer).backlog())[0] == Backlog("shouting", "episode")


async def test_the_doctor_names_what_failed(knowledge: Knowledge, clock: FrozenClock, root: Path) -> None:
    def codes() -> set[str]:
        found = examine_agent(root, "bob", now=clock(), settings=knowledge.settings).findings
        return {each.code for each in found if each.code.startswith("tasks")}

    await say(knowledge, "bad", "good")
    stage = Shouting(bad={"bad"})
    await runner_of(knowledge, stage).run()
    assert codes() == {"tasks_waiting"}
    for _ in range(ATTEMPTS):
        clock.advance(days=1)
        await runner_of(knowledge, stage).run()
    assert codes() == {"tasks_failed"}
    await runner_of(knowledge, Shouting(version=2)).run()
    assert codes() == set()


async def test_a_disk_without_room_stops_the_run_and_marks_nothing(knowledge: Knowledge) -> None:
    await say(knowledge, "a")
    runner = runner_of(knowledge, stage := Shouting(broken=True))
    with pytest.raises(StorageError):
        await runner.run()
    (backlog,) = await runner.backlog()
    assert (backlog.due, backlog.failed) == (1, 0)
    stage.broken = False
    assert (await runner.run()).done == {"shouting": 1}


async def test_what_somebody_forgot_is_not_made_again_even_when_nothing_else_knows_of_it(
    knowledge: Knowledge,
) -> None:
    ids = await say(knowledge, "a", "b")
    made = [derived_id("mem-", "shouting", one) for one in ids]
    await runner_of(knowledge, Shouting(away={made[0]})).run()
    newer = Shouting(version=2)
    await runner_of(knowledge, newer).run()
    assert newer.made.keys() == {made[1]}


async def test_how_long_the_oldest_has_waited_is_told(knowledge: Knowledge, clock: FrozenClock) -> None:
    first = clock()
    await say(knowledge, "a")
    clock.advance(hours=3)
    await say(knowledge, "b")
    (backlog,) = await runner_of(knowledge, Shouting()).backlog()
    assert (backlog.due, backlog.oldest) == (2, first)
    assert clock() - first == timedelta(hours=3)


async def test_an_older_copy_of_the_journal_is_worked_on_again(knowledge: Knowledge, clock: FrozenClock) -> None:
    await say(knowledge, "a")
    copy = (knowledge.folder.path / "episodes.yaml").read_bytes()
    await say(knowledge, "b", "c")
    await runner_of(knowledge, Shouting()).run()
    await knowledge.close()
    (knowledge.folder.path / "episodes.yaml").write_bytes(copy)
    other = Knowledge("bob", knowledge.settings, clock=clock)
    assert (await runner_of(other, Shouting()).run()).done == {"shouting": 1}
    await other.close()


async def test_a_compaction_makes_nothing_due_that_was_done(knowledge: Knowledge) -> None:
    ids = await say(knowledge, "a", "b")
    await knowledge.episodes.delete(ids[0])
    runner = runner_of(knowledge, Shouting())
    await runner.run()
    await knowledge.compact(timedelta(0))
    assert (await runner.backlog())[0].due == 0


async def test_without_an_agent_there_is_nothing_to_do_and_nothing_is_created(knowledge: Knowledge, root: Path) -> None:
    assert (await runner_of(knowledge, Shouting()).run()).is_over
    assert not (root / "bob").exists()


async def test_one_process_works_at_a_time_and_a_dead_one_holds_up_nobody(knowledge: Knowledge) -> None:
    await say(knowledge, "a")
    program = (
        "import os, sys\n"
        "from agent_memory.files.atomic import try_lock\n"
        f"try_lock(os.open({str(knowledge.folder.tasks_lock)!r}, os.O_RDWR | os.O_CREAT, 0o600))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    runner = runner_of(knowledge, Shouting())
    with subprocess.Popen(  # noqa: ASYNC220 - it begins at once
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY,
        env=environment(),
    ) as other:  # fmt: skip
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert await runner.run() == RunOutcome({}, is_busy=True)
        assert (await runner.backlog())[0].due == 1
        other.kill()
        await asyncio.to_thread(other.wait)
    assert (await runner.run()).done == {"shouting": 1}
