"""memory_forget by words: a preview first, then what it showed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.tool_memory_semantic.test_tools import assert_refused, done, stored

if TYPE_CHECKING:
    from collections.abc import Mapping


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
