"""The main job through the kernel: a session of amplifier-core starts as bob and stores; the next one knows it."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core import AmplifierSession

from agent_memory.scratchpad import MARKER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

MODULES = Path(__file__).parents[2] / "modules"
LOOP = '''
"""An orchestrator whose model is the prompt: a JSON list of tool calls; it answers what they gave and what it saw."""
import json
__amplifier_module_type__ = "orchestrator"
class Loop:
    async def execute(self, prompt, context, providers, tools, hooks, **kwargs):
        await hooks.emit("prompt:submit", {"prompt": prompt})
        await context.add_message({"role": "user", "content": prompt})
        view = await context.get_messages_for_request()
        answers = []
        for name, arguments in json.loads(prompt.partition("|")[2] or "[]"):
            result = await tools[name].execute(arguments)
            await hooks.emit("tool:post", {"tool_name": name, "result": str(result)})
            answers.append(result.output if result.success else result.error)
        await context.add_message({"role": "assistant", "content": "done"})
        await hooks.emit("orchestrator:complete", {"orchestrator": "loop-test", "turn_count": 1, "status": "success"})
        return json.dumps({"view": view, "answers": answers})
async def mount(coordinator, config=None):
    await coordinator.mount("orchestrator", Loop())
'''


class Resolver:
    """Finds our modules in the repository and the test's loop beside the test."""

    def __init__(self, places: dict[str, Path]) -> None:
        self._places = places

    def resolve(self, module_id: str, source_hint: Any = None, profile_hint: Any = None) -> Any:
        return types.SimpleNamespace(resolve=lambda: self._places[module_id])


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the loop; one for all tests, since a process loads a module from one place only."""
    package = tmp_path_factory.mktemp("loop") / "amplifier_module_loop_agent_memory_test"
    package.mkdir()
    (package / "__init__.py").write_text(LOOP)
    return package.parent


@pytest.fixture
async def start(loop: Path, root: Path) -> AsyncIterator[Callable[..., Any]]:
    """Return a function that starts a session with the bundle's tools and scratchpad."""
    places = {path.name: path for path in MODULES.iterdir() if path.is_dir()}
    places["loop-agent-memory-test"] = loop
    running: list[AmplifierSession] = []

    async def starting(session_id: str, *, parent_id: str | None = None, **module: Any) -> AmplifierSession:
        shared = {"storage_root": str(root), "embedder": "none", **module}
        config = {
            "session": {
                "orchestrator": {"module": "loop-agent-memory-test"},
                "context": {"module": "context-memory-scratchpad", "config": shared},
            },
            "tools": [{"module": "tool-memory-semantic", "config": shared}],
        }
        session = AmplifierSession(config, session_id=session_id, parent_id=parent_id)
        await session.coordinator.mount("module-source-resolver", Resolver(places))
        await session.initialize()
        running.append(session)
        return session

    yield starting
    for session in running:
        await session.cleanup()


async def turn(session: AmplifierSession, words: str, *calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(await session.execute(f"{words}|{json.dumps(calls)}"))
    return reply


def pad_of(reply: dict[str, Any]) -> str:
    return "".join(message["content"] for message in reply["view"] if message["content"].startswith(MARKER))


async def test_what_was_said_today_is_known_tomorrow(start: Callable[..., Any]) -> None:
    today = await start("today")
    first = await turn(
        today,
        "start as bob with memory enabled",
        ("memory_activate", {"agent_id": "bob"}),
        ("memory_store", {"content": "Prefers dark mode", "category": "preference"}),
    )
    activated, stored = first["answers"]
    assert (activated["agent_id"], activated["memories"]) == ("bob", 0)
    assert stored["in_scratchpad"]
    assert 'Memory is on for "me"' in pad_of(first)
    await today.cleanup()
    tomorrow = await start("tomorrow", agent_id="bob")
    second = await turn(tomorrow, "hello", ("memory_search", {"query": "dark mode"}))
    assert "Prefers dark mode" in pad_of(second)
    assert [hit["id"] for hit in second["answers"][0]["results"]] == [stored["memory_id"]]


async def test_two_sessions_at_once_do_not_take_each_others_agent(start: Callable[..., Any]) -> None:
    one, two = await start("one"), await start("two")
    await turn(one, "start as bob", ("memory_activate", {"agent_id": "bob"}))
    answers = (await turn(two, "hello", ("memory_status", {"detail": "short"})))["answers"]
    assert answers[0]["agent_id"] == "me"


async def test_a_child_has_its_roots_memory_and_is_spared_the_scratchpad(start: Callable[..., Any]) -> None:
    root_session = await start("root", agent_id="bob")
    await turn(root_session, "hello", ("memory_store", {"content": "Prefers tea", "category": "preference"}))
    child = await start("root-child_coder", parent_id="root", agent_id="eve")
    reply = await turn(
        child,
        "start as eve",
        ("memory_status", {"detail": "short"}),
        ("memory_activate", {"agent_id": "eve"}),
        ("memory_search", {"query": "tea"}),
    )
    status, refused, found = reply["answers"]
    assert status["agent_id"] == "bob"
    assert refused["code"] == "child_session"
    assert found["total_found"] == 1
    assert pad_of(reply) == ""
