"""Routes of the page, their errors, and the rules of every act."""

from __future__ import annotations

import hmac
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from agent_memory.errors import (
    AgentMemoryError,
    BusyError,
    ConflictError,
    StorageError,
    UnknownIdError,
    ValidationError,
    refused_by_system,
)
from agent_memory.logs import get_logger
from agent_memory.web import (
    backup_screen,
    bulk_change,
    decision_screen,
    deletion,
    import_screen,
    memories,
    search_reasons,
    system_health,
    time_lanes,
    today,
    topic_screens,
)
from agent_memory.web.guard import PageGuard
from agent_memory.web.page_session import KEY_CODES, PageNotice, PageSession
from agent_memory.web.page_view import (
    JSON_SUFFIX,
    ActResult,
    PageForm,
    PageView,
    build_query,
    read_back,
    read_form,
    render_view,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    Show = Callable[[PageSession, Request], Awaitable[PageView]]
    Act = Callable[[PageSession, PageForm], Awaitable[PageView | ActResult]]

log = get_logger(__name__)
_STATIC: Final = Path(__file__).parent / "static"
_STATUS: Final[tuple[tuple[type[AgentMemoryError], int], ...]] = (
    (UnknownIdError, 404),
    (ConflictError, 409),
    (BusyError, 503),
    (ValidationError, 400),
)
_LOCKED: Final = 423
_VIEWS: Final[Mapping[str, Show]] = {
    "/": today.show_today,
    "/decisions": decision_screen.show_decisions,
    "/forget": deletion.show_deletion,
    "/health": system_health.show_health,
    "/import": import_screen.show_import,
    "/import/{upload_id}": import_screen.show_upload,
    "/backups/{file}": backup_screen.show_backup,
    "/time": time_lanes.show_time,
    "/topics": topic_screens.show_topics,
    "/topics/{name}": topic_screens.show_topic,
    "/entities/{entity_id}": topic_screens.show_entity,
    "/turns/{turn_id}": topic_screens.show_turn,
    "/why": search_reasons.show_question,
    "/why/{record_id}": search_reasons.show_provenance,
    "/purge": deletion.preview_purge,
    "/purge/{purge_id}": deletion.show_receipt,
    "/memories": memories.list_memories,
    "/memories/forget": memories.preview_forget,
    "/memories/change": bulk_change.preview_changes,
    "/memories/{memory_id}": memories.show_memory,
}
_ACTS: Final[Mapping[str, Act]] = {
    "/decisions/pair": decision_screen.decide_pair,
    "/decisions/waiting": decision_screen.decide_waiting,
    "/decisions/undo": decision_screen.undo_rejection,
    "/health/backup": backup_screen.back_up,
    "/backups/restore": backup_screen.restore_from_backup,
    "/backups/delete": backup_screen.delete_backup,
    "/health/consent": system_health.limit_consent,
    "/health/repair": system_health.repair_files,
    "/purge/run": deletion.purge_records,
    "/import/store": import_screen.store_upload,
    "/import/undo": import_screen.undo_import,
    "/memories/edit": memories.store_edit,
    "/memories/store": memories.store_memory,
    "/memories/forget": memories.forget_memories,
    "/memories/change": bulk_change.change_memories,
    "/restore": memories.restore_memory,
    "/undo": memories.undo_changes,
}


def build_application(session: PageSession, port: int, note_request: Callable[[], None] = lambda: None) -> PageGuard:
    """Return the application of one run behind its guard.

    Args:
        session: Memory and secrets of the run.
        port: Port that is served.
        note_request: Called for each answered request.
    """
    routes: list[Any] = [Route("/changes.json", partial(_send_stamp, session, note_request))]
    for path, show in _VIEWS.items():
        endpoint = partial(_show, session, show, note_request)
        names = ("/today.json", "/today", "/") if path == "/" else (path + JSON_SUFFIX, path)
        routes += [Route(name, endpoint) for name in names]
    routes.append(Route("/import/upload", partial(_receive, session, note_request), methods=["POST"]))
    for path, act in {**_ACTS, "/import/paste": import_screen.paste_text, "/unlock": _unlock}.items():
        routes.append(Route(path, partial(_act, session, act, note_request), methods=["POST"]))
    routes += [Mount("/static", StaticFiles(directory=_STATIC))]
    missing = partial(_send_missing, session)
    application = Starlette(
        routes=routes,
        exception_handlers={404: missing, 405: missing, Exception: partial(_send_failure, session)},
    )
    return PageGuard(application, session, port)


async def _show(session: PageSession, show: Show, note_request: Callable[[], None], request: Request) -> Response:
    note_request()
    view = await _attempt(show(session, request), request.url.path)
    assert isinstance(view, PageView)
    return render_view(session, request, view)


async def _act(session: PageSession, act: Act, note_request: Callable[[], None], request: Request) -> Response:
    """Run an act for a form of this page; redirect afterwards."""
    note_request()

    async def run() -> PageView | ActResult:
        form = await read_form(request)
        if not hmac.compare_digest(form.get_text("csrf").encode(), session.csrf.encode()):
            return _build_refusal("This form is not of this page. Nothing was changed.", "Load the page again.")
        if session.is_read_only and act is not _unlock:
            return _build_refusal(
                "The page was started with --read-only. Nothing was changed.",
                "Start `agent-memory page` without --read-only.",
            )
        return await act(session, form)

    result = await _attempt(run(), "/")
    if isinstance(result, PageView):
        return render_view(session, request, result)
    path, _, query = result.path.partition("?")
    pairs = {name: value for name, value in parse_qsl(query) if name != "notice"}
    return RedirectResponse(f"{path}?{build_query(pairs, notice=session.add_notice(result.notice))}", 303)


async def _unlock(session: PageSession, form: PageForm) -> ActResult:
    """Open an encrypted memory with the key in a form."""
    await session.take_key(form.get_text("key").strip())
    return ActResult(read_back(form), PageNotice("The memory is open. The key stays in this process until it ends."))


async def _attempt(awaitable: Awaitable[PageView | ActResult], back: str) -> PageView | ActResult:
    """Return the outcome of an awaitable, or the view of its error."""
    try:
        return await awaitable
    except AgentMemoryError as error:
        failure = error
    except (OSError, MemoryError, RuntimeError) as error:
        if (refused := refused_by_system(error)) is None:
            raise
        failure = refused
    log.warning("page_failed", code=failure.code)  # the message may quote a memory
    problem = {"code": failure.code, "message": failure.message, "recovery": failure.recovery}
    if isinstance(failure, StorageError) and failure.code in KEY_CODES:
        return PageView("unlock", {"error": problem, "back": back.removesuffix(JSON_SUFFIX)}, _LOCKED)
    status = next((status for kind, status in _STATUS if isinstance(failure, kind)), 500)
    return PageView("error", {"error": problem}, status)


def _build_refusal(message: str, recovery: str) -> PageView:
    return PageView("error", {"error": {"code": "refused", "message": message, "recovery": recovery}}, 403)


async def _receive(session: PageSession, note_request: Callable[[], None], request: Request) -> Response:
    """Receive an upload; answer its address or why not."""
    note_request()
    try:
        return JSONResponse(await import_screen.receive_upload(session, request))
    except AgentMemoryError as error:
        return JSONResponse({"problem": f"{error.message} {error.recovery}"}, 400)


async def _send_stamp(session: PageSession, note_request: Callable[[], None], _request: Request) -> Response:
    note_request()
    return JSONResponse({"stamp": session.read_stamp()})


async def _send_missing(session: PageSession, request: Request, _error: Exception) -> Response:
    problem = {"code": "unknown_page", "message": "The page has no such address.", "recovery": "Go to Today."}
    return render_view(session, request, PageView("error", {"error": problem}, 404))


async def _send_failure(session: PageSession, request: Request, error: Exception) -> Response:
    problem = {
        "code": "page_crashed",
        "message": f"The page has an error ({type(error).__name__}). The memory is as it was.",
        "recovery": "Run the command of the same name in a terminal, and report what you did here.",
    }
    return render_view(session, request, PageView("error", {"error": problem}, 500))
