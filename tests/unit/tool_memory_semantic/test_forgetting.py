"""memory_forget: words list candidates, IDs are forgotten, everything needs a yes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.tool_memory_semantic.test_tools import assert_refused, done, stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.unit.tool_memory_semantic.conftest import Mount


def texts(answer: Mapping[str, Any]) -> list[str]:
    return sorted(each["content"] for each in answer["memories"])


async def test_query_lists_candidates_and_forgets_nothing(tools: dict[str, Any]) -> None:
    mine = await stored(tools, "My address is 5 Lime Road.")
    hers = await stored(tools, "My sister's address is 9 Oak Lane.")
    await stored(tools, "Tea is at four.")

    answer = await done(tools, "forget", query="my address")
    assert (answer["forgotten"], answer["count"]) == (False, 2)
    assert {candidate["id"]: candidate["owner"] for candidate in answer["candidates"]} == {
        mine: "the user",
        hers: "the user's sister",
    }
    assert all({"content", "timestamp"} <= candidate.keys() for candidate in answer["candidates"])
    assert (await done(tools, "forget", query="my address", confirm="yes"))["forgotten"] is False
    assert len((await done(tools, "list_recent"))["memories"]) == 3


async def test_ids_are_forgotten_and_listed_with_similar_ones(tools: dict[str, Any]) -> None:
    mine = await stored(tools, "My phone number is 555 0101.")
    await stored(tools, "My sister's phone number is 555 0199.")
    answer = await done(tools, "forget", query="my phone number", ids=[mine])
    assert (answer["forgotten"], answer["memory_id"]) == (True, mine)
    assert answer["memories"] == [{"id": mine, "content": "My phone number is 555 0101."}]
    assert [similar["content"] for similar in answer["similar"]] == ["My sister's phone number is 555 0199."]
    assert answer["tell_user"].startswith(
        'Forgot "My phone number is 555 0101". Kept: "My sister\'s phone number is 555 0199". Undo until '
    )
    assert answer["tell_user"].endswith(f": agent-memory undo {mine}")
    assert answer["text_kept_until"] in answer["tell_user"]
    assert texts(await done(tools, "list_recent")) == ["My sister's phone number is 555 0199."]


@pytest.mark.parametrize("form", ["{0}", "{0}, {1}", '["{0}", "{1}"]'])
async def test_ids_in_a_text_are_read(tools: dict[str, Any], form: str) -> None:
    ids = [await stored(tools, f"Fact {number} of the roof") for number in range(2)]
    answer = await done(tools, "forget", ids=form.format(*ids))
    assert answer["count"] == form.count("{")


async def test_unknown_id_next_to_a_known_one_forgets_nothing(tools: dict[str, Any]) -> None:
    known = await stored(tools, "The roof is red")
    assert_refused(await tools["memory_forget"].execute({"ids": [known, "mem-000000000000"]}))
    assert texts(await done(tools, "list_recent")) == ["The roof is red"]


async def test_four_ids_over_two_calls_wait_for_a_yes(mounted: Mount) -> None:
    coordinator = await mounted()
    tools, emit = coordinator.get("tools"), coordinator.hooks.emit
    ids = [await stored(tools, f"Fact {number} of the roof") for number in range(4)]
    await emit("prompt:submit", {"prompt": "forget the facts of the roof"})
    assert (await done(tools, "forget", ids=ids[:2]))["count"] == 2
    refused = await tools["memory_forget"].execute({"ids": ids[2:]})
    assert (refused.success, refused.error["code"]) == (False, "needs_user")
    assert len(texts(await done(tools, "list_recent"))) == 2
    await emit("prompt:submit", {"prompt": "yes"})
    assert (await done(tools, "forget", ids=ids[2:]))["count"] == 2


async def test_result_of_another_tool_makes_ids_wait_for_a_yes(mounted: Mount) -> None:
    coordinator = await mounted()
    tools, emit = coordinator.get("tools"), coordinator.hooks.emit
    mine = await stored(tools, "My address is 5 Lime Road.")
    await emit("prompt:submit", {"prompt": "read the notes, then forget my address"})
    await emit("tool:post", {"tool_name": "memory_search", "tool_input": {}, "result": {}})
    await emit("tool:post", {"tool_name": "read_file", "tool_input": {"file_path": "notes.md"}, "result": "text"})
    refused = await tools["memory_forget"].execute({"ids": [mine]})
    assert (refused.success, refused.error["code"]) == (False, "needs_user")
    await emit("prompt:submit", {"prompt": "yes"})
    assert (await done(tools, "forget", ids=[mine]))["forgotten"]


async def test_results_of_our_tools_leave_ids_free(mounted: Mount) -> None:
    coordinator = await mounted()
    tools, emit = coordinator.get("tools"), coordinator.hooks.emit
    mine = await stored(tools, "My address is 5 Lime Road.")
    await emit("prompt:submit", {"prompt": "forget my address"})
    for name in ("memory_search", "memory_forget", "memory_status"):
        await emit("tool:post", {"tool_name": name, "tool_input": {}, "result": {}})
    assert (await done(tools, "forget", ids=[mine]))["forgotten"]


async def test_long_candidate_is_shown_in_part(tools: dict[str, Any]) -> None:
    await stored(tools, "The roof is red. " + "It was painted again. " * 100)
    [candidate] = (await done(tools, "forget", query="the red roof"))["candidates"]
    assert (len(candidate["content"]) <= 500, candidate["excerpt"]) == (True, True)


async def test_query_without_a_match_says_so(tools: dict[str, Any]) -> None:
    await stored(tools, "The roof is red")
    answer = await done(tools, "forget", query="Zoe's badge")
    assert (answer["count"], answer["candidates"]) == (0, [])
    assert answer["note"].startswith("Nothing was forgotten: no memory matches.")


async def test_query_that_is_an_id_forgets_it(tools: dict[str, Any]) -> None:
    first = await stored(tools, "Ann's badge is K-12.")
    assert (await done(tools, "forget", query=first))["memory_id"] == first
    assert_refused(await tools["memory_forget"].execute({"query": first}))


async def test_it_takes_one_of_both(tools: dict[str, Any]) -> None:
    assert_refused(await tools["memory_forget"].execute({}))
    assert_refused(await tools["memory_forget"].execute({"query": "tea", "memory_id": "mem-00000000000a"}))


async def test_storing_what_was_released_says_so(tools: dict[str, Any]) -> None:
    first = await stored(tools, "We deploy on Fridays.")
    await done(tools, "forget", memory_id=first, reason="it was a joke")
    again = await done(tools, "store", content="we deploy on Fridays.", category="note")
    assert again["released"]["reason"] == "it was a joke"
    assert "released" not in await done(tools, "store", content="Tea is at four.", category="note")


@pytest.mark.parametrize("query", ["everything", "Everything you know about me.", "all memories", "*"])
async def test_forget_everything_asks_then_does_and_can_be_undone(mounted: Mount, query: str) -> None:
    coordinator = await mounted()
    tools, emit = coordinator.get("tools"), coordinator.hooks.emit
    for number in range(12):
        await tools["memory_store"].execute({"content": f"Fact {number} of the roof", "category": "decision"})
    await emit("prompt:submit", {"prompt": "forget everything"})
    asked = (await tools["memory_forget"].execute({"query": query})).output
    assert (asked["forgotten"], asked["count"], asked["by_category"]) == (False, 12, {"decision": 12})
    assert "agent-memory agents delete bob" in asked["ask"]
    by_itself = (await tools["memory_forget"].execute({"query": query, "confirm": asked["confirm"]})).output
    assert not by_itself["forgotten"], "a model does not confirm for the user"
    await emit("prompt:submit", {"prompt": "yes"})
    done = (await tools["memory_forget"].execute({"all": True})).output
    assert (done["forgotten"], done["count"]) == (True, 12)
    service = await tools["memory_forget"].session.require()
    assert await service.searcher.list_all() == []
    await service.history.restore(done["undo"].split()[2].strip("`"))
    assert len(await service.searcher.list_all()) == 12


async def test_forget_everything_for_good_names_the_command(tools: dict[str, Any]) -> None:
    await tools["memory_store"].execute({"content": "The roof is red", "category": "note"})
    answer = (await tools["memory_forget"].execute({"query": "everything", "permanently": True})).output
    assert not answer["forgotten"]
    assert "agent-memory agents delete bob" in answer["ask"]


@pytest.mark.parametrize("selection", [{}, {"all": False}, {"all": True, "query": "tea"}, {"ids": []}, {"idz": ["*"]}])
async def test_forget_without_one_selection_is_refused(tools: dict[str, Any], selection: dict[str, Any]) -> None:
    await tools["memory_store"].execute({"content": "The roof is red", "category": "note"})
    result = await tools["memory_forget"].execute(selection)
    assert (result.success, result.error["code"]) == (False, "invalid")
