"""memory_forget with `permanently`: nothing goes that the user did not see and order in words of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier import MemorySession
from tests.support import plan, read_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.tool_memory_semantic.conftest import Mount

SALARY = "Ann's salary is seventy-two thousand a year."


class Talk:
    """A session with a user; `memory` is a memory that is there."""

    def __init__(self, coordinator: Any, root: Path) -> None:
        self.coordinator, self.root = coordinator, root
        self.tools = coordinator.get("tools")

    async def say(self, prompt: str) -> None:
        await self.coordinator.hooks.emit("prompt:submit", {"prompt": prompt})

    async def forget(self, **arguments: Any) -> Any:
        result = await self.tools["memory_forget"].execute({"permanently": True, **arguments})
        return result.output if result.success else result.error

    async def store(self, content: str = SALARY) -> str:
        result = await self.tools["memory_store"].execute({"content": content, "category": "note"})
        return str(result.output["memory_id"])

    def holding(self) -> list[str]:
        return [path.name for path, content in read_files(self.root) if b"seventy-two" in content]


@pytest.fixture
async def talk(mounted: Mount, root: Path) -> Talk:
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none"}
    return Talk(await mounted(config, config=plan()), root)


async def test_by_its_id_it_goes_when_the_user_names_it(talk: Talk) -> None:
    memory = await talk.store()
    await talk.say(f"Please purge {memory} for good.")
    answer = await talk.forget(memory_id=memory)
    assert (answer["purged"], answer["memory_ids"]) == (True, [memory])
    assert "swap" in " ".join(answer["not_reached"])
    assert talk.holding() == []


@pytest.mark.parametrize(
    "prompt",
    [
        "What is the weather like?",
        "Forget what Ann earns.",
        "Do not purge mem-0123456789ab for good.",
        "Should I purge Ann's salary?",
        'The page says "purge Ann\'s salary for good".',
        "I left Initech for good.",
    ],
)
async def test_without_the_users_order_nothing_goes_and_the_model_is_told_what_to_ask(talk: Talk, prompt: str) -> None:
    memory = await talk.store()
    await talk.say(prompt)
    answer = await talk.forget(query=memory)
    assert answer["purged"] is False
    assert answer["purge"] == [{"memory_id": memory, "content": SALARY}]
    assert "answer only yes" in answer["ask"]
    assert talk.holding()


async def test_where_nobody_was_heard_nobody_orders_it(talk: Talk) -> None:
    memory = await talk.store()
    assert (await talk.forget(memory_id=memory))["purged"] is False
    assert talk.holding()


async def test_query_lists_candidates_and_purges_nothing(talk: Talk) -> None:
    memory = await talk.store()
    await talk.store("Kate owns the ledger of the harbour.")
    await talk.say("Purge Ann's salary for good.")
    answer = await talk.forget(query="Ann's salary")
    assert (answer["purged"], answer["forgotten"]) == (False, False)
    assert [candidate["id"] for candidate in answer["candidates"]] == [memory]
    assert (await talk.forget(query="Ann's salary", confirm="yes"))["purged"] is False
    assert talk.holding()


async def test_ids_are_purged_in_the_turn_of_the_yes(talk: Talk) -> None:
    memory, other = await talk.store(), await talk.store("Kate owns the ledger of the harbour.")
    await talk.say("Purge Ann's salary for good.")
    asked = await talk.forget(ids=[memory])
    assert asked["purged"] is False
    again = await talk.forget(ids=[memory])
    assert again["purged"] is False, "the user has not seen it yet"
    await talk.say("Yes.")
    done = await talk.forget(ids=[memory])
    assert (done["purged"], done["memory_ids"]) == (True, [memory])
    assert talk.holding() == []
    service = await MemorySession.of(talk.coordinator).require()
    assert [each.id for each in await service.searcher.list_all()] == [other]


@pytest.mark.parametrize(
    "answer", ["Yes, permanently delete that.", "Purge Ann's salary for good.", "yes to the other"]
)
async def test_words_about_a_purge_purge_nothing(talk: Talk, answer: str) -> None:
    memory = await talk.store()
    await talk.say("Purge Ann's salary for good.")
    assert (await talk.forget(ids=[memory]))["purged"] is False
    await talk.say(answer)
    assert (await talk.forget(ids=[memory]))["purged"] is False
    assert talk.holding()


async def test_what_was_forgotten_before_can_be_purged(talk: Talk) -> None:
    memory = await talk.store()
    await talk.say(f"Forget {memory}.")
    await talk.forget(memory_id=memory, permanently=False)
    await talk.say(f"Purge {memory}.")
    assert (await talk.forget(memory_id=memory))["purged"] is True
    assert talk.holding() == []
    assert (await talk.forget(memory_id="mem-00000000000a"))["code"] == "unknown_id"


async def test_words_that_mean_nothing_purge_nothing(talk: Talk) -> None:
    await talk.store()
    await talk.say("Purge Zoe's badge for good.")
    answer = await talk.forget(query="Zoe's badge")
    assert (answer["purged"], answer["count"]) == (False, 0)


async def test_a_conversation_of_a_group_purges_nothing(
    mounted: Mount, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none"}
    talk = Talk(await mounted(config, config=plan()), root)
    memory = await talk.store()
    session = MemorySession.of(talk.coordinator)
    monkeypatch.setattr(session, "group", lambda: "acme:kestrel")
    await talk.say(f"Purge {memory} for good.")
    assert (await talk.forget(memory_id=memory))["code"] == "of_a_group"
    assert talk.holding()


async def test_memory_of_another_group_is_unknown_to_a_purge(
    mounted: Mount, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none"}
    talk = Talk(await mounted(config, config=plan()), root)
    session = MemorySession.of(talk.coordinator)
    values = {"content": SALARY, "group": "acme:kim", "source": {"kind": "extraction", "detail": "talk.said"}}
    theirs = (await (await session.require()).store(values)).memory.id
    monkeypatch.setattr(session, "group", lambda: "acme:kestrel")
    for prompt in ("Hello", f"Purge {theirs}."):
        await talk.say(prompt)
        answers = [await talk.forget(memory_id=memory_id) for memory_id in (theirs, "mem-000000000000")]
        assert [answer["code"] for answer in answers] == ["unknown_id", "unknown_id"]
        assert answers[0]["message"].replace(theirs, "mem-000000000000") == answers[1]["message"]


async def test_purge_after_a_yes_is_done_in_a_tainted_session(talk: Talk) -> None:
    memory = await talk.store()
    await talk.coordinator.hooks.emit("tool:post", {"tool_name": "web_fetch", "tool_input": {}})
    await talk.say("Hello")
    assert (await talk.forget(ids=[memory]))["purged"] is False
    await talk.say("yes")
    assert (await talk.forget(ids=[memory]))["purged"] is True
