"""What each tool takes and answers when all is well, and what a model is shown of it."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.memory import Caller
from agent_memory.models import CATEGORIES
from agent_memory.settings import OFFERED_TOOLS, TOOL_NAMES
from agent_memory.tools import ALL_TOOLS, READING_TOOLS, SearchTool
from scripts.prices import tool_prices
from tests.rows import check_rows
from tests.support import plan
from tests.unit.tool_memory_semantic.test_hostile_input import assert_carriable, assert_refused

if TYPE_CHECKING:
    from pathlib import Path


async def done(tools: dict[str, Any], name: str, **arguments: Any) -> dict[str, Any]:
    result = await tools[f"memory_{name}"].execute(arguments)
    assert result.success, result.error
    assert_carriable(result.output)
    output: dict[str, Any] = result.output
    return output


async def stored(tools: dict[str, Any], content: str, category: str = "note", **arguments: Any) -> str:
    memory_id: str = (await done(tools, "store", content=content, category=category, **arguments))["memory_id"]
    return memory_id


# -- schemas ----------------------------------------------------------------------------------------------------------


def nodes(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [node for item in schema for node in nodes(item)]
    return [schema, *(node for value in schema.values() for node in nodes(value))] if isinstance(schema, dict) else []


@check_rows("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_a_schema_is_plain_json_schema_that_any_provider_takes(tool: Any) -> None:
    schema = tool(None).input_schema
    text = json.dumps(schema)
    assert "$ref" not in text
    assert "$defs" not in text
    assert '"null"' not in text
    assert schema["type"] == "object"
    assert set(schema["required"]) <= schema["properties"].keys()
    assert schema["required"], "loop-basic crashes on a call without arguments"
    for node in nodes(schema):
        if "type" in node and isinstance(node["type"], str):
            assert node["type"] in {"object", "string", "integer", "number", "boolean", "array"}
            assert node["type"] != "array" or "items" in node
    assert len(text) < 3000


def test_the_categories_of_the_schema_are_the_built_in_ones() -> None:
    by_name = {tool.name: tool(None).input_schema["properties"] for tool in ALL_TOOLS}  # type: ignore[arg-type]
    assert by_name["memory_store"]["category"]["enum"] == list(CATEGORIES)
    assert "enum" not in by_name["memory_search"]["filters"]["properties"]["category"]


def test_what_a_schema_does_not_list_is_taken_all_the_same() -> None:
    shown = json.dumps(SearchTool(None).input_schema)  # type: ignore[arg-type]
    assert not re.search("explain|all_tags|min_access_count", shown)
    taken = SearchTool.arguments_model.model_validate(
        {"query": "x", "explain": True, "filters": {"all_tags": ["a"], "min_access_count": 1}}
    )
    assert taken.explain  # type: ignore[attr-defined]


def test_schemas_and_assistant_cost_at_most_950_tokens() -> None:
    prices = tool_prices()
    assert set(prices) == {*OFFERED_TOOLS, "memory-assistant"}
    assert sum(prices.values()) <= 950
    assert all(price >= 30 for price in prices.values())


def test_names_and_descriptions_are_for_a_model_to_read() -> None:
    assert tuple(tool.name for tool in ALL_TOOLS) == TOOL_NAMES
    assert all(20 < len(tool.description) < 500 for tool in ALL_TOOLS)


# -- mounting ---------------------------------------------------------------------------------------------------------


async def test_the_allow_list_chooses_what_is_offered(mounted: Any, root: Path) -> None:
    offered = (await mounted({"tools": ["memory_search", "memory_status"], "storage_root": str(root)})).get("tools")
    assert list(offered) == ["memory_search", "memory_status"]


async def test_the_memory_assistant_reads_only_whatever_its_list_says(mounted: Any) -> None:
    offered = (await mounted({"tools": list(TOOL_NAMES)}, session_id="p-c_memory-assistant", parent_id="p")).get(
        "tools"
    )
    assert tuple(offered) == READING_TOOLS


async def test_another_sub_session_has_all_tools(mounted: Any) -> None:
    offered = (await mounted({}, session_id="p-c_coder", parent_id="p")).get("tools")
    assert tuple(offered) == OFFERED_TOOLS


@pytest.mark.parametrize(
    "config", [{"tools": ["memory_serach"]}, {"default_search_limit": "x"}, {"agent_id": "../x"}, ["x"]]
)
async def test_a_wrong_configuration_is_what_every_tool_answers(mounted: Any, config: Any) -> None:
    tools = (await mounted(config)).get("tools")
    assert tuple(tools) == OFFERED_TOOLS
    result = await tools["memory_search"].execute({"query": "x"})
    assert_refused(result)
    assert result.error["code"] == "configuration"
    assert "tool-memory-semantic" in result.error["message"]
    assert_refused(await tools["memory_activate"].execute({"agent_id": "bob"}))


async def test_configured_off_leaves_only_the_status_tool(mounted: Any) -> None:
    unclear = await mounted({}, session_id="unclear", config=plan(agent_identity="bob", memory={"enable": False}))
    assert tuple(unclear.get("tools")) == OFFERED_TOOLS
    agents = {"agent-memory:memory-assistant": {"description": "reads"}, "other:explorer": {}}
    coordinator = await mounted({}, config={**plan(agent_identity="bob", memory={"enabled": False}), "agents": agents})
    (status,) = coordinator.get("tools").values()
    answer = (await status.execute({})).output
    assert (answer["enabled"], answer["decided_by"]) == (False, "session.capabilities.memory")
    assert list(agents) == ["other:explorer"]


async def test_the_scratchpad_is_listed_as_it_is_shown(mounted: Any, root: Path) -> None:
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", "max_scratchpad_entries": 2}
    tools = (await mounted(config)).get("tools")
    first, _, third = [await stored(tools, text) for text in ("Prefers tea", "Works in Oslo", "Reads at night")]
    await done(tools, "update", memory_id=first, pinned=True)
    newest = (await done(tools, "list_recent", limit=1))["memories"]
    shown = (await done(tools, "list_recent", limit=5, scratchpad=True))["memories"]
    assert [memory["id"] for memory in newest] == [third]
    assert {memory["id"] for memory in shown} == {first, third}


# -- store and search -------------------------------------------------------------------------------------------------


async def test_storing_answers_where_it_went(tools: dict[str, Any]) -> None:
    output = await done(tools, "store", content="Prefers tea", category="preference", tags=["Drink"], metadata={"n": 1})
    assert output["memory_id"].startswith("mem-")
    assert (output["in_scratchpad"], output["backend"]) == (True, "file")
    assert output["stored_at"].endswith("Z")
    again = await done(tools, "store", content=" Prefers  tea", category="note")
    assert again["duplicate_of"] == again["memory_id"] == output["memory_id"]


async def test_a_secret_is_removed_and_that_is_said(tools: dict[str, Any]) -> None:
    token = "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    output = await done(tools, "store", content=f"The mirror takes {token}", category="note")
    assert output["redacted"]
    found = await done(tools, "search", query="mirror")
    assert token not in json.dumps(found)


async def test_search_shows_only_fields_that_differ(tools: dict[str, Any]) -> None:
    plain = await stored(tools, "The staging server listens on port 8443.")
    marked = await stored(tools, "Prefers peppermint tea", "preference", tags=["drink"])
    found = await done(tools, "search", query="which port does the staging server use?")
    (hit,) = found["results"]
    assert hit == {"id": plain, "content": "The staging server listens on port 8443.", "timestamp": hit["timestamp"]}
    assert date.fromisoformat(hit["timestamp"])
    assert found.keys() == {"match", "results", "total_found"}
    (hit,) = (await done(tools, "search", query="peppermint"))["results"]
    assert hit.keys() == {"id", "content", "category", "tags", "timestamp"}
    listed = (await done(tools, "list_recent", limit=10))["memories"]
    assert [memory["id"] for memory in listed] == [marked, plain]
    assert listed[1].keys() == {"id", "content", "timestamp"}


async def test_search_hit_tokens_stay_within_budget(tools: dict[str, Any]) -> None:
    encode = pytest.importorskip("bpe_openai").get_encoding("o200k_base").encode
    for content in (
        "We deploy on Fridays only after the smoke tests are green.",
        "Maria Alvarez leads the payments team.",
    ):
        await stored(tools, content)
        hit = (await done(tools, "search", query=content))["results"][0]
        assert len(encode(json.dumps(hit))) <= 2 * len(encode(content)) + 25


async def test_search_in_full_shows_every_field(tools: dict[str, Any]) -> None:
    empty = await done(tools, "search", query="tea", detail="full")
    assert (empty["results"], empty["total_found"], empty["mode"]) == ([], 0, "keyword")
    memory_id = await stored(tools, "Prefers peppermint tea", "preference", tags=["drink"])
    found = await done(tools, "search", query="peppermint", detail="full")
    (hit,) = found["results"]
    assert hit.keys() == {
        "id", "content", "category", "tags", "match", "relevance_score", "match_type", "timestamp",
        "access_count",
    }  # fmt: skip
    assert (hit["id"], hit["tags"], hit["match_type"]) == (memory_id, ["drink"], "keyword")
    assert 0 <= hit["relevance_score"] <= 1
    assert found["search_latency_ms"] >= 0
    assert found["total_found"] == 1


async def test_superseded_versions_are_shown_on_request_and_named_when_they_are_forgotten(
    tools: dict[str, Any],
) -> None:
    old = await stored(tools, "The office is in Berlin")
    new = await stored(tools, "The office is in Lyon", supersedes=old)
    plain = await done(tools, "search", query="office")
    assert [hit["id"] for hit in plain["results"]] == [new]
    full = await done(tools, "search", query="office", include_superseded=True, explain=True)
    by_id = {hit["id"]: hit for hit in full["results"]}
    assert by_id[old]["superseded_by"] == new
    assert "superseded_by" not in by_id[new]
    assert by_id[new]["parts"]
    assert full["rejected"] == []
    assert (await done(tools, "forget", memory_id=new))["older_versions"] == [old]


async def test_an_answer_is_bounded_and_says_what_it_leaves_out(tools: dict[str, Any]) -> None:
    for number in range(6):
        await stored(tools, f"tea {number} " + f"leaf{number} " * 1200)
    for answer, key in (
        (await done(tools, "search", query="tea", limit=100, full=True), "results"),
        (await done(tools, "list_recent", limit=100), "memories"),
    ):
        shown = answer[key]
        assert sum(len(memory["content"]) for memory in shown) <= 40_000
        assert answer["left_out"].startswith(f"{6 - len(shown)} more ")
        assert 1 < len(shown) < 6
        assert all("." not in memory["timestamp"] for memory in shown)
    assert "left_out" not in await done(tools, "search", query="tea", limit=2)


async def test_a_long_text_is_shown_by_what_it_says_and_whole_on_demand(tools: dict[str, Any]) -> None:
    text = "\n".join([f"Line {number} tells of other things." for number in range(40)] + ["Releases are on Tuesdays."])
    long = await stored(tools, text)
    short = await stored(tools, "Priya says that releases are on Tuesdays.")
    answer = await done(tools, "search", query="releases on tuesdays")
    by_id = {hit["id"]: hit for hit in answer["results"]}
    assert "Releases are on Tuesdays." in by_id[long]["content"]
    assert by_id[long]["excerpt"] is True
    assert len(by_id[long]["content"]) < len(text) / 1.5
    assert "excerpt" not in by_id[short]
    whole = await done(tools, "search", query="releases on tuesdays", full=True)
    assert {hit["id"]: hit["content"] for hit in whole["results"]}[long] == text
    (named,) = (await done(tools, "search", query=long))["results"]
    assert (named["content"], "excerpt" in named) == (text, False)


async def test_only_what_is_near_the_best_is_shown(tools: dict[str, Any]) -> None:
    best = await stored(tools, "The ledger of the webshop is in PostgreSQL")
    await stored(tools, "Aiko waters all plants on our roof")
    await stored(tools, "Nobody feeds pigeons")  # what is stored right before and after the best is nearer for that
    for place in ("shop", "school", "library"):
        await stored(tools, f"A database is a fine thing to have in a {place} and in many places where people count")
    answer = await done(tools, "search", query="ledger of the webshop PostgreSQL database", explain=True)
    assert [hit["id"] for hit in answer["results"]] == [best]
    assert answer["total_found"] == 4
    assert {each["reason"] for each in answer["rejected"]} == {"not_near"}


async def test_search_of_other_subject_reports_weak_match_first(tools: dict[str, Any]) -> None:
    await stored(tools, "peppermint tea")
    answer = await done(tools, "search", query="where did the tea come from that Aiko bought in Kyoto")
    assert next(iter(answer.items())) == ("match", "weak")
    assert [hit["match"] for hit in answer["results"]] == ["weak"]


async def test_links_are_taken_and_shown_both_ways(tools: dict[str, Any]) -> None:
    tea = await stored(tools, "Bob drinks peppermint tea")
    mug = await stored(tools, "Bob needs a large mug", links=[{"rel": "derived_from", "id": tea}])
    (hit,) = (await done(tools, "search", query=tea))["results"]
    end = {"rel": "derived_from", "id": mug, "title": "Bob needs a large mug", "incoming": True}
    assert hit["links"] == [end]
    (hit,) = (await done(tools, "search", query=mug))["results"]
    assert hit["links"] == [{"rel": "derived_from", "id": tea, "title": "Bob drinks peppermint tea"}]
    assert "doubtful" not in hit
    await done(tools, "update", memory_id=tea, content="Bob drinks water")
    (hit,) = (await done(tools, "search", query=mug))["results"]
    assert hit["doubtful"] == f"it is derived from {tea}, which was changed since"
    await done(tools, "update", memory_id=mug, links=[{"rel": "about", "id": tea}])
    (hit,) = (await done(tools, "search", query=mug))["results"]
    assert "doubtful" not in hit
    result = await tools["memory_store"].execute(
        {"content": "x", "category": "note", "links": [{"rel": "about", "id": "mem-ffffffffffff"}]}
    )
    assert result.success, "a wrong link costs the link alone"
    assert "mem-ffffffffffff" in result.output["warnings"][0]


async def test_every_filter_narrows(tools: dict[str, Any]) -> None:
    await stored(tools, "tea one", "preference", tags=["a", "b"])
    await stored(tools, "tea two", "note", tags=["a"])
    for filters, hits in (
        ({"category": "note"}, 1),
        ({"tags": ["a"]}, 2),
        ({"tags": ["A", "b"]}, 2),
        ({"tags": ["b", "c"]}, 1),
        ({"all_tags": ["A", "b"]}, 1),
        ({"min_access_count": 99}, 0),
        ({"date_range": {"start": "2000-01-01", "end": "2000-01-02"}}, 0),
        ({"date_range": {"start": "2000-01-01"}}, 2),
        ({"category": None, "tags": None, "date_range": None}, 2),
    ):
        assert (await done(tools, "search", query="tea", filters=filters))["total_found"] == hits


async def test_what_is_stored_after_a_strangers_words_has_low_trust(mounted: Any) -> None:
    coordinator = await mounted()
    tools = coordinator.get("tools")
    await coordinator.hooks.emit("tool:post", {"tool_name": "web_fetch", "result": "Remember that …"})
    output = await done(tools, "store", content="Read on a page", category="note")
    assert (output["trust"], output["in_scratchpad"]) == ("low", False)
    hit = (await done(tools, "search", query="page"))["results"][0]
    assert hit["trust"] == "low"
    await coordinator.hooks.emit("prompt:submit", {"prompt": "thanks"})
    assert (await done(tools, "store", content="Said later", category="note"))["trust"] == "low"
    await coordinator.hooks.emit("prompt:submit", {"prompt": "Remember that I prefer dark mode"})
    assert "trust" not in await done(tools, "store", content="The user prefers dark mode", category="preference")
    assert tools["memory_store"].session.turn.stored == ["The user prefers dark mode"]


async def test_capture_is_told_what_the_model_stored_and_saw(mounted: Any) -> None:
    coordinator = await mounted()
    tools = coordinator.get("tools")
    memory_id = await stored(tools, "Prefers tea")
    await done(tools, "update", memory_id=memory_id, content="Prefers green tea")
    await done(tools, "search", query="tea")
    turn = tools["memory_search"].session.turn
    assert turn.stored == ["Prefers tea", "Prefers green tea"]
    assert turn.returned == ["Prefers green tea"]


async def test_update_with_supersedes_hides_replaced_memory(tools: dict[str, Any]) -> None:
    paris, lyon = await stored(tools, "The user lives in Paris"), await stored(tools, "The user lives in Lyon")
    berlin = await stored(tools, "The user moved to Berlin on 2026-03-01")
    assert (await done(tools, "update", memory_id=berlin, supersedes=paris))["fields"] == ["supersedes"]
    listed = (await done(tools, "list_recent", limit=10))["memories"]
    assert [memory["id"] for memory in listed] == [berlin, lyon]


async def test_update_with_second_supersedes_names_call_for_both(tools: dict[str, Any]) -> None:
    paris, lyon = await stored(tools, "The user lives in Paris"), await stored(tools, "The user lives in Lyon")
    berlin = await stored(tools, "The user moved to Berlin on 2026-03-01", supersedes=paris)
    refused = await tools["memory_update"].execute({"memory_id": berlin, "supersedes": lyon})
    assert f"memory_id {paris} and supersedes {lyon}" in refused.error["recovery"]
    await done(tools, "update", memory_id=paris, supersedes=lyon)
    assert [memory["id"] for memory in (await done(tools, "list_recent", limit=10))["memories"]] == [berlin]


# -- the others -------------------------------------------------------------------------------------------------------


async def test_promoting_listing_updating_and_forgetting(tools: dict[str, Any]) -> None:
    first, second = await stored(tools, "Prefers tea"), await stored(tools, "Works in Oslo")
    promoted = await done(tools, "promote", memory_id=first)
    assert promoted == {"memory_id": first, "promoted": False, "evicted": None, "scratchpad_size": 2}
    listed = await done(tools, "list_recent", limit=1)
    assert [m["id"] for m in listed["memories"]] == [second]
    assert (listed["count"], listed["scratchpad_size"], listed["backend"]) == (1, 2, "file")
    updated = await done(tools, "update", memory_id=first, content="Prefers coffee", pinned=True)
    assert (updated["memory_id"], updated["fields"]) == (first, ["content", "pinned"])
    assert (await done(tools, "list_recent"))["memories"][1]["pinned"] is True
    forgotten = await done(tools, "forget", memory_id=first)
    kept_until = date.fromisoformat(forgotten.pop("text_kept_until"))
    assert 29 <= (kept_until - datetime.now(UTC).date()).days <= 31
    assert (forgotten["memory_id"], forgotten["forgotten"], forgotten["count"]) == (first, True, 1)
    assert forgotten["memories"] == [{"id": first, "content": "Prefers coffee"}]
    assert_refused(await tools["memory_forget"].execute({"memory_id": first}))


async def test_an_end_is_set_and_taken_back(tools: dict[str, Any]) -> None:
    memory_id = await stored(tools, "Milk is open")
    passed = await tools["memory_update"].execute({"memory_id": memory_id, "expires_at": "2001-01-01T00:00:00Z"})
    assert "has passed" in passed.error["message"]
    assert (await done(tools, "search", query="milk"))["total_found"] == 1
    assert (await done(tools, "update", memory_id=memory_id, expires_at="2999-01-01"))["fields"] == ["expires_at"]
    assert (await done(tools, "update", memory_id=memory_id, expires_at=""))["fields"] == ["expires_at"]


async def test_update_expiry_in_words_is_a_day_ahead(tools: dict[str, Any]) -> None:
    memory_id = await stored(tools, "Milk is open")
    assert (await done(tools, "update", memory_id=memory_id, expires_at="7d"))["fields"] == ["expires_at"]
    assert (await done(tools, "update", memory_id=memory_id, expires_at="next month"))["fields"] == ["expires_at"]
    refused = await tools["memory_update"].execute({"memory_id": memory_id, "expires_at": "3/4/2099"})
    assert "it may be 2099-03-04 or 2099-04-03" in refused.error["message"]


async def test_search_result_shows_day_of_saying(tools: dict[str, Any]) -> None:
    await stored(tools, "The launch is next Friday")
    await stored(tools, "The launch of 2025-03-03 failed")
    memories = (await done(tools, "search", query="launch"))["results"]
    assert [bool(re.fullmatch(r"\d{4}-\d\d-\d\d \(\w{3}\)", memory.get("said", ""))) for memory in memories] in (
        [True, False],
        [False, True],
    )


async def test_status_tells_how_things_stand(mounted: Any, root: Path) -> None:
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", "storage_rot": 1}
    tools = (await mounted(config)).get("tools")
    await stored(tools, "Prefers tea", "preference")
    short = await done(tools, "status", detail="short")
    assert (short["agent_id"], short["enabled"], short["backend"]) == ("bob", True, "file")
    assert short["folder"] == str(root / "bob")
    assert "low_trust_since" not in short
    assert short["counts"] == {"memories": 1, "superseded": 0, "expired": 0, "scratchpad": 1, "pinned": 0}
    assert (short["health"], short["suggestions"]) == ({"status": "ok"}, [])
    assert "storage_root" in short["warnings"][0]
    full = await done(tools, "status", detail="full")
    assert (full["by_category"], full["by_trust"]) == ({"preference": 1}, {"medium": 1})


async def test_status_names_what_brought_a_strangers_text(mounted: Any) -> None:
    coordinator = await mounted()
    await coordinator.hooks.emit("tool:post", {"tool_name": "web_fetch", "result": "words"})
    assert (await done(coordinator.get("tools"), "status", detail="short"))["low_trust_since"] == "web_fetch"


async def test_an_error_says_which_folder_it_is_about(mounted: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    where = str(tmp_path / "file")
    tools = (await mounted({"agent_id": "bob", "storage_root": where, "embedder": "none"})).get("tools")
    refused = await tools["memory_store"].execute({"content": "tea", "category": "note"})
    assert where in refused.error["recovery"]
    assert where in (await done(tools, "status", detail="short"))["folder"]


async def test_a_stranger_is_refused_with_what_the_user_can_say(mounted: Any) -> None:
    coordinator = await mounted()
    tools = coordinator.get("tools")
    memory_id = await stored(tools, "Never push to main without a review", "decision")
    await coordinator.hooks.emit("tool:post", {"tool_name": "web_fetch", "result": "words"})
    for tool, arguments in (("forget", {}), ("update", {"content": "Push freely", "pinned": True}), ("promote", {})):
        refused = await tools[f"memory_{tool}"].execute({"memory_id": memory_id, **arguments})
        assert_refused(refused)
        assert refused.error["code"] == "needs_user"
        assert memory_id in refused.error["recovery"]
    await coordinator.hooks.emit("prompt:submit", {"prompt": f"ok, forget {memory_id}"})
    assert (await done(tools, "forget", memory_id=memory_id))["forgotten"]


async def test_status_answers_although_the_journal_cannot_be_read(tools: dict[str, Any], root: Path) -> None:
    await stored(tools, "Prefers tea")
    await (await tools["memory_status"].session.require()).settle()
    (root / "bob" / "memories.yaml").unlink()
    (root / "bob" / "memories.yaml").mkdir()
    output = await done(tools, "status", detail="full")
    assert output["health"]["status"] == "unreadable"
    degraded = await done(tools, "search", query="tea", detail="full")
    assert degraded["degraded"]
    assert degraded["results"][0]["match_type"] == "scratchpad"
    assert_refused(await tools["memory_store"].execute({"content": "x", "category": "note"}))


async def test_the_full_status_has_what_other_parts_count_and_the_short_one_has_not(tools: dict[str, Any]) -> None:
    tools["memory_status"].session.counters["ingestion"] = lambda: {"taken": 3}
    assert (await done(tools, "status", detail="full"))["ingestion"] == {"taken": 3}
    assert "ingestion" not in await done(tools, "status", detail="short")


async def test_what_was_drawn_from_talks_counts_for_no_memory_at_an_activation(tools: dict[str, Any]) -> None:
    await stored(tools, "Prefers tea")
    service = await tools["memory_status"].session.require()
    drawn = {"id": "mem-00000000000a", "content": "The kettle is blue.", "source": {"kind": "extraction"}}
    assert len((await service.writer.store_items([drawn], Caller("s-1"))).stored) == 1
    assert (await done(tools, "activate", agent_id="bob"))["memories"] == 1


async def test_activating_switches_on_and_announces_a_switch(mounted: Any, root: Path) -> None:
    coordinator = await mounted({"storage_root": str(root), "embedder": "none"})
    tools = coordinator.get("tools")
    assert_refused(await tools["memory_activate"].execute({"agent_id": "bob"}))
    await coordinator.hooks.emit("prompt:submit", {"prompt": "start as bob"})
    assert await done(tools, "activate", agent_id=" bob ") == {
        "agent_id": "bob",
        "enabled": True,
        "memories": 0,
        "new": True,
        "known": [],
        "announce": "Tell the user that bob is new and remembers nothing yet.",
    }
    await stored(tools, "Prefers tea")
    assert await done(tools, "activate", agent_id="bob") == {"agent_id": "bob", "enabled": True, "memories": 1}
    refused = await tools["memory_activate"].execute({"agent_id": "alice"})
    assert_refused(refused)
    assert refused.error["code"] == "needs_user"
    await coordinator.hooks.emit("prompt:submit", {"prompt": "Start as Alice with memory enabled"})
    switched = await done(tools, "activate", agent_id="alice")
    assert (switched["previous"], switched["memories"]) == ("bob", 0)
    assert "bob" in switched["announce"]
    assert (await done(tools, "search", query="tea"))["total_found"] == 0


async def test_a_mistyped_name_is_said_to_be_new_and_the_near_one_named(mounted: Any, root: Path) -> None:
    coordinator = await mounted({"agent_id": "Bob", "storage_root": str(root), "embedder": "none"})
    tools = coordinator.get("tools")
    await stored(tools, "Prefers tea")
    await coordinator.hooks.emit("prompt:submit", {"prompt": "start as bbo"})
    output = await done(tools, "activate", agent_id="bbo")
    assert (output["new"], output["did_you_mean"], output["known"], output["previous"]) == (True, "Bob", ["Bob"], "Bob")
    assert "Ask whether they meant Bob." in output["announce"]


async def test_an_identity_of_the_host_is_used(mounted: Any, root: Path) -> None:
    config = {"storage_root": str(root), "embedder": "none"}
    tools = (await mounted(config, config=plan(agent_identity="carol"))).get("tools")
    assert (await done(tools, "status", detail="short"))["agent_id"] == "carol"


async def test_a_store_tells_its_suspects_and_the_assistants_tool_lists_them(mounted: Any, root: Path) -> None:
    config = {"storage_root": str(root), "tools": list(TOOL_NAMES), "agent_id": "bob", "embedder": "none"}
    tools = (await mounted(config)).get("tools")
    old = await stored(tools, "The daily backup keeps 14 copies.")
    output = await done(tools, "store", content="The daily backup keeps 30 copies.", category="note")
    assert [each["id"] for each in output["suspects"]] == [old]
    listed = await done(tools, "suspects", limit=5)
    assert [(each["id"], each["other"]) for each in listed["suspects"]] == [(output["memory_id"], old)]
    assert listed["count"] == 1
    found = (await done(tools, "search", query="what does the daily backup keep"))["results"]
    assert [each.get("disputed") for each in found] == [None, output["memory_id"]]
