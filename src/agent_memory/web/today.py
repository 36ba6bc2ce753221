"""Today: changes since yesterday, with what waits for a decision."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.change_undo import ChangeUndo
from agent_memory.care.consent_files import read_consent, view_consent
from agent_memory.errors import UnsupportedError
from agent_memory.memory.inbox_access import has_journal, opened_inbox
from agent_memory.memory.views import view_pair
from agent_memory.models import CANDIDATE, to_text
from agent_memory.web.page_view import PageView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from agent_memory.memory import MemoryService
    from agent_memory.memory.history import MemoryChange
    from agent_memory.models import Candidate
    from agent_memory.web.page_session import PageSession

_MAX_CHANGES: Final = 200
_DAYS: Final = 1
"""Days before today whose changes are shown."""
_SHOWN_PARTS: Final = 3
_SHOWN: Final = 3
_GROUPS: Final = {"stored": "kept", "changed": "changed", "forgotten": "forgotten", "archived": "forgotten"}
"""Group of a change on the screen by its verb."""


async def show_today(page: PageSession, _request: Request) -> PageView:
    """Show the changes since yesterday, with what waits."""
    service = await page.open()
    changes = await _list_changes(service)
    status = await service.status(page.caller)
    waiting, conflicts = await list_waiting(service), await service.suspects(page.caller)
    groups: dict[str, list[dict[str, Any]]] = {"kept": [], "changed": [], "forgotten": []}
    for change in changes:
        groups[_GROUPS[change["what"]]].append(change)
    return PageView(
        "today",
        {
            "agent_id": page.agent_id,
            "changes": groups,
            "waiting": [view_candidate(candidate) for candidate in waiting[:_SHOWN]],
            "waiting_count": len(waiting),
            "conflicts": [view_pair(conflict) for conflict in conflicts[:_SHOWN]],
            "conflict_count": len(conflicts),
            "status": asdict(status),
            "consent": view_consent(await asyncio.to_thread(read_consent, page.root, page.agent_id)),
        },
    )


async def list_waiting(service: MemoryService) -> list[Candidate]:
    """Return the waiting notes and proposals of an agent."""
    if not has_journal(service.agent_id, service.settings, CANDIDATE):
        return []
    async with opened_inbox(service) as inbox:
        return await inbox.waiting()


def view_candidate(candidate: Candidate) -> dict[str, Any]:
    """Return a waiting note or proposal."""
    return {
        "id": candidate.id,
        "content": candidate.content,
        "category": candidate.category,
        "project": candidate.project,
        "trust": candidate.trust,
        "source": candidate.source.kind,
        "timestamp": to_text(candidate.timestamp),
        "replaces": candidate.replaces,
        "act": candidate.act,
        "act_ids": list(candidate.act_ids),
        "act_values": {name: str(value) for name, value in sorted(candidate.act_values.items())},
    }


async def _list_changes(service: MemoryService) -> list[dict[str, Any]]:
    """Return the changes since the beginning of yesterday, newest first."""
    today = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        recent = await service.history.list_changes(_MAX_CHANGES, today - timedelta(days=_DAYS))
    except UnsupportedError:  # a server keeps no versions
        return []
    versions, withdrawn = await ChangeUndo(service).name_documents(recent)
    ids = {part.record_id for change in recent if change.verb == "stored" for part in change.parts}
    existing = (await service.storage.texts_of(ids)).keys()
    rows = []
    for change in recent:
        is_over = change.verb == "stored" and existing.isdisjoint(part.record_id for part in change.parts)
        if versions.get(change.seq) != "":
            document = versions.get(change.seq) or withdrawn.get(change.seq)
            can_undo = change.seq not in withdrawn and not is_over
            rows.append({**_view_change(change), "document": document, "can_undo": can_undo, "is_over": is_over})
    return rows


def _view_change(change: MemoryChange) -> dict[str, Any]:
    return {
        "change": change.seq,
        "at": to_text(change.at),
        "session": change.session_id,
        "what": change.verb,
        "fields": list(change.fields),
        "count": len(change.parts),
        "memories": _view_parts(change.parts[:_SHOWN_PARTS]),
    }


def _view_parts(parts: Sequence[Any]) -> list[dict[str, Any]]:
    memories = [part.after or part.before for part in parts]
    return [{"id": memory.id, "content": memory.content, "trust": memory.trust} for memory in memories if memory]
