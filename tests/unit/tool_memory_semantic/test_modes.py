"""What the model may store by itself: by the mode, and by what the user asks for in the turn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import Observation, Source
from tests.support import plan

if TYPE_CHECKING:
    import os

    from agent_memory.models import Candidate
    from tests.unit.tool_memory_semantic.conftest import Mount

FACT = "The user prefers tabs over spaces."


class Tools:
    """The tools of a session in a mode, in which the user may have said something."""

    def __init__(self, coordinator: Any) -> None:
        self.coordinator = coordinator
        self.tools = coordinator.get("tools")
        self.session = MemorySession.of(coordinator)

    async def say(self, prompt: str) -> None:
        await self.coordinator.hooks.emit("prompt:submit", {"prompt": prompt})

    async def call(self, name: str, **arguments: Any) -> Any:
        result = await self.tools[name].execute(arguments)
        return result.output if result.success else result.error

    async def store(self, content: str, category: str = "preference", **more: Any) -> Any:
        return await self.call("memory_store", content=content, category=category, **more)

    async def waiting(self) -> list[Candidate]:
        async with opened_inbox(await self.session.require()) as inbox:
            return await inbox.waiting()


@pytest.fixture
async def tools_in(mounted: Mount) -> Any:
    async def begin(**memory: Any) -> Tools:
        return Tools(await mounted(config=plan(memory=memory)))

    return begin


async def test_with_mode_ask_what_the_model_stores_by_itself_waits(tools_in: Any) -> None:
    tools = await tools_in(mode="ask")
    await tools.say("Which editor settings do we use? I prefer tabs.")
    answer = await tools.store(FACT, tags=["editor"])
    (waiting,) = await tools.waiting()
    assert (answer["stored"], answer["inbox_id"]) == (False, waiting.id)
    assert (waiting.content, waiting.category, waiting.tags) == (FACT, "preference", ["editor"])
    assert (waiting.via, waiting.trust, waiting.source.detail) == ("tool", "medium", "memory_store")
    assert (await tools.call("memory_list_recent"))["count"] == 0
    assert (await tools.call("memory_search", query="tabs or spaces"))["results"] == []
    status = await tools.call("memory_status")
    assert (status["mode"], status["inbox"]) == ("ask", 1)
    assert await tools.store(FACT) == {"stored": False, "reason": "waiting"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_store", {"content": FACT, "category": "note"}),
        ("memory_update", {"memory_id": "ID", "content": "The user prefers spaces."}),
        ("memory_search", {"query": "tabs"}),
        ("memory_list_recent", {}),
        ("memory_status", {}),
    ],
)
async def test_tool_call_checks_each_consent_file_once(
    tools_in: Any, root: Path, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    tools = await tools_in()
    stored = await tools.store("The user likes tea.")
    await tools.session.lines.settle()
    checked: list[str] = []
    stat = Path.stat

    def note_stat(path: Path, **options: Any) -> os.stat_result:
        if path.name == "consent.yaml" and options.get("follow_symlinks", True):
            checked.append(path.parent.name)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", note_stat)
    given = {name: stored["memory_id"] if value == "ID" else value for name, value in arguments.items()}
    answer = await tools.call(tool, **given)
    assert "code" not in answer
    assert sorted(checked) == sorted([root.name, "bob"])


@pytest.mark.parametrize("mode", ["ask", "manual"])
async def test_what_the_user_asks_for_is_stored_in_every_mode(tools_in: Any, mode: str) -> None:
    tools = await tools_in(mode=mode)
    await tools.say("Remember that I prefer tabs.")
    stored = await tools.store(FACT)
    assert stored["memory_id"].startswith("mem-")
    await tools.say("I prefer spaces, correct that.")
    assert "fields" in await tools.call("memory_update", memory_id=stored["memory_id"], content="They prefer spaces.")
    assert await tools.waiting() == []


@pytest.mark.parametrize("mode", ["off", "manual", "ask"])
async def test_the_model_does_not_reword_a_memory_by_itself(tools_in: Any, mode: str) -> None:
    tools = await tools_in(mode=mode)
    await tools.say("Remember that I prefer tabs.")
    known = (await tools.store(FACT))["memory_id"]
    await tools.say("What is the weather like?")
    refused = await tools.call("memory_update", memory_id=known, content="The user hates tea.")
    assert (refused["code"], known in refused["message"]) == ("needs_user", True)
    assert (await tools.call("memory_update", memory_id=known, pinned=True))["fields"] == ["pinned"]


@pytest.mark.parametrize("mode", ["manual", "ask"])
@pytest.mark.parametrize(
    "changes",
    [
        {"tags": ["send-diffs-to-evil"]},
        {"category": "decision"},
        {"links": [{"rel": "because", "id": "mem-000000000001"}]},
    ],
)
async def test_update_of_any_text_needs_the_user(tools_in: Any, mode: str, changes: dict[str, Any]) -> None:
    tools = await tools_in(mode=mode)
    await tools.say("Remember that I prefer tabs.")
    known = (await tools.store(FACT))["memory_id"]
    await tools.say("What is the weather like?")
    assert (await tools.call("memory_update", memory_id=known, **changes))["code"] == "needs_user"
    await tools.say(f"Correct {known}: give it that.")
    assert (await tools.call("memory_update", memory_id=known, **changes)).get("code") != "needs_user"


async def test_update_into_a_category_with_a_mode_needs_the_user(tools_in: Any) -> None:
    tools = await tools_in(categories={"decision": "manual"})
    await tools.say("Which editor settings do we use?")
    known = (await tools.store(FACT))["memory_id"]
    assert (await tools.call("memory_update", memory_id=known, category="decision"))["code"] == "needs_user"
    assert (await tools.call("memory_update", memory_id=known, tags=["editor"]))["fields"] == ["tags"]


async def test_update_of_another_groups_memory_is_unknown_in_mode_ask(
    tools_in: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = await tools_in(mode="ask")
    values = {"content": FACT, "group": "acme:kim", "source": {"kind": "extraction", "detail": "talk.said"}}
    theirs = (await (await tools.session.require()).store(values)).memory.id
    monkeypatch.setattr(tools.session, "group", lambda: "acme:ann")
    await tools.say("Hello")
    assert (await tools.call("memory_update", memory_id=theirs, content="Else."))["code"] == "unknown_id"


async def test_with_mode_manual_the_model_stores_nothing_by_itself(tools_in: Any) -> None:
    tools = await tools_in(categories={"preference": "manual"})
    await tools.say("I prefer tabs.")
    assert (await tools.store(FACT))["code"] == "needs_user"
    assert (await tools.call("memory_list_recent"))["count"] == 0
    assert "memory_id" in await tools.store("The build runs on Kestrel.", "decision")


async def test_a_program_that_has_no_user_may_use_the_tools_with_mode_manual(tools_in: Any) -> None:
    tools = await tools_in(mode="manual")
    assert "memory_id" in await tools.store(FACT)


async def test_what_would_replace_a_memory_does_so_when_it_is_accepted(tools_in: Any) -> None:
    tools = await tools_in(mode="ask")
    await tools.say("Remember that I prefer tabs.")
    old = (await tools.store(FACT))["memory_id"]
    await tools.say("What is new?")
    answer = await tools.store("The user prefers spaces now.", supersedes=old)
    service = await tools.session.require()
    assert (await service.storage.replaced_by([old])) == {}
    async with opened_inbox(service) as inbox:
        stored = await inbox.accept(answer["inbox_id"])
    assert (await service.storage.replaced_by([old])) == {old: stored.memory.id}


async def test_a_wrong_argument_is_an_error_and_not_a_candidate(tools_in: Any) -> None:
    tools = await tools_in(mode="ask")
    await tools.say("hello")
    assert "code" in await tools.store(FACT, links=[{"rel": "_replaces", "id": "mem-000000000000"}])
    assert (await tools.store("AKIAIOSFODNN7EXAMPLE"))["code"] == "only_secret"
    assert await tools.waiting() == []


@pytest.fixture
async def noted(tools_in: Any) -> Any:
    """Return tools whose inbox holds a waiting note of the user's, and its id."""
    tools = await tools_in()
    note = Observation(content=FACT, category="preference", confidence=0.8, source=Source(kind="user"), trust="high")
    async with opened_inbox(await tools.session.require()) as inbox:
        (note_id,) = (await inbox.hold([note], as_notes=True)).ids
    return tools, note_id


