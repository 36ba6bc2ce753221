"""Why: answers explained, texts as sent, provenance of records."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.provenance import SourceLookup, view_provenance
from agent_memory.knowledge.records import Knowledge
from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.memory import views
from agent_memory.memory.briefing import SessionBriefing
from agent_memory.memory.scratchpad_entries import render
from agent_memory.models import HIT_KINDS
from agent_memory.models.text import to_json
from agent_memory.web.page_view import PageView

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_memory.memory import Found, MemoryService
    from agent_memory.web.page_view import PageSession

_LEFT_OUT: Final = 30
_REASONS: Final = {
    "beyond_limit": "beyond the limit",
    "below_floor": "below the floor",
    "filtered": "filtered out: replaced, expired or another kind",
    "not_near": "not near the best",
}


async def show_question(page: PageSession, request: Request) -> PageView:
    """Explain the answer to a question, and what a session receives."""
    service, question = await page.open(), request.query_params.get("q", "").strip()
    data: dict[str, Any] = {"question": question, "answer": None, "sent": None, "left_out": [], "left_out_count": 0}
    if question:
        found = await service.search(question, explain=True, caller=page.caller, kinds=HIT_KINDS, has_waiting=True)
        hits = [
            {**views.view_whole_hit(hit, explain=True, superseded_by=None), "is_near": hit.is_near}
            for hit in found.results
        ]
        data["answer"] = views.view_answer(found, hits, explain=False)
        data["left_out"] = await _view_left_out(service, found)
        data["left_out_count"] = len(found.results.rejected)
        data["sent"] = await _view_sent(service, page, question)
    return PageView("why", {"agent_id": page.agent_id, **data, **await _view_start(service, page, question)})


async def _view_left_out(service: MemoryService, found: Found) -> list[dict[str, Any]]:
    """Return candidates that were left out, with the reason."""
    rejected = found.results.rejected[:_LEFT_OUT]
    memories = await service.storage.get_many([item["id"] for item in rejected])
    return [
        {
            "id": item["id"],
            "content": memories[item["id"]].content if item["id"] in memories else "",
            "reason": _REASONS.get(item["reason"], item["reason"]),
            "parts": {name: round(value, 3) for name, value in item["parts"].items()},
        }
        for item in rejected
    ]


async def _view_sent(service: MemoryService, page: PageSession, question: str) -> dict[str, Any]:
    """Return the answer of `memory_search` as a session's model reads it."""
    found = await service.search(question, caller=page.caller, kinds=HIT_KINDS, has_waiting=True)
    results, left_out = views.limit_views(
        views.view_brief_hit(hit, superseded_by=found.replaced.get(hit.memory.id)) for hit in found.near
    )
    text = to_json(views.view_brief_answer(found, results, **left_out), indent=1)
    return {"text": text, "tokens": estimate_tokens(text)}


async def _view_start(service: MemoryService, page: PageSession, question: str) -> dict[str, Any]:
    """Return scratchpad and briefing as a session is sent them."""
    entries = (await service.scratchpad(page.caller)).entries
    pad = render(entries, page.agent_id)
    briefings = SessionBriefing(service)
    try:
        made = await briefings.make(question, page.caller)
    finally:
        await briefings.close()
    return {
        "scratchpad": {"text": pad.text, "tokens": pad.tokens},
        "briefing": {"text": made.text, "tokens": made.tokens},
    }


async def show_provenance(page: PageSession, request: Request) -> PageView:
    """Show the author, sources, trust and uses of a record."""
    service, record_id = await page.open(), request.path_params["record_id"]
    async with AsyncExitStack() as stack:
        knowledge = None
        if service.settings.backend != "server":
            knowledge = Knowledge(service.agent_id, service.settings)
            stack.push_async_callback(knowledge.close)
        provenance = await SourceLookup(service, knowledge).of(record_id)
    return PageView("provenance", view_provenance(provenance))
