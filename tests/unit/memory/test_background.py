"""What is done behind an answer: waited for to its end, in whichever loop, and never for ever."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_memory.errors import StorageError
from agent_memory.memory import MemoryService
from agent_memory.memory.monitor import BackgroundTasks
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from pathlib import Path


async def test_settling_waits_for_what_the_work_begins_itself() -> None:
    background, done = BackgroundTasks(), []

    async def later() -> None:
        await asyncio.sleep(0)
        done.append("later")

    async def first() -> None:
        await asyncio.sleep(0)
        background.run(later())
        done.append("first")

    background.run(first())
    await background.settle()
    assert done == ["first", "later"]


async def test_settling_ends_although_what_is_done_has_not_been_taken_off_yet() -> None:
    background = BackgroundTasks()

    class Late(asyncio.Task[None]):
        def add_done_callback(self, callback: Any, **more: Any) -> None:
            if getattr(callback, "__name__", "") != "discard":
                super().add_done_callback(callback, **more)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(lambda loop, work, **more: Late(work, loop=loop, **more))
    background.run(asyncio.sleep(0))
    loop.set_task_factory(None)
    await asyncio.sleep(0.01)
    await asyncio.wait_for(background.settle(), 5)


async def test_what_several_sessions_wanted_to_begin_later_is_given_up_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_memory.memory.monitor._FIRST_ANSWER", 0)
    background, begun = BackgroundTasks(), []

    async def work() -> None:
        begun.append("work")

    for _ in range(2):
        background.after_first_answer(work)
    background.give_up()
    await asyncio.sleep(0.01)
    assert begun == []
    background.after_first_answer(work)
    await asyncio.sleep(0.01)
    await background.settle()
    assert begun == ["work"]


async def test_a_failure_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise StorageError("The disk is gone.")

    background = BackgroundTasks()
    background.run(fails())
    await background.settle()
    assert "background_work_failed" in caplog.text


# -- loops of their own -----------------------------------------------------------------------------------------------


@pytest.fixture
def plain(root: Path) -> MemoryService:
    """Return bob's memory for tests that run loops of their own."""
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    return MemoryService(FileStorage("bob", settings=settings), settings)


def test_one_service_in_many_loops_at_once_answers_each_and_renders_all(plain: MemoryService) -> None:
    shown = list[int]()

    async def use(name: int) -> None:
        for number in range(5):
            await plain.store({"content": f"thread {name} item {number}"})
            shown.append(len(await plain.scratchpad()))

    threads = [threading.Thread(target=lambda name=name: asyncio.run(use(name)), daemon=True) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(shown) == 40
    asyncio.run(plain.close())
    assert len(yaml.safe_load(plain.pad.file.read_text())) == 40


def test_what_a_loop_left_undone_is_rendered_at_the_end(plain: MemoryService) -> None:
    async def store() -> None:
        await plain.store({"content": "tea"})  # and the loop ends before anything is rendered

    asyncio.run(store())
    asyncio.run(plain.close())
    assert "content: tea" in plain.pad.file.read_text()


def test_what_had_not_begun_when_its_loop_ended_is_left_without_a_word(recwarn: pytest.WarningsRecorder) -> None:
    gc.collect()  # what tests before this one left behind
    recwarn.clear()
    background, done = BackgroundTasks(), list[str]()

    async def work() -> None:
        done.append("done")

    async def begin() -> None:
        background.run(work())
        for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as the loop does when it ends
            task.cancel()

    asyncio.run(begin())
    gc.collect()
    assert (done, [str(each.message) for each in recwarn]) == ([], [])
