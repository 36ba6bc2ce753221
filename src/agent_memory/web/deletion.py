"""Forget and purge: candidates, restorable memories, previews and receipts."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.account_page import describe_purge
from agent_memory.care.archive.archive_hooks import find_stored_apart
from agent_memory.care.privacy import Purging
from agent_memory.errors import ConflictError, UnknownIdError, UnsupportedError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.memory.views import view_whole_memory
from agent_memory.models import to_text
from agent_memory.redaction import quoted
from agent_memory.web.page_session import PageNotice
from agent_memory.web.page_view import ActResult, PageForm, PageView
from agent_memory.web.today import view_candidate

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_memory.memory import MemoryService
    from agent_memory.web.page_session import PageSession

_SHOWN: Final = 50
_MAX_PURGED: Final = 100


async def show_deletion(page: PageSession, request: Request) -> PageView:
    """Show candidates for words, forgotten memories and past purges."""
    service, words = await page.open(), request.query_params.get("q", "").strip()
    found = await _find_candidates(page, service, words) if words else {"candidates": [], "archived": [], "waiting": []}
    forgotten = await _list_forgotten(service)
    return PageView(
        "deletion",
        {
            "agent_id": page.agent_id,
            "words": words,
            **found,
            "forgotten": forgotten[:_SHOWN],
            "forgotten_count": len(forgotten),
            "purges": await _list_purges(service),
            "stored": await service.storage.count(),
        },
    )


async def _find_candidates(page: PageSession, service: MemoryService, words: str) -> dict[str, Any]:
    """Return the memories, archived memories and waiting notes that words may mean."""
    found = await service.searcher.find_candidates(words, page.caller)
    candidates = [
        {**view_whole_memory(item.memory), "owner": item.ownership.owner, "match": item.match} for item in found.listed
    ]
    apart = await find_stored_apart(service, words)
    archived = [view_whole_memory(item.memory) for item in apart.archived or ()]
    waiting = [view_candidate(candidate) for candidate in apart.waiting or ()]
    return {"candidates": candidates, "archived": archived, "waiting": waiting}


async def _list_forgotten(service: MemoryService) -> list[dict[str, Any]]:
    """Return memories that can be restored, the last forgotten first."""
    try:
        forgotten = await service.history.forgotten()
    except UnsupportedError:  # a server keeps nothing
        return []
    rows = [{**view_whole_memory(memory), "forgotten_at": to_text(moment)} for memory, moment in forgotten]
    return sorted(rows, key=lambda row: str(row["forgotten_at"]), reverse=True)


async def _list_purges(service: MemoryService) -> list[dict[str, Any]]:
    if service.folder is None:
        return []
    purges = await asyncio.to_thread(Purging(service).list.purges)
    return [describe_purge(purge) for purge in purges]


async def preview_purge(page: PageSession, request: Request) -> PageView:
    """Show every record and text that a purge would delete."""
    ids = list(dict.fromkeys(request.query_params.getlist("id")))[:_MAX_PURGED]
    if not ids:
        raise ValidationError("No record was chosen; nothing was purged.", code="usage", recovery="Choose one.")
    plan = await Purging(await page.open()).plan(ids)
    return PageView(
        "purge_preview",
        {"asked": ids, "ids": list(plan.ids), "texts": list(plan.texts), "same": list(plan.same)},
    )


async def purge_records(page: PageSession, form: PageForm) -> ActResult:
    """Purge the records of a preview that a person confirmed."""
    ids = form.get_all("id")
    if not ids or form.get_text("sure") != "on":
        raise ValidationError(
            "Nothing was purged: mark that it cannot be undone.", code="usage", recovery="Go back and mark it."
        )
    purging = Purging(await page.open())
    plan = await purging.plan(ids)
    if set(plan.ids) != set(form.get_all("planned")):
        raise ConflictError(
            "Nothing was purged: other records would be deleted than the preview showed.",
            recovery="Open the preview again.",
        )
    page.uploads.delete_all()
    receipt = await purging.run(plan, page.caller)
    state = "Every byte of every file was searched." if receipt.is_clean else "Not all of it is gone: see below."
    return ActResult(f"/purge/{receipt.purge_id}", PageNotice(f"Purged {counted(len(plan.ids), 'record')}. {state}"))


async def show_receipt(page: PageSession, request: Request) -> PageView:
    """Show the receipt of a purge, to print."""
    purge_id = request.path_params["purge_id"]
    purges = await asyncio.to_thread(Purging(await page.open()).list.purges)
    purge = next((purge for purge in purges if purge.id == purge_id), None)
    if purge is None:
        raise UnknownIdError(f"No purge {quoted(purge_id)}.", recovery="Forget and purge lists all of them.")
    data = {"agent_id": page.agent_id, **describe_purge(purge), "ids": list(purge.ids)}
    return PageView("receipt", {**data, "receipt": None if purge.receipt is None else dict(purge.receipt)})
