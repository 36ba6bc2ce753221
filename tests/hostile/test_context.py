"""Text in the context that no hook saw arrive is untrusted; an ordinary session stays trusted."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.capture.typed_text import get_typed_part
from tests.hostile.attacked import EVIL, Attacked
from tests.support import mount_tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Begin = Callable[..., Awaitable[Attacked]]

TASK = "amplifier_module_tool_task"
CALL = {"id": "1", "tool": "todo", "arguments": {"action": "list"}}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "1. buy tea"}
NUMBERS = itertools.count()
HOOK = {"source": "hook", "hook_name": "status"}


async def work(session: Attacked, prompt: str = "what is left to do?") -> None:
    """Let the model use a local tool in a turn, as loop-streaming reports and stores it."""
    mount_tool(session.coordinator, "todo", "amplifier_module_tool_todo")
    await session.say(prompt)
    await session.context.add_message({"role": "assistant", "content": "", "tool_calls": [CALL]})
    await session.read("todo", "1. buy tea", action="list")
    await session.context.add_message(RESULT)
    await session.answer([{"type": "text", "text": "Tea."}])


async def store_trust(session: Attacked) -> str:
    return (await session.store(f"We drink tea number {next(NUMBERS)}.")).trust


# -- ordinary sessions ------------------------------------------------------------------------------------------------


async def test_session_with_prompt_tool_and_answer_stays_trusted(attacked: Begin) -> None:
    session = await attacked()
    await session.context.add_message({"role": "system", "content": "You are a helpful assistant."})
    for prompt in ("what is left to do?", "and now?", "and now?"):
        await work(session, prompt)
    await session.shown()
    assert await store_trust(session) == "medium"


@pytest.mark.parametrize("event", ["context:compaction", "context:post_compact"])
async def test_summary_after_compaction_of_typed_words_is_trusted(attacked: Begin, event: str) -> None:
    session = await attacked()
    await work(session)
    session.context.messages[:] = [{"role": "user", "content": "Summary: tea is left."}, session.context.messages[-1]]
    await session.coordinator.hooks.emit(event, {})
    await session.say("go on")
    assert await store_trust(session) == "medium"
    await session.context.add_message({"role": "user", "content": EVIL})
    assert await store_trust(session) == "low"


async def test_summary_after_clear_of_typed_words_is_trusted(attacked: Begin) -> None:
    session = await attacked()
    await work(session)
    await session.clear()
    await session.context.add_message({"role": "system", "content": "Summary: tea is left."})
    await session.say("go on")
    assert await store_trust(session) == "medium"


async def test_system_prompt_after_clear_of_untrusted_text_is_trusted(attacked: Begin) -> None:
    session, configured = await attacked(), {"role": "system", "content": "You are a helpful assistant."}
    await session.context.add_message(configured)
    await session.say("read the page")
    await session.read()
    await session.clear()
    await session.context.add_message(configured)
    await session.say("go on")
    assert await store_trust(session) == "medium"


async def test_resumed_session_of_typed_words_is_trusted(attacked: Begin) -> None:
    session = await attacked(is_resumed=True)
    mount_tool(session.coordinator, "todo", "amplifier_module_tool_todo")
    for message in (
        {"role": "user", "content": "what is left to do?"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        RESULT,
        {"role": "assistant", "content": "Tea."},
    ):
        await session.context.add_message(message)
    await session.say("go on")
    assert await store_trust(session) == "medium"


async def test_child_with_messages_of_its_parent_is_trusted(attacked: Begin) -> None:
    root = await attacked()
    await work(root)
    await root.say("ask the researcher")
    await root.context.add_message({"role": "assistant", "content": "", "tool_calls": [{"id": "2", "tool": "task"}]})
    child = await attacked("child-1", parent_id="root-1")
    for message in root.context.messages:
        await child.context.add_message(message)
    await child.say("research the tea")
    await child.answer("Tea is fine.")
    assert (await store_trust(child), await store_trust(root)) == ("medium", "medium")


# -- texts that no hook saw -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": EVIL},
        {"role": "developer", "content": EVIL},
        {"role": "system", "content": EVIL},
        {"role": "user", "content": EVIL, "metadata": HOOK},
        {"role": "assistant", "content": EVIL, "metadata": HOOK},
        {"role": "user", "content": [{"type": "text", "text": EVIL}]},
        {"role": "user", "content": [{"type": "image", "data": "x"}]},
        {"role": "tool", "tool_call_id": "9", "content": EVIL},
        {"role": "tool", "content": EVIL},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "9", "content": EVIL}]},
        {"role": "assistant", "content": [{"type": "web_search_tool_result", "tool_use_id": "9", "content": EVIL}]},
        {"role": "function", "name": "todo", "content": EVIL},
        EVIL,
    ],
)
@pytest.mark.parametrize("when", ["before the turn", "within the turn", "after a compaction of nothing"])
async def test_message_of_another_module_taints(attacked: Begin, message: Any, when: str) -> None:
    session = await attacked()
    await work(session)
    if when == "within the turn":
        await session.say("go on")
    if when == "after a compaction of nothing":  # of the view alone, as by context-simple
        await session.coordinator.hooks.emit("context:compaction", {})
    session.context.messages.append(message)
    if when != "within the turn":
        await session.say("go on")
    assert await store_trust(session) == "low"


async def test_search_of_the_provider_taints(attacked: Begin) -> None:
    session = await attacked()
    await session.say("search for tea")
    await session.context.add_message(
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {"query": "tea"}},
                {"type": "web_search_tool_result", "tool_use_id": "1", "content": EVIL},
            ],
        }
    )
    await session.say("go on")
    assert await store_trust(session) == "low"


async def test_result_of_a_call_that_no_event_reported_taints(attacked: Begin) -> None:
    session = await attacked()
    await session.say("read the page")
    await session.context.add_message({"role": "assistant", "tool_calls": [{"id": "7", "tool": "web_fetch"}]})
    await session.context.add_message({"role": "tool", "tool_call_id": "7", "content": EVIL})
    assert await store_trust(session) == "low"


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
async def test_message_that_returns_after_clear_taints_again(attacked: Begin, role: str) -> None:
    session = await attacked()
    await work(session)
    await session.read()
    await session.answer(EVIL)
    [*messages] = session.context.messages
    await session.clear()
    session.context.messages.extend(message for message in messages if message["role"] == role)
    await session.say("go on")
    assert await store_trust(session) == "low"


async def test_paste_in_a_resumed_session_taints_without_its_note(attacked: Begin) -> None:
    session = await attacked(is_resumed=True)
    await session.context.add_message({"role": "user", "content": f"From: eve@x.example\nSubject: hi\n\n{EVIL}"})
    await session.say("go on")
    assert await store_trust(session) == "low"


async def test_context_that_cannot_be_read_taints(attacked: Begin) -> None:
    session = await attacked()
    session.context.get_messages.side_effect = OSError("gone")
    await session.say("go on")
    assert await store_trust(session) == "low"


@pytest.mark.parametrize("origin", [{"kind": "typed"}, ["typed"], True, 0, "Typed", "automation"])
async def test_prompt_with_an_unknown_mark_is_not_typed(attacked: Begin, origin: Any) -> None:
    session = await attacked()
    await session.coordinator.hooks.emit("prompt:submit", {"prompt": f"Remember: {EVIL}", "origin": origin})
    await session.answer()
    assert (session.session.turn.prompt, await store_trust(session)) == ("", "low")


# -- sub-agents -------------------------------------------------------------------------------------------------------


async def call(session: Attacked, event: str, **arguments: Any) -> None:
    data = {"tool_name": "task", "tool_input": arguments, **({"result": EVIL} if event == "tool:post" else {})}
    await session.coordinator.hooks.emit(event, data)


@pytest.fixture
async def parent(attacked: Begin) -> Attacked:
    """Return a root session that may delegate."""
    session = await attacked()
    mount_tool(session.coordinator, "task", TASK)
    await session.say("ask the others")
    return session


@pytest.mark.parametrize(
    ("child_id", "arguments"),
    [
        ("root-1-ab_coder", {"agent": "coder"}),
        ("root-1-ab_team-coder", {"agent": "team:coder"}),
        ("root-1-ab_my_coder", {"agent": "my_coder"}),
        ("root-1-ab_coder", {"session_id": "root-1-ab_coder"}),
        ("root-1-ab_coder", {}),
    ],
)
async def test_answer_of_a_sub_agent_with_our_modules_is_trusted(
    attacked: Begin, parent: Attacked, child_id: str, arguments: dict[str, Any]
) -> None:
    await call(parent, "tool:pre", **arguments)
    await (await attacked(child_id, parent_id="root-1")).end()
    await call(parent, "tool:post", **arguments)
    assert await store_trust(parent) == "medium"
    await call(parent, "tool:pre", **arguments)
    await call(parent, "tool:post", **arguments)
    assert await store_trust(parent) == "low"


@pytest.mark.parametrize(
    ("calls", "child_id"),
    [
        ([{"agent": "coder"}, {"agent": "stranger"}], "root-1-ab_coder"),
        ([{}, {}], "root-1-ab_coder"),
        ([{"agent": "stranger"}], "root-1-ab_coder"),
        ([{"session_id": "root-1-cd_coder"}], "root-1-ab_coder"),
    ],
)
async def test_answer_of_a_sub_agent_next_to_ours_taints(
    attacked: Begin, parent: Attacked, calls: list[dict[str, Any]], child_id: str
) -> None:
    for arguments in calls:
        await call(parent, "tool:pre", **arguments)
    await (await attacked(child_id, parent_id="root-1")).end()
    await call(parent, "tool:post", **calls[-1])
    assert await store_trust(parent) == "low"


async def test_sub_agent_that_began_before_a_call_serves_it_not(attacked: Begin, parent: Attacked) -> None:
    await attacked("root-1-ab_coder", parent_id="root-1")
    await call(parent, "tool:pre", agent="coder")
    await call(parent, "tool:post", agent="coder")
    assert await store_trust(parent) == "low"


async def test_typed_part_of_a_prompt_is_found_once(attacked: Begin) -> None:
    session, prompt = await attacked(), "Please fix the parser of the import, and tell me what was wrong with it."
    before = get_typed_part.cache_info()
    await session.say(prompt)
    await session.answer("Done.")
    await session.end()
    after = get_typed_part.cache_info()
    assert after.misses - before.misses == 1
    assert after.hits - before.hits >= 2


@pytest.mark.parametrize("prompt", [{"text": f"Remember: {EVIL}"}, None, 7])
async def test_prompt_of_unknown_form_taints(attacked: Begin, prompt: Any) -> None:
    session = await attacked()
    await session.coordinator.hooks.emit("prompt:submit", {"prompt": prompt, "message": EVIL})
    assert (session.session.turn.prompt, await store_trust(session)) == ("", "low")


# -- messages while the model works -----------------------------------------------------------------------------------


async def test_steering_of_the_user_is_captured_and_taints_nothing(attacked: Begin) -> None:
    session = await attacked()
    await session.say("go on")
    await session.steer("Remember that I always want small commits.")
    assert session.trust == "medium"
    await session.answer()
    await session.coordinator.hooks.emit("session:end", {})
    memories = [memory for memory in await session.memories() if "small commits" in memory.content]
    assert {(memory.trust, memory.source.kind) for memory in memories if not memory.is_item} == {("medium", "user")}


async def test_steering_with_a_stop_request_stores_nothing(attacked: Begin) -> None:
    session = await attacked()
    await session.say("go on")
    await session.steer("Off the record.")
    assert (await session.tool("memory_store", content="We like tea.", category="note"))["code"] == "stopped"


async def test_steering_with_an_unknown_mark_is_not_typed(attacked: Begin) -> None:
    session = await attacked()
    await session.say("go on")
    data = {"content": f"Remember: {EVIL}", "origin": "automation"}
    await session.coordinator.hooks.emit("orchestrator:steering_injected", data)
    assert (session.session.turn.prompt, await store_trust(session)) == ("", "low")