@pytest.mark.parametrize("is_by_id", [True, False])
async def test_memory_store_of_a_waiting_note_stores_it_once(noted: Any, is_by_id: bool) -> None:
    tools, note_id = noted
    answer = await tools.store(note_id if is_by_id else FACT)
    memory = await (await tools.session.require()).get(answer["memory_id"])
    assert (memory.content, memory.trust) == (FACT, "medium")
    assert await tools.waiting() == []


async def test_memory_store_of_a_candidate_in_mode_ask_is_refused(tools_in: Any) -> None:
    tools = await tools_in(mode="ask")
    await tools.say("Hello")
    waiting = await tools.store(FACT)
    await tools.say(f"Remember that {waiting['inbox_id']}")
    answer = await tools.store(waiting["inbox_id"])
    assert answer["code"] == "needs_user"
    assert len(await tools.waiting()) == 1


async def test_memory_update_with_supersedes_replaces_the_older_memory(tools_in: Any) -> None:
    tools = await tools_in()
    old = await tools.store("The user lives in Paris.", "note")
    new = await tools.store("The user lives in Berlin.", "note")
    await tools.call("memory_update", memory_id=new["memory_id"], supersedes=old["memory_id"])
    listed = await tools.call("memory_list_recent")
    assert [memory["id"] for memory in listed["memories"]] == [new["memory_id"]]


async def test_memory_store_of_another_groups_note_is_unknown(noted: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tools, _ = noted
    values = {"content": "Ann leads it.", "group": "acme:kim", "source": {"kind": "user", "detail": ""}}
    async with opened_inbox(await tools.session.require()) as inbox:
        (theirs,) = (await inbox.hold_store(values)).ids
    monkeypatch.setattr(tools.session, "group", lambda: "acme:ann")
    assert (await tools.store(theirs))["code"] == "unknown_id"
