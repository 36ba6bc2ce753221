"""Import screen: a dropped file or pasted text, its table, and storing."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agent_memory.care.change_undo import ChangeUndo
from agent_memory.errors import ConflictError, ValidationError
from agent_memory.knowledge.bulk_import import BulkImport
from agent_memory.knowledge.import_formats import take_sample
from agent_memory.knowledge.intake.withdrawal import list_session, restore_items, withdraw_import
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.plan_view import describe_stored, list_counts, view_plan
from agent_memory.knowledge.sources.fact_lists import parse_columns
from agent_memory.knowledge.sources.source_files import SourceTree, open_source
from agent_memory.models.identifiers import IMPORT_PREFIX, new_import_session
from agent_memory.web.page_view import ActResult, PageForm, PageNotice, PageView

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from starlette.requests import Request

    from agent_memory.knowledge.bulk_import import ImportPlan
    from agent_memory.web.page_view import PageSession

_PASTED: Final = "pasted.txt"
_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "me": frozenset({"whatsapp", "discord", "slack", "telegram"}),
    "dates": frozenset({"whatsapp"}),
    "columns": frozenset({"csv"}),
}
"""Formats for which a user can choose each option of the command."""


async def show_import(page: PageSession, _request: Request) -> PageView:
    """Show the form for a file or a pasted text."""
    await page.open()
    return PageView("import", {"agent_id": page.agent_id})


async def receive_upload(page: PageSession, request: Request) -> dict[str, str]:
    """Write a dropped file; return the address of its table.

    Raises:
        ValidationError: It is refused; nothing was written.
    """
    if page.is_read_only or not hmac.compare_digest(request.headers.get("x-csrf", "").encode(), page.csrf.encode()):
        raise ValidationError("This page may not import; nothing was imported.", code="refused")
    upload_id = await page.uploads.receive(request.query_params.get("name", ""), request.stream())
    return {"address": f"/import/{upload_id}"}


async def paste_text(page: PageSession, form: PageForm) -> PageView:
    """Show the table of a pasted text."""

    async def give_text() -> AsyncIterator[bytes]:
        yield form.get_text("text").encode()

    upload_id = await page.uploads.receive(_PASTED, give_text())
    return await _view_upload(page, upload_id, {})


async def show_upload(page: PageSession, request: Request) -> PageView:
    """Show the table of an upload: what is new, known and untrusted."""
    return await _view_upload(page, request.path_params["upload_id"], request.query_params)


async def _view_upload(page: PageSession, upload_id: str, options: Mapping[str, str]) -> PageView:
    service = await page.open()
    asked = _check_options({name: options.get(name, "") for name in _OPTIONS})
    path = page.uploads.get_path(upload_id)
    try:
        with await asyncio.to_thread(_open_upload, path, asked) as tree:
            async with page.open_knowledge() as knowledge:
                plan = await BulkImport(knowledge, service, page.caller).plan(tree, None, int)
    except ValidationError:
        page.uploads.delete_all()
        raise
    formats = {form.name for form, _ in plan.files}
    data = {
        "agent_id": page.agent_id,
        "options": [name for name, chosen_for in _OPTIONS.items() if formats & chosen_for],
        "upload_id": upload_id,
        "name": "pasted text" if tree.name == "-" else tree.name,
        "asked": asked,
        "new": plan.new,
    }
    return PageView("import_table", {**data, **view_plan(plan)}, address="/import")


def _check_options(asked: Mapping[str, str]) -> dict[str, str]:
    """Return options without outer spaces.

    Raises:
        ValidationError: The columns are not readable.
    """
    try:
        parse_columns(asked["columns"])
    except ValueError as error:
        raise ValidationError(f"The columns are not readable: {error}.", code="usage") from None
    return {name: value.strip() for name, value in asked.items()}


def _open_upload(path: Path, asked: Mapping[str, str]) -> SourceTree:
    """Return the files of an upload.

    Raises:
        ValidationError: It is an export of this program, or a broken archive.
    """
    tree = open_source("-", path.read_bytes()) if path.name == _PASTED else open_source(str(path))
    if len(tree.files) == 1 and take_sample(next(iter(tree.files.values())), tree).is_own_export():
        raise ValidationError(
            "This is an export of agent-memory; nothing was imported.",
            code="own_export",
            recovery="Run `agent-memory import FILE`, which asks what to believe of it.",
        )
    tree.me = asked["me"]
    tree.date_order = cast("Literal['dmy', 'mdy']", asked["dates"]) if asked["dates"] in {"dmy", "mdy"} else None
    tree.columns = parse_columns(asked["columns"])
    return tree


async def store_upload(page: PageSession, form: PageForm) -> ActResult:
    """Store what the table showed, as one import that can be undone."""
    service, upload_id = await page.open(), form.get_text("upload")
    asked = _check_options({name: form.get_text(name) for name in _OPTIONS})
    caller = replace(page.caller, session_id=new_import_session())
    with page.uploads.claim_path(upload_id) as path, await asyncio.to_thread(_open_upload, path, asked) as tree:
        async with page.open_knowledge() as knowledge:
            bulk = BulkImport(knowledge, service, caller)
            plan = await bulk.plan(tree, None, int)
            _check_plan(plan, form)
            stored = await bulk.store(tree, plan, int, holds_facts=form.get_text("review") == "on")
            resources, _ = await list_session(knowledge, caller.session_id)
            async with restore_items(knowledge, service, resources, caller):
                await runner_of(knowledge, service, caller, at_once=True).run()
    hints = ["They have low trust until you accept them: Decisions lists them."] if stored["waiting"] else []
    if stored.total() > stored["waiting"]:
        hints.append(f"They act as instructions only after `agent-memory accept {caller.session_id}`.")
    return ActResult("/import", PageNotice(describe_stored(stored), hints=tuple(hints), import_id=caller.session_id))


def _check_plan(plan: ImportPlan, form: PageForm) -> None:
    """Refuse an import that adds something else than the table showed.

    Raises:
        ConflictError: The memory changed since.
    """
    if plan.new != form.get_number("new"):
        raise ConflictError(
            "Nothing was imported: the memory changed since the table was made.", recovery="Choose the file again."
        )


async def undo_import(page: PageSession, form: PageForm) -> ActResult:
    """Take an import back: memories, documents, turns and waiting notes."""
    service, import_id = await page.open(), form.get_text("import")
    if not import_id.startswith(IMPORT_PREFIX):
        raise ValidationError("This is not an import; nothing was changed.", code="usage")
    page.uploads.delete_all()
    changes = await service.history.list_session(import_id)
    caller = replace(page.caller, session_id=new_import_session())
    async with page.open_knowledge() as knowledge:
        withdrawn: dict[str, Any] = await withdraw_import(knowledge, service, import_id, caller)
    undone = [outcome async for outcome in ChangeUndo(service).take_back(changes, caller, is_import=True)]
    memories = len({memory_id for outcome in undone for memory_id in outcome.changed_ids})
    parts = list_counts({**withdrawn, "memories": memories})
    return ActResult("/import", PageNotice(f"Took back {', '.join(parts) or 'nothing'}."))
