"""Who wrote scratchpad.yaml: a person, or a tool of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.host.hands import Hands
from agent_memory.host.session import MemorySession
from tests.support import coordinator_of, plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PAD = {"path": "/home/bob/.amplifier/memory/bob/scratchpad.yaml", "content": "…"}


class Clock:
    """Tells what it is set to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock_of_files() -> Clock:
    return Clock()


@pytest.fixture
def hands(clock_of_files: Clock) -> Hands:
    return Hands(clock_of_files)


@pytest.mark.parametrize(
    "arguments", [PAD, {"command": "cd x && cat >> scratchpad.yaml"}, {"edits": [{"file": "scratchpad.yaml"}]}]
)
def test_what_is_saved_while_a_tool_works_on_the_file_is_the_models(
    hands: Hands, clock_of_files: Clock, arguments: Any
) -> None:
    hands.begin_turn()
    clock_of_files.now = 110
    hands.begin_call(arguments)
    clock_of_files.now = 112
    assert hands.wrote_at(111, is_tainted=False), "also before it has ended"
    assert hands.end_call(arguments)
    clock_of_files.now = 120
    assert [moment for moment in (105, 111, 115, 120) if hands.wrote_at(moment, is_tainted=False)] == [111]


def test_a_tool_whose_beginning_was_not_told_counts_from_the_turns_beginning(
    hands: Hands, clock_of_files: Clock
) -> None:
    hands.begin_turn()
    clock_of_files.now = 110
    assert hands.end_call(PAD)
    assert hands.wrote_at(105, is_tainted=False)
    assert not hands.wrote_at(95, is_tainted=False)


@pytest.mark.parametrize("arguments", [None, 5, {}, {"path": "notes.txt"}, {"a": [["b"]]}])
def test_other_tools_say_nothing_of_the_file(hands: Hands, arguments: Any) -> None:
    hands.begin_turn()
    hands.begin_call(arguments)
    assert not hands.end_call(arguments)
    assert not hands.wrote_at(100, is_tainted=False)


def test_with_a_strangers_text_a_whole_turn_is_in_doubt_and_the_users_time_is_not(
    hands: Hands, clock_of_files: Clock
) -> None:
    hands.begin_turn()
    clock_of_files.now = 110
    assert hands.wrote_at(105, is_tainted=True)
    hands.end_turn()
    assert not hands.wrote_at(110, is_tainted=True)


def test_arguments_that_contain_themselves_are_looked_through_once(hands: Hands) -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert not hands.end_call(endless)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[MemorySession]:
    coordinator = coordinator_of(config=plan(agent_identity="bob"))
    session = MemorySession.of(coordinator)
    session._shared["test"] = {"storage_root": str(tmp_path / "memory"), "embedder": "none"}
    yield session
    await session.release()


async def added_by(session: MemorySession, tool_input: Any, *, tainted: bool = False) -> tuple[str, str, bool]:
    """Add a pinned entry by a file tool; return whose it is taken for."""
    hooks = session._coordinator.hooks
    await hooks.emit("prompt:submit", {"prompt": "x"})
    service = await session.require()
    await service.store({"content": "Prefers tea"})
    await service.settle()
    if tainted:
        await hooks.emit("tool:post", {"tool_name": "web_fetch", "tool_input": {"url": "https://x.example"}})
    pad = service._manager.file
    await hooks.emit("tool:pre", {"tool_name": "write_file", "tool_input": tool_input})
    pad.write_text(pad.read_text().replace("# rendered", "- content: Works in Oslo\n  pinned: true\n# rendered"))
    await hooks.emit("tool:post", {"tool_name": "write_file", "tool_input": tool_input})
    found = {memory.content: memory for memory in await service.list_recent()}["Works in Oslo"]
    await service.settle()
    return found.source.kind, found.trust, found.pinned


async def test_what_a_tool_of_the_model_writes_there_is_the_models_and_pins_nothing(session: MemorySession) -> None:
    assert await added_by(session, PAD) == ("assistant", "medium", False)


async def test_what_a_person_writes_there_is_a_persons(session: MemorySession) -> None:
    assert await added_by(session, {"path": "notes.txt"}) == ("user", "high", True)


@pytest.mark.parametrize("tool_input", [PAD, {"path": "notes.txt"}])
async def test_with_a_strangers_text_in_the_conversation_it_has_low_trust(
    session: MemorySession, tool_input: Any
) -> None:
    assert await added_by(session, tool_input, tainted=True) == ("assistant", "low", False)
