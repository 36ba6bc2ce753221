"""The tool `digest` in the default session."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier import MemorySession
from agent_memory.memory.inbox_access import opened_inbox
from tests.support import plan
from tests.unit.tool_memory_semantic.test_searching_all import RUNBOOK, ingest

if TYPE_CHECKING:
    from pathlib import Path


async def test_digest_without_documents_is_not_offered(mounted: Any) -> None:
    assert "digest" not in (await mounted()).get("tools")


async def test_digest_is_not_offered_where_storing_is_not(mounted: Any, root: Path) -> None:
    await ingest(root, RUNBOOK, "runbook.md")
    config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", "tools": ["memory_search"]}
    assert "digest" not in (await mounted(config)).get("tools")


async def test_digest_stores_a_quoted_statement_that_search_finds(mounted: Any, root: Path) -> None:
    await ingest(root, RUNBOOK, "runbook.md")
    tools = (await mounted()).get("tools")
    due = (await tools["digest"].execute({"document": "runbook"})).output["text"]
    passage = re.search(r"mem-\w{12}", due)
    assert passage is not None
    assert "Tobias Reuter" in due
    statement = {
        "passage": passage[0],
        "quote": "Tobias Reuter is on call in odd weeks",
        "text": "Tobias Reuter is on call in odd weeks.",
    }
    outcome = await tools["digest"].execute({"document": "runbook", "statements": [statement]})
    assert outcome.output["text"].startswith("Stored mem-")
    found = (await tools["memory_search"].execute({"query": "who is on call in odd weeks"})).output
    assert "Tobias Reuter is on call in odd weeks." in [hit["content"] for hit in found["results"]]


@pytest.mark.parametrize("mode", ["ask", "manual"])
async def test_digest_stores_nothing_without_the_user(mounted: Any, root: Path, mode: str) -> None:
    await ingest(root, RUNBOOK, "runbook.md")
    coordinator = await mounted(config=plan(memory={"mode": mode}))
    await coordinator.hooks.emit("prompt:submit", {"prompt": "digest the runbook"})
    tools = coordinator.get("tools")
    passage = re.search(r"mem-\w{12}", (await tools["digest"].execute({"document": ""})).output["text"])
    text = "Tobias Reuter is on call in odd weeks"
    statement = {"passage": passage[0] if passage else "", "quote": text, "text": f"{text}."}
    answer = await tools["digest"].execute({"document": "", "statements": [statement]})
    service = await MemorySession.of(coordinator).require()
    assert [memory.source.detail for memory in await service.searcher.list_all()] == ["passage"]
    if mode == "manual":
        assert answer.error["code"] == "needs_user"
        return
    assert answer.output["text"].startswith("Waits for the user's yes")
    async with opened_inbox(service) as inbox:
        (waiting,) = await inbox.waiting()
        accepted = (await inbox.accept(waiting.id)).memory
    assert (accepted.content, accepted.trust, accepted.source.detail) == (f"{text}.", "medium", "digest")


async def test_digest_of_an_unknown_document_names_what_there_is(mounted: Any, root: Path) -> None:
    await ingest(root, RUNBOOK, "runbook.md")
    result = await (await mounted()).get("tools")["digest"].execute({"document": "handbook"})
    assert not result.success
    assert result.error["code"] == "unknown_document"


async def test_purge_lists_the_statements_of_a_passage(mounted: Any, root: Path) -> None:
    await ingest(root, RUNBOOK, "runbook.md")
    tools = (await mounted()).get("tools")
    passage = re.search(r"mem-\w{12}", (await tools["digest"].execute({"document": ""})).output["text"])
    assert passage is not None
    words = "Tobias Reuter is on call in odd weeks"
    statement = {"passage": passage[0], "quote": words, "text": words}
    stored = (await tools["digest"].execute({"document": "", "statements": [statement]})).output["text"]
    preview = (await tools["memory_forget"].execute({"ids": [passage[0]], "permanently": True})).output
    assert [row["content"] for row in preview["purge"]][1:] == [words]
    assert preview["also"] == "1 older, equal or derived"  # the document's page
    answer = (await tools["memory_forget"].execute({"ids": [passage[0]]})).output
    assert answer["statements"] == re.findall(r"Stored (mem-\w{12})", stored)
    assert "Also forgot what an agent made of it" in answer["tell_user"]
