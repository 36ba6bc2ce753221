"""memory_search as a session has it: one question reaches everything, a query without a topic gives an overview."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import open_service
from agent_memory.memory.inbox import Inbox
from agent_memory.models import CATEGORIES, Observation, Source
from agent_memory.settings import ServiceSettings
from tests.support import plan
from tests.unit.tool_memory_semantic.test_tools import done, stored

if TYPE_CHECKING:
    from pathlib import Path

RUNBOOK = "# Runbook\n\nTobias Reuter is on call in odd weeks.\n"
WAITING = "The staging database listens on port 5433."


async def ingest(root: Path, text: str, title: str, resource_type: str = "document") -> None:
    """Ingest a document as another process does."""
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    knowledge, service = Knowledge("bob", settings), open_service("bob", settings)
    await Ingest(knowledge).resource(ReceivedDocument(text, title, resource_type))
    await runner_of(knowledge, service, config=ITEMS_ONLY).run()
    await service.close()
    await knowledge.close()


async def hold(root: Path) -> None:
    service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    inbox = Inbox(service)
    seen = Observation(content=WAITING, category="note", confidence=0.8, source=Source(kind="user"), trust="high")
    await inbox.hold([seen], as_notes=True)
    await inbox.close()
    await service.close()


async def test_search_finds_what_another_process_ingested_meanwhile(tools: dict[str, Any], root: Path) -> None:
    note = await stored(tools, "The ledger is restarted with systemctl.")
    assert (await done(tools, "search", query="who is on call in odd weeks"))["match"] == "none"
    await ingest(root, RUNBOOK, "runbook.md")
    answer = await done(tools, "search", query="who is on call in odd weeks")
    (hit,) = answer["results"]
    assert hit.pop("id").startswith("mem-")
    assert hit.pop("timestamp")
    assert hit == {
        "content": "Runbook\n\nTobias Reuter is on call in odd weeks.",
        "kind": "passage",
        "source": "runbook.md",
    }
    assert answer["match"] == "strong"
    assert (await done(tools, "search", query="on call", kinds=["note"]))["results"] == []
    assert [hit["id"] for hit in (await done(tools, "search", query="ledger", kind="note"))["results"]] == [note]


async def test_search_passage_hit_tokens_stay_within_budget(tools: dict[str, Any], root: Path) -> None:
    encode = pytest.importorskip("bpe_openai").get_encoding("o200k_base").encode
    await ingest(root, RUNBOOK, "runbook.md")
    (hit,) = (await done(tools, "search", query="who is on call in odd weeks"))["results"]
    assert len(encode(json.dumps(hit))) <= 2 * len(encode(hit["content"])) + 25 + 10  # source and kind


async def test_search_untrusted_hit_taints_the_session(mounted: Any, root: Path) -> None:
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    knowledge = Knowledge("bob", settings)
    page = ReceivedTurn("The page says that the harbour opens at six.", "assistant", trust="low")
    talk = await Ingest(knowledge).conversation("s-1")
    await Ingest(knowledge).turn(page, conversation=talk.record.id)
    await knowledge.close()
    tools = (await mounted()).get("tools")
    (hit,) = (await done(tools, "search", query="when does the harbour open"))["results"]
    assert (hit["trust"], hit["kind"]) == ("low", "talk")
    assert "low_trust_since" in await done(tools, "status", detail="short")


@pytest.mark.parametrize("arguments", [{}, {"kinds": ["passage"]}])
async def test_search_ticket_text_taints_the_session(mounted: Any, root: Path, arguments: dict[str, Any]) -> None:
    await ingest(root, "The harbour opens at six in summer.", "Ticket 12", "ticket")
    tools = (await mounted()).get("tools")
    (hit,) = (await done(tools, "search", query="when does the harbour open", **arguments))["results"]
    assert hit["trust"] == "low"
    assert "low_trust_since" in await done(tools, "status", detail="short")


@pytest.mark.parametrize(("mode", "is_found"), [("autonomous", True), ("manual", True), ("ask", False)])
async def test_search_shows_waiting_notes_except_in_mode_ask(
    mounted: Any, root: Path, mode: str, is_found: bool
) -> None:
    await hold(root)
    tools = (await mounted(config=plan(memory={"mode": mode}))).get("tools")
    answer = await done(tools, "search", query="which port does the staging database listen on")
    assert [hit.get("status") for hit in answer["results"]] == ["unconfirmed"] * is_found
    overview = (await done(tools, "search", query="what do you know about me"))["overview"]
    assert overview.get("waiting", 0) == is_found


async def test_overview_has_at_most_300_tokens(tools: dict[str, Any], root: Path) -> None:
    encode = pytest.importorskip("bpe_openai").get_encoding("o200k_base").encode
    for number, category in enumerate((*CATEGORIES, *CATEGORIES)):
        text = f"Number {number}: the harbour office closes the northern gate whenever the tide is above four metres."
        memory = await stored(tools, text, category, tags=["gate"], project=f"harbour-{number % 3}")
        if number % 3 == 0:
            await done(tools, "update", memory_id=memory, pinned=True)
    await ingest(root, RUNBOOK, "runbook.md")
    await hold(root)
    answer = await done(tools, "search", query="what do you know about me")
    assert answer["overview"]["memories"] == 18
    assert answer["overview"]["by_category"]["task"] == 2
    assert len(answer["results"]) == 4
    answer["overview"] |= {"conversations": 12, "pages": 8, "people": ["Mira Adler", "Tobias Reuter", "Ann"]}
    assert len(encode(json.dumps(answer, ensure_ascii=False))) <= 300


@pytest.mark.parametrize("arguments", [{}, {"query": ""}, {"query": None}, {"query": "What do you remember about me?"}])
async def test_search_without_topic_and_filters_gives_overview(
    tools: dict[str, Any], arguments: dict[str, Any]
) -> None:
    await stored(tools, "Prefers tea", "preference")
    answer = await done(tools, "search", **arguments)
    assert answer["overview"] == {"memories": 1, "by_category": {"preference": 1}}
    assert [hit["content"] for hit in answer["results"]] == ["Prefers tea"]


@pytest.mark.parametrize(
    ("query", "filters"),
    [
        ("", {"category": "task"}),
        ("open tasks", {"category": "task"}),
        ("work items", {"category": "task", "date_range": {"start": "2020-01-01"}}),
        ("anything", {"tags": ["infra"]}),
        ("whatever is due", {"tags": ["infra"]}),
    ],
)
async def test_search_filters_alone_list(tools: dict[str, Any], query: str, filters: dict[str, Any]) -> None:
    await stored(tools, "Prefers tea", "preference")
    first = await stored(tools, "Renew the certificate", "task", tags=["infra"])
    second = await stored(tools, "Rotate the keys", "task", tags=["infra"])
    answer = await done(tools, "search", query=query, filters=filters)
    assert [hit["id"] for hit in answer["results"]] == [second, first]
    assert answer.get("match") != "none"
    assert "overview" not in answer


async def test_list_recent_takes_filters(tools: dict[str, Any]) -> None:
    tea = await stored(tools, "Prefers tea", "preference", tags=["drink"])
    task = await stored(tools, "Renew the certificate", "task")
    await done(tools, "update", memory_id=tea, pinned=True)

    async def listed(**arguments: Any) -> list[str]:
        return [memory["id"] for memory in (await done(tools, "list_recent", limit=9, **arguments))["memories"]]

    assert await listed() == [task, tea]
    assert await listed(filters={"category": "task"}) == [task]
    assert await listed(category="task") == [task]
    assert await listed(filters={"tags": ["drink"]}) == [tea]
    assert await listed(filters={"date_range": {"end": "2020"}}) == []
    assert await listed(pinned=True) == [tea]
