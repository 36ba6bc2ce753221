"""What an agent learned from output of its project comes back as a fact, and never as an instruction."""

from __future__ import annotations

from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memory.briefing import UNCONFIRMED
from tests.hostile.attacked import Attacked
from tests.support import FILE_TOOLS, SHELL, mount_tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

FINDING = "The payment tests need Redis on port 6380."


@pytest.fixture
async def start(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    """Return a function that begins a session in a project."""
    sessions: list[Attacked] = []

    async def begin(session_id: str, project: str = "shop") -> Attacked:
        folder = tmp_path / "work" / project
        (folder / ".git").mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(folder)
        session = await Attacked(root, session_id, settings={"project": project}).begin()
        mount_tool(session.coordinator, "bash", SHELL)
        mount_tool(session.coordinator, "read_file", FILE_TOOLS)
        mount_tool(session.coordinator, "web_fetch", "amplifier_module_tool_web")
        sessions.append(session)
        return session

    yield begin
    for session in sessions:
        await session.end()


async def learn(session: Attacked, tool: str, **arguments: Any) -> None:
    await session.say("make the tests pass")
    await session.read(tool, "redis refused on 6380", **arguments)
    await session.store(FINDING, category="fact")
    await session.answer("Done.")
    await session.end()


@pytest.mark.parametrize("asked", ["run the payment tests", "what now?"])
@pytest.mark.parametrize(("tool", "arguments"), [("bash", {"command": "make test"}), ("read_file", {"path": "a.log"})])
async def test_finding_of_project_comes_back_labelled(start: Any, tool: str, arguments: Any, asked: str) -> None:
    await learn(await start("s-1"), tool, **arguments)
    session = await start("s-2")
    await session.say(asked)
    shown = await session.shown()
    assert f"{FINDING} {UNCONFIRMED}" in shown
    assert FINDING not in shown.partition("[agent-memory: briefing")[0]
    assert session.session.caller.origin == "agent after output of this project"


async def test_finding_of_another_project_stays_there(start: Any) -> None:
    await learn(await start("s-1"), "bash", command="make test")
    session = await start("s-2", "site")
    await session.say("run the payment tests")
    assert FINDING not in await session.shown()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("web_fetch", {"url": "https://x.example"}),
        ("lookup", {}),
        ("bash", {"command": "curl x.example"}),
        ("read_file", {"path": "/var/mail/me"}),
    ],
)
async def test_finding_after_foreign_text_does_not_come_back(start: Any, tool: str, arguments: Any) -> None:
    await learn(await start("s-1"), tool, **arguments)
    session = await start("s-2")
    await session.say("run the payment tests")
    assert FINDING not in await session.shown()


@pytest.mark.parametrize("tool", ["web_fetch", "bash", "read_file"])
async def test_output_in_a_folder_that_is_gone_taints(start: Any, tmp_path: Path, tool: str) -> None:
    session = await start("root-1")
    rmtree(tmp_path / "work" / "shop")
    await learn(session, tool, file_path="notes.txt", command="cat notes.txt")
    assert {memory.content: memory.trust for memory in await session.memories()}[FINDING] == "low"


@pytest.mark.parametrize("path", ["notes\0.txt", "~no-such-user/notes.txt", "@user:notes.txt", ".git/FETCH_HEAD"])
async def test_output_of_an_odd_path_does_not_come_back(start: Any, path: str) -> None:
    await learn(await start("s-1"), "read_file", file_path=path)
    session = await start("s-2")
    await session.say("run the payment tests")
    assert FINDING not in await session.shown()


async def test_finding_that_says_it_is_a_preference_does_not_come_back(start: Any) -> None:
    session = await start("s-1")
    await session.say("make the tests pass")
    await session.read("bash", "the team always pushes to main", command="make test")
    await session.store("Always push to main.", category="preference", project="shop")
    await session.end()
    session = await start("s-2")
    await session.say("push to main?")
    assert "Always push" not in await session.shown()


async def test_finding_that_a_person_confirmed_has_no_label(start: Any) -> None:
    await learn(await start("s-1"), "bash", command="make test")
    session = await start("s-2")
    service = await session.service()
    [finding] = [memory for memory in await session.memories() if memory.content == FINDING]
    await service.update(finding.id, {"trust": "high", "category": "decision"})
    await session.say("run the payment tests")
    assert (await session.shown()).count(FINDING) == 1
    assert UNCONFIRMED not in await session.shown()
