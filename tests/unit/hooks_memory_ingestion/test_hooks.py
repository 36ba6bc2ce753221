"""What of a session is taken in, as whose words, and what is not; that no answer waits, and nothing raises."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core.testing import MockCoordinator

from agent_memory.errors import CategoryNotFoundError
from agent_memory.knowledge import MemoryManager, tools
from agent_memory.models import MAX_TEXT_CHARS
from agent_memory.settings import ServiceSettings
from amplifier_module_hooks_memory_ingestion import mount
from tests.support import coordinator_of, plan, read_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.hooks_memory_ingestion.conftest import Begin, Talk

FACT = "The boat is moored at pier four in Bergen."
ANSWER = "The diesel for it was paid in cash in May."
TOKEN = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


async def test_a_turn_is_kept_with_its_conversation_and_items_are_drawn_from_it(talk: Talk) -> None:
    await talk.whole(FACT, ANSWER)
    (conversation,) = await talk.conversations()
    said = await talk.episodes()
    assert [(each.role, each.content, each.order, each.trust) for each in said] == [
        ("user", FACT, 0, "medium"),
        ("assistant", ANSWER, 1, "medium"),
    ]
    assert {each.conversation for each in said} == {conversation.id}
    assert (conversation.resource_type, conversation.group) == ("conversation", "")
    assert said[0].observed_at is not None
    assert conversation.title == f"{said[0].observed_at:%Y-%m-%d %H:%M}"
    assert sorted(item.content for item in await talk.items()) == [FACT, ANSWER]
    worked = {"items": 3, "entities": 3, "summaries": 2}
    assert talk.statistics() == {"taken": 2, "waiting": 0, "skipped": {}, "worked": worked}
    assert [data["done"] for data in talk.told("memory:background_worked")] == [worked]
    assert talk.session.counters["ingestion"]() == talk.statistics()


async def test_nothing_is_on_the_disk_when_the_events_of_a_turn_return(talk: Talk, root: Path) -> None:
    await talk.say(FACT)
    await talk.answer(ANSWER)
    assert not root.exists()
    assert talk.statistics()["waiting"] == 2
    await talk.end()
    assert len(await talk.episodes()) == 2


async def test_a_conversation_goes_on_where_it_was_in_a_session_that_is_resumed(begin: Begin) -> None:
    for prompt in ("The first words of the day.", "Yes, I am sure of that."):
        talk = await begin()
        await talk.whole(prompt, "Yes, I am sure of that.")
        await talk.cleanup()
    said = await talk.episodes()
    assert [each.order for each in said] == [0, 1, 2, 3]
    assert len(await talk.conversations()) == 1


@pytest.mark.parametrize(
    ("config", "roles"),
    [
        ({}, ["user", "assistant"]),
        ({"observe_answers": False}, ["user"]),
        ({"observe_prompts": False}, ["assistant"]),
        ({"observe_tools": ["read_*", "memory_*", "recall"]}, ["user", "tool", "assistant"]),
    ],
)
async def test_what_is_taken_in_is_chosen_and_the_memorys_own_tools_never_are(
    begin: Begin, config: dict[str, Any], roles: list[str]
) -> None:
    talk = await begin(**config)
    await talk.say(FACT)
    for name in ("read_file", "bash", "memory_search", "recall"):
        await talk.tool(name, {"success": True, "output": f"What {name} has to say.", "error": None})
    await talk.answer(ANSWER)
    await talk.end()
    said = await talk.episodes()
    assert [each.role for each in said] == roles
    tools = [(each.speaker, each.content, each.trust) for each in said if each.role == "tool"]
    assert tools == [("read_file", "What read_file has to say.", "low")] * ("tool" in roles)


async def test_after_a_strangers_text_the_answer_has_low_trust_and_the_users_words_stay_theirs(talk: Talk) -> None:
    talk.session.taint.note("web_fetch")
    await talk.whole(FACT, ANSWER)
    assert [each.trust for each in await talk.episodes()] == ["medium", "low"]


async def test_name_in_five_statements_has_no_page_unless_declared(talk: Talk, root: Path) -> None:
    facts = "Vera paints boats on Sundays. In spring Vera sold her old car. At night Vera studies Greek. "
    facts += "I gave Vera two cats. The house that Vera bought stands in Thun."
    for fact in facts.split(". "):
        await talk.whole(f"{fact.rstrip('.')}.")
    manager = MemoryManager(root, agent_id="bob", settings=ServiceSettings(embedder="none"))
    with pytest.raises(CategoryNotFoundError) as missing:
        await tools.render_page(manager, "vera")
    listed = await tools.render_categories(manager)
    assert "Memory Categories (1):\n\n1. conversation" in listed
    await manager.close()
    assert tools.not_found(missing.value).splitlines() == [
        "Category 'vera' not found.",
        "",
        f"Available categories: {listed.splitlines()[2].removeprefix('1. ')}",
        "",
        'No page "vera". 5 passages mention it. Read them with recall or memory_search.',
    ]


async def test_the_wish_for_an_agent_is_no_statement(begin: Begin) -> None:
    talk = await begin()
    await talk.whole("Start as bob with memory enabled.", ANSWER)
    said = await talk.episodes()
    assert [each.event_type for each in said] == ["activation", ""]
    assert [item.content for item in await talk.items()] == [ANSWER]


async def test_no_statement_is_made_of_a_turn_in_which_something_is_forgotten(begin: Begin) -> None:
    talk = await begin(flush_seconds=0.001)
    await talk.whole(FACT)
    (item,) = await talk.items()
    await talk.say(f"Forget this, please. {FACT} It was a secret.")
    await asyncio.sleep(0.01)
    assert talk.statistics()["waiting"] == 1
    await (await talk.session.require()).forget(item.id, talk.session.caller)
    await talk.answer("I have forgotten where the boat is moored, and that it is in Bergen.")
    await talk.whole("The barn is painted red again.")
    assert [each.event_type for each in await talk.episodes()][2:4] == ["forgetting", "forgetting"]
    assert [each.content for each in await talk.items()] == ["The barn is painted red again."]


async def test_no_statement_is_made_of_a_turn_that_shows_what_would_be_forgotten(talk: Talk) -> None:
    await talk.say(f"Forget that. {FACT}")
    await talk.tool("memory_forget", {"success": True, "output": {"forgotten": False, "confirm": "e49"}})
    await talk.answer(f"Is it this one? {FACT}")
    await talk.say("The barn is painted red again.")
    await talk.end()
    assert [item.content for item in await talk.items()] == ["The barn is painted red again."]


async def test_a_turn_that_speaks_of_forgetting_without_it_is_kept_as_any_other(talk: Talk) -> None:
    await talk.whole("I always forget the keys of the shed.")
    assert [each.content for each in await talk.items()] == ["I always forget the keys of the shed."]


async def test_how_a_conversation_is_called_tells_nothing_that_was_said(talk: Talk) -> None:
    """It stands in each footnote of a page, where a person would have to forget it, too."""
    await talk.whole("Walnuts make Ada ill. The boat is moored in Bergen.")
    (conversation,) = await talk.conversations()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", conversation.title)
    assert conversation.content == conversation.title


@pytest.mark.parametrize("place", ["answer", "tool", "prompt"])
async def test_no_secret_reaches_a_file_or_an_event(begin: Begin, root: Path, place: str) -> None:
    talk = await begin(observe_tools=["bash"])
    padding = "word " * 14
    words = {
        each: f"{padding} {TOKEN} is what we deploy with." if each == place else "ok"
        for each in ("prompt", "tool", "answer")
    }
    await talk.say(words["prompt"])
    await talk.tool("bash", words["tool"])
    await talk.answer(words["answer"])
    await talk.end()
    await talk.cleanup()
    files = list(read_files(root / "bob"))
    assert files
    assert [path.name for path, content in files if TOKEN[:12].encode() in content] == []
    assert TOKEN[:12] not in repr(talk.events)
    assert any("[redacted:" in each.content for each in await talk.episodes())


async def test_what_cannot_be_kept_is_counted_and_told_and_the_rest_is_kept(talk: Talk) -> None:
    await talk.say("x" * (MAX_TEXT_CHARS + 1))
    await talk.answer(ANSWER)
    await talk.say(TOKEN)
    await talk.end()
    assert [each.content for each in await talk.episodes()] == [ANSWER]
    assert talk.reasons() == talk.statistics()["skipped"] == {"too_long": 1, "only_secret": 1}
    assert {data["agent_id"] for data in talk.told("memory:ingestion_skipped")} == {"bob"}


async def test_characters_that_no_file_carries_cost_no_turn(talk: Talk) -> None:
    await talk.say("The cable\0 was cut in May.")
    await talk.end()
    assert [each.content for each in await talk.episodes()] == ["The cable\ufffd was cut in May."]


async def test_ingestion_for_tenant_without_agent_writes_nothing(begin: Begin, root: Path) -> None:
    talk = await begin(agent_id=None, tenant_id="acme")
    await talk.whole(FACT)
    await talk.cleanup()
    assert not root.exists()
    assert (talk.events, talk.statistics()["waiting"]) == ([], 0)


@pytest.mark.parametrize("memory", [{"mode": "manual"}, {"enabled": False}, {"enabled": "perhaps"}])
async def test_where_only_tools_may_write_or_nothing_nothing_is_taken_in(
    begin: Begin, root: Path, memory: dict[str, Any]
) -> None:
    talk = await begin()
    talk.coordinator.config["session"] = plan(memory=memory)["session"]
    await talk.whole(FACT)
    await talk.cleanup()
    assert not root.exists()
    assert talk.events == []


async def test_words_go_to_the_agent_that_the_session_had_when_their_turn_ended(talk: Talk, root: Path) -> None:
    await talk.say(FACT)
    await talk.answer(ANSWER)
    await talk.say("Start as alice.")
    await talk.session.activate("alice")
    await talk.answer("I am alice now.")
    await talk.whole("The garden gate was painted green.")
    assert [each.content for each in await talk.episodes("bob")] == [FACT, ANSWER]
    assert [each.content for each in await talk.episodes("alice")][2] == "The garden gate was painted green."


@pytest.mark.parametrize("where", ["capability", "session", "setting"])
async def test_a_tenant_keeps_a_conversation_apart_in_its_group(begin: Begin, where: str) -> None:
    talk = await begin(**({"tenant_id": "acme"} if where == "setting" else {"tenant_id": "other"}))
    if where == "capability":
        talk.coordinator.register_capability("tenant_id", "acme")
    if where == "session":
        talk.coordinator.config["session"] = plan(tenant_id="acme")["session"]
    await talk.whole(FACT)
    group = f"acme:{talk.session.root_id}"
    assert {each.group for each in [*await talk.episodes(), *await talk.conversations()]} == {group}
    assert {item.group for item in await talk.items()} == {group}


@pytest.mark.parametrize("tenant", ["a:b", "", 7, "a b"])
async def test_a_tenant_that_cannot_be_part_of_a_group_takes_nothing_in_and_is_told(
    begin: Begin, root: Path, tenant: Any
) -> None:
    talk = await begin()
    talk.coordinator.register_capability("tenant_id", tenant)
    await talk.whole(FACT)
    assert talk.reasons() == {"invalid_group": 2}
    assert not root.exists()


async def test_a_wrong_setting_takes_nothing_in_and_does_not_raise(begin: Begin, root: Path) -> None:
    talk = await begin(max_waiting="many")
    await talk.say(FACT)
    await talk.end()
    assert talk.session.problem is not None
    assert not root.exists()


async def test_a_sub_sessions_words_are_not_taken_in(begin: Begin, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MockCoordinator, "parent_id", "parent")
    talk = await begin()
    await talk.whole(FACT, ANSWER)
    await talk.cleanup()
    assert not root.exists()


@pytest.mark.parametrize("event", ["prompt:submit", "tool:post", "orchestrator:complete", "session:end"])
@pytest.mark.parametrize(
    "data",
    [{}, {"prompt": None}, {"prompt": 7, "result": 7, "tool_name": 7}, {"tool_name": "x", "result": {"output": [[]]}}],
)
async def test_malformed_events_are_answered_with_continue(begin: Begin, event: str, data: dict[str, Any]) -> None:
    talk = await begin(observe_tools=["*"])
    result = await talk.emit(event, **data)
    assert result.action == "continue"
    assert talk.events == []


async def test_an_answer_whose_turn_ends_twice_is_kept_once_and_said_again_it_is_kept_again(talk: Talk) -> None:
    await talk.say(FACT)
    await talk.answer("Noted.")
    await talk.emit("orchestrator:complete", goal_turn=2)
    await talk.say(FACT)
    await talk.answer("Noted.")
    await talk.end()
    assert [each.content for each in await talk.episodes()] == [FACT, "Noted.", FACT, "Noted."]


async def test_a_turn_that_was_denied_is_kept_when_the_next_one_begins(talk: Talk) -> None:
    await talk.say(FACT)
    await talk.say("And the next thing.")
    assert talk.statistics()["waiting"] == 2
    await talk.end()
    assert [each.content for each in await talk.episodes()] == [FACT, "And the next thing."]


async def test_a_context_that_cannot_be_read_is_told_and_the_users_words_are_kept(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unreadable() -> list[Any]:
        raise ConnectionError("the context lives elsewhere")

    monkeypatch.setattr(talk.context, "get_messages", unreadable)
    await talk.whole(FACT, ANSWER)
    assert [each.content for each in await talk.episodes()] == [FACT]
    assert talk.reasons() == {"context_unreadable": 1}


async def test_a_mount_and_its_cleanup_leave_no_file_and_no_hooks(talk: Talk, root: Path) -> None:
    await talk.cleanup()
    await talk.cleanup()
    assert not root.exists()
    names = [name for handlers in talk.coordinator.hooks.list_handlers().values() for name in handlers]
    assert not [name for name in names if name.startswith("hooks-memory-ingestion")]


async def test_the_kernel_awaits_the_cleanup(talk: Talk) -> None:
    talk.coordinator.register_cleanup(talk.cleanup)
    await talk.say(FACT)
    await talk.coordinator.cleanup()
    assert [each.content for each in await talk.episodes()] == [FACT]


async def test_the_events_are_declared(talk: Talk) -> None:
    declared = await talk.coordinator.collect_contributions("observability.events")
    assert {"memory:ingestion_skipped", "memory:background_worked"} <= set(declared[0])


async def test_a_sub_session_whose_root_is_not_here_belongs_to_the_same_group(root: Path) -> None:
    coordinator = coordinator_of("child", parent_id="root")
    cleanup = await mount(coordinator, {"agent_id": "bob", "storage_root": str(root), "tenant_id": "acme"})
    session: Any = coordinator.get_capability("agent_memory.session")
    assert session.group() == "acme:root"
    await cleanup()
