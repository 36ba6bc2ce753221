"""Who wrote scratchpad.yaml: a person, or a tool of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier.session import MemorySession
from agent_memory.integrations.taint import ModelWrites
from agent_memory.settings import ToolSettings
from tests.support import FILE_TOOLS, coordinator_of, mount_tool, plan
from tests.unit.integrations.amplifier.conftest import host_of, session_on

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
def writes(clock_of_files: Clock) -> ModelWrites:
    return ModelWrites(clock_of_files)


@pytest.mark.parametrize(
    "arguments", [PAD, {"command": "cd x && cat >> scratchpad.yaml"}, {"edits": [{"file": "scratchpad.yaml"}]}]
)
def test_what_is_saved_while_a_tool_works_on_the_file_is_the_models(
    writes: ModelWrites, clock_of_files: Clock, arguments: Any
) -> None:
    writes.begin_turn()
    clock_of_files.now = 110
    writes.begin_call({"tool_input": arguments})
    clock_of_files.now = 112
    assert writes.wrote_at(111, is_tainted=False), "also before it has ended"
    assert writes.end_call({"tool_input": arguments})
    clock_of_files.now = 120
    assert [moment for moment in (105, 111, 115, 120) if writes.wrote_at(moment, is_tainted=False)] == [111]


def test_a_tool_whose_beginning_was_not_told_counts_from_the_turns_beginning(
    writes: ModelWrites, clock_of_files: Clock
) -> None:
    writes.begin_turn()
    clock_of_files.now = 110
    assert writes.end_call({"tool_input": PAD})
    assert writes.wrote_at(105, is_tainted=False)
    assert not writes.wrote_at(95, is_tainted=False)


@pytest.mark.parametrize("arguments", [None, 5, {}, {"path": "notes.txt"}, {"a": [["b"]]}])
def test_other_tools_say_nothing_of_the_file(writes: ModelWrites, arguments: Any) -> None:
    writes.begin_turn()
    writes.begin_call({"tool_input": arguments})
    assert not writes.end_call({"tool_input": arguments})
    assert not writes.wrote_at(100, is_tainted=False)


def test_with_a_strangers_text_a_whole_turn_is_in_doubt_and_the_users_time_is_not(
    writes: ModelWrites, clock_of_files: Clock
) -> None:
    writes.begin_turn()
    clock_of_files.now = 110
    assert writes.wrote_at(105, is_tainted=True)
    writes.end_turn()
    clock_of_files.now = 130
    assert writes.wrote_at(105, is_tainted=True), "it may be looked at later"
    assert not writes.wrote_at(105, is_tainted=False)
    assert not writes.wrote_at(120, is_tainted=True)


def call(name: str, *, by_id: bool) -> dict[str, Any]:
    """Return what a host tells of a call; without ids two of them may look the same."""
    return {"tool_input": {"path": "scratchpad.yaml"}, **({"tool_call_id": name} if by_id else {})}


@pytest.mark.parametrize("by_id", [True, False])
@pytest.mark.parametrize("ended", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_of_calls_under_way_together_each_covers_its_time(
    writes: ModelWrites, clock_of_files: Clock, ended: str, *, by_id: bool
) -> None:
    writes.begin_turn()
    for begin, name in enumerate("abc", start=1):
        clock_of_files.now = 100 + 10 * begin
        writes.begin_call(call(name, by_id=by_id))
    for end, name in enumerate(ended, start=1):
        clock_of_files.now = 130 + 10 * end
        assert writes.wrote_at(clock_of_files.now - 1, is_tainted=False), "the others are under way"
        assert writes.end_call(call(name, by_id=by_id))
    clock_of_files.now = 200
    theirs = [moment for moment in range(105, 200, 10) if writes.wrote_at(moment, is_tainted=False)]
    assert theirs == [115, 125, 135, 145, 155]


def test_calls_one_after_another_leave_the_time_between_to_a_person(writes: ModelWrites, clock_of_files: Clock) -> None:
    writes.begin_turn()
    for begin in (110, 130):
        clock_of_files.now = begin
        writes.begin_call(call("a", by_id=False))
        clock_of_files.now = begin + 10
        writes.end_call(call("a", by_id=False))
    clock_of_files.now = 150
    assert [moment for moment in range(105, 150, 10) if writes.wrote_at(moment, is_tainted=False)] == [115, 135]


def test_one_whose_end_is_never_told_ends_with_the_turn_and_a_late_end_still_counts(
    writes: ModelWrites, clock_of_files: Clock
) -> None:
    writes.begin_turn()
    writes.begin_call(call("a", by_id=True))
    clock_of_files.now = 110
    writes.end_turn()
    clock_of_files.now = 130
    assert [moment for moment in (105, 115, 125) if writes.wrote_at(moment, is_tainted=False)] == [105]
    writes.end_call(call("a", by_id=True))
    assert [moment for moment in (105, 115, 125) if writes.wrote_at(moment, is_tainted=False)] == [105, 115, 125]


def test_a_child_that_works_on_beyond_the_turn_is_still_at_work(writes: ModelWrites, clock_of_files: Clock) -> None:
    writes.begin_turn("root")
    writes.begin_call(call("a", by_id=False), "child")
    writes.end_turn("root")
    clock_of_files.now = 110
    assert writes.wrote_at(105, is_tainted=False)
    writes.end_calls("child")
    clock_of_files.now = 120
    assert not writes.wrote_at(115, is_tainted=False)


def test_of_many_calls_the_latest_are_remembered_and_all_that_are_under_way(
    writes: ModelWrites, clock_of_files: Clock
) -> None:
    writes.begin_call(call("first", by_id=True))
    for moment in range(200, 300):
        clock_of_files.now = moment
        writes.begin_call(call(str(moment), by_id=True))
        writes.end_call(call(str(moment), by_id=True))
    writes.end_call(call("first", by_id=True))
    clock_of_files.now = 400
    assert writes.wrote_at(150, is_tainted=False)


def test_of_many_calls_that_ended_the_first_are_left_behind(writes: ModelWrites, clock_of_files: Clock) -> None:
    for clock_of_files.now in range(200, 300):
        writes.begin_call(call(str(clock_of_files.now), by_id=True))
        writes.end_call(call(str(clock_of_files.now), by_id=True))
    assert [moment for moment in (200, 299) if writes.wrote_at(moment, is_tainted=False)] == [299]


@pytest.mark.parametrize(
    "command",
    [
        "cd {root}/bob; vi *",
        "cp x ~/notes/mem/bob/",
        "rm $HOME/notes/mem/bob/s*",
        "touch notes/mem/bob/x",
        "ls ~/notes/mem",
    ],
)
def test_the_folder_of_another_root_names_the_file_too(
    writes: ModelWrites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    event = {"tool_input": {"command": command.format(root=tmp_path / "notes/mem")}}
    assert not writes.end_call(event)
    writes.watch("~/notes/mem/")
    assert writes.end_call(event)


@pytest.mark.parametrize("root", ["~/mem", "mem", "/mem", "me\0m/x", "~nobody-of-that-name/mem"])
def test_a_word_of_a_short_root_alone_names_no_folder(writes: ModelWrites, root: str) -> None:
    writes.watch(root)
    assert not writes.end_call({"tool_input": "the mem of it"})


def test_arguments_that_contain_themselves_are_looked_through_once(writes: ModelWrites) -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert not writes.end_call({"tool_input": endless})


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[MemorySession]:
    session = session_on(coordinator_of(config=plan(agent_identity="bob")))
    mount_tool(host_of(session), "write_file", FILE_TOOLS)
    session.configure("test", ToolSettings, {"storage_root": str(tmp_path / "memory"), "embedder": "none"})
    yield session
    await session.release()


async def added_by(session: MemorySession, tool_input: Any, *, tainted: bool = False) -> tuple[str, str, bool]:
    """Add a pinned entry by a file tool; return whose it is taken for."""
    hooks = host_of(session).hooks
    await hooks.emit("prompt:submit", {"prompt": "x"})
    service = await session.require()
    await service.store({"content": "Prefers tea"})
    await service.settle()
    if tainted:
        await hooks.emit("tool:post", {"tool_name": "web_fetch", "tool_input": {"url": "https://x.example"}})
    pad = service.pad.file
    if tool_input is PAD:
        tool_input = {**PAD, "path": str(pad)}
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


async def test_two_tools_at_work_at_once_do_not_make_the_models_words_a_persons(session: MemorySession) -> None:
    hooks = host_of(session).hooks
    pad = f"{session.settings.storage_root}/bob/scratchpad.yaml"
    other = {"tool_name": "write_file", "tool_input": {"path": pad, "content": "another"}}

    async def run_other(_event: str, data: dict[str, Any]) -> None:
        if data["tool_input"]["content"] == PAD["content"]:
            await hooks.emit("tool:pre", other)
            await hooks.emit("tool:post", other)

    hooks.register("tool:pre", run_other, priority=0, name="parallel")
    assert await added_by(session, PAD) == ("assistant", "medium", False)


async def test_a_tool_that_names_the_folder_of_another_root_is_told_too(tmp_path: Path) -> None:
    session = session_on(coordinator_of(config=plan(agent_identity="bob")))
    where = {"storage_root": str(tmp_path / "elsewhere"), "embedder": "none"}
    session.configure("tool-memory-semantic", ToolSettings, where)
    try:
        command = {"command": f"cd {tmp_path / 'elsewhere'}/bob && sed -i s/a/b/ *"}
        assert await added_by(session, command) == ("assistant", "low", False), "it may have read a stranger's words"
    finally:
        await session.release()


async def test_after_a_child_ended_the_models_edits_are_still_the_roots_to_tell(session: MemorySession) -> None:
    root = await session.require()
    coordinator = coordinator_of("child-1", parent_id="root-1")
    child = MemorySession.of(coordinator)
    child.configure("test", ToolSettings, {"storage_root": session.settings.storage_root, "embedder": "none"})
    assert await child.require() is root
    heard: dict[str, list[str]] = {"root": [], "child": []}
    for name, hooks in (("root", host_of(session).hooks), ("child", coordinator.hooks)):

        async def hear(event: str, _data: dict[str, Any], name: str = name) -> None:
            heard[name].append(event)

        hooks.register("memory:stored", hear, name="listener")
    await child.release()
    assert await added_by(session, PAD) == ("assistant", "medium", False)
    assert heard == {"root": ["memory:stored"], "child": []}
