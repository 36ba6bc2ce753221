"""Settings and health: consent, backups, and the doctor."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.backups import (
    create_backup,
    list_backups,
    preview_restore,
    prune_backups,
    restore_backup,
    to_prune,
    verify_backup,
)
from agent_memory.care.checks import examine, repair_all
from agent_memory.care.checks.health_report import list_backlog
from agent_memory.care.consent_files import LIMITS, read_consent, view_consent, write_limit
from agent_memory.errors import AgentMemoryError, StorageError, UnknownIdError, ValidationError
from agent_memory.files.layout import folder_of
from agent_memory.files.wording import counted, format_size
from agent_memory.models import to_text, utc_now
from agent_memory.redaction import quoted
from agent_memory.web.page_view import KEY_CODES, ActResult, PageForm, PageNotice, PageView

if TYPE_CHECKING:
    from starlette.requests import Request

    from agent_memory.care.backups import BackupSummary
    from agent_memory.web.page_view import PageSession

_HEALTH: Final = "/health"


def view_backup(backup: BackupSummary) -> dict[str, Any]:
    """Return a backup for the list."""
    return {
        "file": backup.path.name,
        "made_at": to_text(backup.made_at),
        "size": format_size(backup.size),
        "memories": backup.manifest.memories if backup.manifest else None,
        "problem": backup.problem,
    }


async def show_backup(page: PageSession, request: Request) -> PageView:
    """Read a backup whole; show the effect of restoring it."""
    backup, can_delete = await asyncio.to_thread(_find_backup, page, request.path_params["file"])
    data = {"agent_id": page.agent_id, **view_backup(backup), "can_delete": can_delete, "effect": None}
    try:
        verified = await asyncio.to_thread(verify_backup, backup.path)
        data["problems"] = list(verified.problems)
        if not verified.problems:
            preview = await asyncio.to_thread(preview_restore, backup.path, page.root, page.agent_id)
            data["effect"] = {"back": preview.back, "gone": preview.gone}
    except AgentMemoryError as error:
        data["problems"] = [error.message]
    return PageView("backup", data)


def _find_backup(page: PageSession, name: str) -> tuple[BackupSummary, bool]:
    """Return a backup, and True if it may be deleted.

    Raises:
        UnknownIdError: There is none of this name.
    """
    listed = list_backups(page.root, page.agent_id)
    backup = next((listed_backup for listed_backup in listed if listed_backup.path.name == name), None)
    if backup is None:
        raise UnknownIdError(f"No backup {quoted(name)}.", recovery="Health lists all of them.")
    return backup, any(prunable.path == backup.path for prunable in to_prune(listed, utc_now()))


async def back_up(page: PageSession, _form: PageForm) -> ActResult:
    """Create a backup and check it."""
    service = await page.open()
    made = await asyncio.to_thread(create_backup, folder_of(page.agent_id, page.root))
    fields = {"source": made.path.name, "memories": made.manifest.memories, "bytes": made.size}
    await service.report("memory:backed_up", page.caller, **fields)
    memories = counted(made.manifest.memories, "memory", "memories")
    return ActResult(_HEALTH, PageNotice(f"Backed up {memories}, checked: {made.path.name}."))


async def restore_from_backup(page: PageSession, form: PageForm) -> ActResult:
    """Replace the memory with a backup, after one of the present state."""
    if form.get_text("sure") != "on":
        raise ValidationError("Nothing was restored: mark that the memory is replaced.", code="usage")
    backup, _ = await asyncio.to_thread(_find_backup, page, form.get_text("file"))
    await page.close()
    done = await asyncio.to_thread(lambda: restore_backup(backup.path, page.root, agent=page.agent_id))
    service = await page.open()
    service.pad.schedule(page.caller)
    await service.pad.settle()
    previous = None if done.before is None else done.before.path.name
    fields = {"source": backup.path.name, "memories": done.manifest.memories, "previous": previous}
    await service.report("memory:backup_restored", page.caller, **fields)
    memories = counted(done.manifest.memories, "memory", "memories")
    hints = () if previous is None else (f"To undo that, restore {previous}, the state before.",)
    return ActResult(_HEALTH, PageNotice(f"Restored {memories} from {backup.path.name}.", hints=hints))


async def delete_backup(page: PageSession, form: PageForm) -> ActResult:
    """Delete a backup whose name a person typed; never the newest."""
    name = form.get_text("file")
    if form.get_text("typed").strip() != name:
        raise ValidationError("Nothing was deleted: the typed name is another one.", code="usage")
    backup, can_delete = await asyncio.to_thread(_find_backup, page, name)
    if not can_delete:
        message = "Nothing was deleted: it is the newest backup that can be restored."
        raise ValidationError(message, code="usage", recovery="Create another backup first.")
    freed = await asyncio.to_thread(prune_backups, page.root, [backup])
    return ActResult(_HEALTH, PageNotice(f"Deleted {name}, {format_size(freed)}."))


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
