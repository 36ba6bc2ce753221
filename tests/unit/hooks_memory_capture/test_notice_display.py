"""The line that says once that memory is on: who shows it, when, for whom, and what it promises."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.capture.user_requests import find_storing_request
from agent_memory.integrations.amplifier import MemorySession
from agent_memory.integrations.amplifier.hooks.change_lines import compose_notice
from agent_memory.settings import ServiceSettings
from amplifier_module_hooks_memory_capture import mount
from tests.rows import check_rows
from tests.support import coordinator_of, plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Mount = Callable[..., Awaitable[Any]]

LINE = (
    'Memory is on for "bob". It keeps what you say with words such as "remember" or "always", shows each with an undo, '
    'sends nothing anywhere. Off: say "memory off" or run agent-memory consent off.'
)


class Display:
    """A host's display that keeps what it was to show."""

    def __init__(self) -> None:
        self.messages: list[tuple[str, ...]] = []

    def show_message(self, *message: str) -> None:
        """Keep a message."""
        self.messages.append(message)


@pytest.fixture
async def mounted(root: Path) -> AsyncIterator[Mount]:
    """Return a function that mounts the module on a coordinator with a display."""
    cleanups: list[Any] = []

    async def mounting(display: Any, session_id: str = "one", **session: Any) -> Any:
        settings = session.pop("settings", {"agent_id": "bob"})
        coordinator = coordinator_of(session_id, **session)
        coordinator.display_system = display
        cleanups.append(await mount(coordinator, {"storage_root": str(root), "embedder": "none", **settings}))
        return coordinator

    yield mounting
    for cleanup in cleanups:
        await cleanup()


async def end_turn(coordinator: Any) -> None:
    await coordinator.hooks.emit("orchestrator:complete", {"status": "success"})


async def request(coordinator: Any) -> str | None:
    """Return what is injected into a request."""
    result = await coordinator.hooks.emit("provider:request", {"provider": "scripted", "iteration": 1})
    assert result.action == ("continue" if result.context_injection is None else "inject_context")
    text: str | None = result.context_injection
    return text


async def test_notice_with_display_is_shown_once_for_each_agent(mounted: Mount) -> None:
    display = Display()
    first, second = await mounted(display), await mounted(display, "two")
    assert await request(first) is None
    assert display.messages == [], "the agent may still change in this turn"
    for coordinator in (first, first, second):
        await end_turn(coordinator)
        assert await request(coordinator) is None
    assert display.messages == [(LINE, "info", "agent-memory")]
    await end_turn(await mounted(display, "three", settings={}))
    assert [message[0].partition(".")[0] for message in display.messages] == [
        'Memory is on for "bob"',
        'Memory is on for "me"',
    ]


async def test_notice_with_display_follows_a_change_of_agent(mounted: Mount) -> None:
    display = Display()
    coordinator = await mounted(display, settings={})
    await end_turn(coordinator)
    coordinator.register_capability("agent_identity", "ann")
    await end_turn(coordinator)
    assert ['"me"' in message[0] for message in display.messages] == [True, False]


async def test_notice_without_display_is_in_every_request_of_second_turn(mounted: Mount) -> None:
    coordinator = await mounted(None)
    assert await request(coordinator) is None
    await end_turn(coordinator)
    for _ in range(2):
        text = await request(coordinator)
        assert text is not None
        assert text.startswith("[agent-memory:"), "capture drops what begins so"
        assert text.endswith(LINE)
    await end_turn(coordinator)
    assert await request(coordinator) is None
    later = await mounted(None, "two")
    await end_turn(later)
    assert await request(later) is None


@pytest.mark.parametrize(
    ("session", "settings"),
    [
        ({"config": plan(memory={"enabled": False})}, {"agent_id": "bob"}),
        ({"config": plan(memory={"mode": "ask"})}, {"agent_id": "bob"}),
        ({"config": plan(memory={"mode": "manual"})}, {"agent_id": "bob"}),
        ({"config": plan(tenant_id="acme")}, {}),
        ({"parent_id": "root"}, {"agent_id": "bob"}),
        ({}, {"agent_id": "../x"}),
    ],
    ids=["off", "ask", "manual", "tenant", "child", "wrong name"],
)
async def test_notice_where_it_would_be_untrue_is_not_shown(
    mounted: Mount, root: Path, session: dict[str, Any], settings: dict[str, Any]
) -> None:
    display = Display()
    coordinator = await mounted(display, settings=settings, **session)
    await end_turn(coordinator)
    assert await request(coordinator) is None
    assert display.messages == []
    assert not root.exists()


async def test_notice_whose_display_fails_leaves_the_turn_alone(mounted: Mount) -> None:
    def show_message(*_message: str) -> None:
        raise OSError("closed")

    coordinator = await mounted(SimpleNamespace(show_message=show_message))
    await end_turn(coordinator)
    assert await request(coordinator) is None


async def test_notice_on_read_only_root_is_left_out(mounted: Mount, root: Path) -> None:
    display = Display()
    root.write_text("a file where the folder belongs")
    coordinator = await mounted(display)
    await end_turn(coordinator)
    assert display.messages == []


@check_rows(
    ("settings", "is_local"),
    [({}, True), ({"embedder": "none"}, True), ({"embedder": "openai"}, False), ({"backend": "server"}, False)],
)
def test_notice_promises_nothing_that_settings_break(settings: dict[str, Any], is_local: bool) -> None:
    line = compose_notice("bob", ServiceSettings(**settings))
    assert ("sends nothing anywhere" in line) is is_local
    assert line.startswith('Memory is on for "bob". ')


@pytest.mark.parametrize("prompt", ["memory off", "Memory off.", "memory off please", "Ok. Memory off!"])
async def test_printed_words_of_notice_stop_storing(mounted: Mount, prompt: str) -> None:
    assert 'say "memory off"' in LINE
    assert find_storing_request(prompt) == "stop"
    coordinator = await mounted(Display())
    await coordinator.hooks.emit("prompt:submit", {"prompt": prompt})
    assert MemorySession.of(coordinator).consent.is_stopped
    await coordinator.hooks.emit("prompt:submit", {"prompt": "memory on"})
    assert not MemorySession.of(coordinator).consent.is_stopped


@check_rows(
    "prompt",
    ["Why is memory off?", "The memory offset is wrong", "memory off-heap is faster", "turn memory off in nginx"],
)
def test_words_near_memory_off_stop_nothing(prompt: str) -> None:
    assert find_storing_request(prompt) is None
