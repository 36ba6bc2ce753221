"""The session of the OpenAI Agents SDK, with or without its package."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapter_protocols import use_protocols

use_protocols("agents")

from agent_memory.errors import IdentityError, ValidationError  # noqa: E402
from agent_memory.integrations.openai_session import AgentMemorySession  # noqa: E402 - it may use the stand-in
from agent_memory.journal import Change, Journal  # noqa: E402
from agent_memory.models.verbatim import VERBATIM  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def session(root: Path) -> Iterator[AgentMemorySession]:
    session = AgentMemorySession("s1", "bob", root=root)
    yield session
    session.close()


def make_items(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


async def test_items_are_added_limited_popped_and_cleared(session: AgentMemorySession) -> None:
    items = make_items("a", "b", "  Ünïcode\n\0\ud800", "d")
    assert await session.pop_item() is None
    await session.add_items(items)
    await session.add_items([])
    assert await session.get_items() == items
    assert await session.get_items(limit=2) == items[2:]
    assert await session.get_items(limit=0) == []
    assert await session.pop_item() == items[3]
    await session.clear_session()
    assert await session.get_items() == []


async def test_settings_limit_the_items(root: Path) -> None:
    session = AgentMemorySession("s1", "bob", root=root, session_settings={"limit": 1})
    await session.add_items(make_items("a", "b"))
    assert await session.get_items() == make_items("b")
    assert await session.get_items(2) == make_items("a", "b")
    session.close()


async def test_sessions_do_not_see_each_other(session: AgentMemorySession, root: Path) -> None:
    rival = AgentMemorySession("s2", "bob", root=root)
    await session.add_items(make_items("a"))
    await rival.add_items(make_items("b"))
    assert await session.get_items() == make_items("a")
    await rival.clear_session()
    assert await session.get_items() == make_items("a")
    rival.close()


async def test_failed_add_leaves_nothing(session: AgentMemorySession) -> None:
    with pytest.raises(TypeError):
        await session.add_items([*make_items("a"), {"content": object()}])
    await session.add_items(make_items("b"))
    assert await session.get_items() == make_items("b")


async def test_damaged_items_are_skipped_and_not_counted(session: AgentMemorySession, root: Path) -> None:
    await session.add_items(make_items("a", "b"))
    session.close()
    with Journal(root / "bob" / VERBATIM.journal, {VERBATIM.name}).locked() as writer:
        (last,) = [entry.changes[-1] for entry in writer.update.entries][-1:]
        writer.append([Change("put", VERBATIM.name, "vrb-00000000000a", {**last.data, "content": "not JSON {{{"})])
    again = AgentMemorySession("s1", "bob", root=root)
    assert await again.get_items(limit=2) == make_items("a", "b")
    assert await again.pop_item() == make_items("b")[0]
    again.close()


async def test_session_refuses_items_while_memory_is_off(session: AgentMemorySession, root: Path) -> None:
    await session.add_items(make_items("a"))
    (root / "consent.yaml").write_text("enabled: false\n")
    with pytest.raises(IdentityError, match="Memory is off"):
        await session.add_items(make_items("b"))
    assert await session.get_items() == make_items("a")
    await session.clear_session()
    assert await session.get_items() == []


async def test_refusing_session_adds_no_secret(root: Path) -> None:
    session = AgentMemorySession("s1", "bob", root=root, refuse_secrets=True)
    with pytest.raises(ValidationError, match="has a secret"):
        await session.add_items(make_items("fine", f"use {SECRET}"))
    assert await session.get_items() == []
    session.close()


@pytest.mark.parametrize("act", ["add", "pop", "clear"])
async def test_cancelled_call_is_finished_before_the_next(session: AgentMemorySession, act: str) -> None:
    await session.add_items(make_items("a", "b"))
    work = {"add": lambda: session.add_items(make_items("c")), "pop": session.pop_item, "clear": session.clear_session}
    task = asyncio.ensure_future(work[act]())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    expected = {"add": make_items("a", "b", "c"), "pop": make_items("a"), "clear": []}
    assert await session.get_items() == expected[act]


async def test_closed_session_refuses_calls(root: Path) -> None:
    session = AgentMemorySession("s1", "bob", root=root)
    session.close()
    session.close()
    with pytest.raises(RuntimeError, match="AgentMemorySession is closed"):
        await session.add_items([])


def test_session_serves_several_event_loops(session: AgentMemorySession) -> None:
    for text in "ab":
        asyncio.run(session.add_items(make_items(text)))
    assert asyncio.run(session.get_items()) == make_items("a", "b")
