"""memory_forget by words: a preview first, then what it showed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.tool_memory_semantic.test_tools import assert_refused, done, stored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.unit.tool_memory_semantic.conftest import Mount


def texts(answer: Mapping[str, Any]) -> list[str]:
    return sorted(each["content"] for each in answer["memories"])


async def test_words_are_previewed_and_then_forgotten(tools: dict[str, Any]) -> None:
    badge = await stored(tools, "Ann's badge is K-12.")
    both = await stored(tools, "Ann has badge K-12 and drives a van.")
    await stored(tools, "Anna's badge is K-77.")

    preview = await done(tools, "forget", query="Ann's badge")
    assert preview["forgotten"] is False
    assert preview["forget"] == [{"memory_id": badge, "content": "Ann's badge is K-12."}]
    assert [(each["memory_id"], each["remains"]) for each in preview["change"]] == [(both, "Ann drives a van.")]
    assert len((await done(tools, "list_recent"))["memories"]) == 3

    forgotten = await done(tools, "forget", query="Ann's badge", confirm=preview["confirm"])
    assert forgotten["forgotten"] is True
    assert forgotten["count"] == 2
    assert forgotten["text_kept_until"]
    assert texts(await done(tools, "list_recent")) == ["Ann drives a van.", "Anna's badge is K-77."]


async def test_a_preview_that_is_out_of_date_is_shown_anew(tools: dict[str, Any]) -> None:
    first = await stored(tools, "Ann's badge is K-12.")
    preview = await done(tools, "forget", query="Ann's badge")
    await done(tools, "update", memory_id=first, content="Ann's badge is K-13.")
    again = await done(tools, "forget", query="Ann's badge", confirm=preview["confirm"])
    assert again["forgotten"] is False
    assert "changed" in again["note"]
    assert [each["content"] for each in again["forget"]] == ["Ann's badge is K-13."]


async def test_words_that_mean_nothing_have_nothing_to_confirm(tools: dict[str, Any]) -> None:
    await stored(tools, "Ann's badge is K-12.")
    preview = await done(tools, "forget", query="Zoe's badge")
    assert (preview["count"], preview["forget"], preview["change"]) == (0, [], [])
    assert "confirm" not in preview


async def test_a_query_that_is_an_id_needs_no_preview(tools: dict[str, Any]) -> None:
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
    assert await service.admin.everything() == []
    await service.past.restore(done["undo"].split()[2].strip("`"))
    assert len(await service.admin.everything()) == 12


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


async def test_forget_with_a_confirm_of_no_preview_says_so(tools: dict[str, Any]) -> None:
    await tools["memory_store"].execute({"content": "The roof is red", "category": "note"})
    answer = (await tools["memory_forget"].execute({"query": "the red roof", "confirm": "yes"})).output
    assert (answer["forgotten"], answer["note"].partition(":")[0]) == (False, "A preview comes first")
    await tools["memory_store"].execute({"content": "A red roof was seen", "category": "note"})
    stale = (await tools["memory_forget"].execute({"query": "the red roof", "confirm": answer["confirm"]})).output
    assert stale["note"] == "The memories have changed since that preview."
