"""Settings and health: consent, list of backups, and the doctor."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.backups import list_backups
from agent_memory.care.checks import examine, repair_all
from agent_memory.care.checks.health_report import list_backlog
from agent_memory.care.consent_files import LIMITS, read_consent, view_consent, write_limit
from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.models import utc_now
from agent_memory.redaction import quoted
from agent_memory.web.backup_screen import view_backup
from agent_memory.web.page_session import KEY_CODES, PageNotice
from agent_memory.web.page_view import ActResult, PageForm, PageView

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_memory.web.page_session import PageSession

_SHOWN: Final = 10
_CHECKED: Final = "/health?check=on"


async def show_health(page: PageSession, request: Request) -> PageView:
    """Show status, consent and backups; examine every file if asked."""
    has_check = request.query_params.get("check") == "on"
    status = await _describe_status(page)
    backups = await asyncio.to_thread(list_backups, page.root, page.agent_id)
    return PageView(
        "health",
        {
            "agent_id": page.agent_id,
            "status": status,
            "background": await _list_background(page),
            "consent": view_consent(await asyncio.to_thread(read_consent, page.root, page.agent_id)),
            "limits": list(LIMITS),
            "backups": [view_backup(backup) for backup in backups[:_SHOWN]],
            "backup_count": len(backups),
            "findings": await asyncio.to_thread(_examine, page) if has_check else None,
        },
    )


async def _describe_status(page: PageSession) -> dict[str, Any]:
    """Return the status, also of a memory that cannot be read."""
    try:
        return asdict(await (await page.open()).status(page.caller))
    except StorageError as error:
        if error.code in KEY_CODES:
            raise
        health = {"status": "unreadable", "message": error.message, "recovery": error.recovery}
    empty: dict[str, Any] = {"counts": {}, "backend": "", "embedder": {}, "last_write": None, "suggestions": []}
    return {**empty, "health": health}


async def _list_background(page: PageSession) -> list[dict[str, Any]]:
    """Return stages of background work with what waits and fails."""
    try:
        backlog = await list_backlog(await page.open())
    except StorageError:  # the status says what is wrong
        return []
    return [
        {"stage": stage.stage, "source": stage.source, "due": stage.due, "failed": stage.failed} for stage in backlog
    ]


def _examine(page: PageSession) -> list[dict[str, Any]]:
    report = examine(page.root, [page.agent_id] if page.folder.exists() else [], now=utc_now())
    return [finding.as_dict() for _, finding in report.every]


async def limit_consent(page: PageSession, form: PageForm) -> ActResult:
    """Write the person's limit for this agent."""
    limit = form.get_text("limit")
    if limit not in LIMITS:
        raise ValidationError(f"No limit {quoted(limit)}; nothing was changed.", code="usage")
    await page.open()
    await asyncio.to_thread(write_limit, page.folder, limit)
    state = view_consent(await asyncio.to_thread(read_consent, page.root, page.agent_id))
    now = f"mode {state['mode']}" if state["enabled"] else "off"
    decided = f", decided by {state['decided_by']}" if state["decided_by"] else ""
    return ActResult("/health", PageNotice(f"Consent for sessions is {now}{decided}."))


async def repair_files(page: PageSession, _form: PageForm) -> ActResult:
    """Repair what the doctor can repair, with the memory closed."""
    await page.close()
    agents = [page.agent_id] if page.folder.exists() else []
    actions = await asyncio.to_thread(lambda: repair_all(page.root, agents, now=utc_now()))
    done = [action for action in actions if action.done]
    hints = tuple(f"{'Repaired' if action.done else 'Left'}: {action.sentence}" for action in actions)
    return ActResult(_CHECKED, PageNotice(f"{counted(len(done), 'repair')} done.", hints=hints))
