"""Routes of the page, its guard, and the rules of every act."""

from __future__ import annotations

import hmac
from functools import partial
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
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
    import_screen,
    memories,
    search_reasons,
    system_health,
    time_lanes,
    today,
    topic_screens,
)
from agent_memory.web.page_view import (
    JSON_SUFFIX,
    KEY_CODES,
    ActResult,
    PageForm,
    PageNotice,
    PageSession,
    PageView,
    build_query,
    read_back,
    read_form,
    render_view,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    Show = Callable[[PageSession, Request], Awaitable[PageView]]
    Act = Callable[[PageSession, PageForm], Awaitable[PageView | ActResult]]

log = get_logger(__name__)
HOSTS: Final = ("127.0.0.1", "localhost")
ENTER: Final = "/enter"
_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, a browser sends no Origin with a form
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_OWN_SITES: Final = ("same-origin", "none")
"""Sources of a request that a browser names and that may see the page; `none` is a typed address."""
_LEAD_IN: Final = '<!doctype html><title>Memory</title><meta http-equiv="refresh" content="0;url=/">'
_SAFE: Final = ("GET", "HEAD")


class PageGuard:
    """Middleware that answers only the browser with the token.

    Args:
        app: Application of the page.
        session: Secrets of this run.
        port: Port that is served.
    """

    def __init__(self, app: ASGIApp, session: PageSession, port: int) -> None:
        self._app, self._session = app, session
        self._hosts = frozenset(f"{name}:{port}" for name in HOSTS)
        self.cookie_name = f"agent_memory_page_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refuse(scope)
        try:
            await (refusal or self._app)(scope, receive, send_guarded)
        except Exception as error:  # noqa: BLE001 - answered by the application; a traceback may quote memories
            log.warning("page_crashed", kind=type(error).__name__)

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the refusal of a request, or None."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        if headers.get("host") not in self._hosts:
            return PlainTextResponse("This is not an address of the page.", 421)
        if method not in {*_SAFE, "POST"}:
            return PlainTextResponse("The page knows no such method.", 405)
        origin = headers.get("origin")
        if (method == "POST" or origin is not None) and origin not in {f"http://{host}" for host in self._hosts}:
            return PlainTextResponse("Another site sent this. Nothing was changed.", 403)
        if path == ENTER and method == "GET":
            return self._enter(scope)
        return self._refuse_visitor(headers)

    def _refuse_visitor(self, headers: Headers) -> Response | None:
        """Return the answer to another site or another browser, or None."""
        if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
            return PlainTextResponse("Another site asked for this.", 403)
        if not self._is_known(headers.get("cookie", "")):
            text = "Open the address that `agent-memory page` printed. It is valid once; start the command again for "
            return PlainTextResponse(f"{text}another one.", 403)
        return None

    def _enter(self, scope: Scope) -> Response:
        """Exchange the token of the first address for a cookie.

        A browser sends no strict cookie after a redirect that began in a file, but does after a page of ours.
        """
        given, token = scope["query_string"].decode("latin-1").removeprefix("token="), self._session.token
        if token is None or not hmac.compare_digest(given.encode(), token.encode()):
            text = "This address was used already, or is wrong. Start `agent-memory page` again for a new one."
            return PlainTextResponse(text, 403)
        self._session.token = None
        is_typed = Headers(scope=scope).get("sec-fetch-site", "none") in _OWN_SITES
        response = RedirectResponse("/", 303) if is_typed else HTMLResponse(_LEAD_IN)
        response.set_cookie(self.cookie_name, self._session.cookie, path="/", httponly=True, samesite="strict")
        return response

    def _is_known(self, header: str) -> bool:
        try:
            morsel = SimpleCookie(header).get(self.cookie_name)
        except CookieError:
            return False
        return morsel is not None and hmac.compare_digest(morsel.value.encode(), self._session.cookie.encode())


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
    "/decisions": today.show_decisions,
    "/forget": memories.show_deletion,
    "/health": system_health.show_health,
    "/import": import_screen.show_import,
    "/import/{upload_id}": import_screen.show_upload,
    "/backups/{file}": system_health.show_backup,
    "/time": time_lanes.show_time,
    "/topics": topic_screens.show_topics,
    "/topics/{name}": topic_screens.show_topic,
    "/entities/{entity_id}": topic_screens.show_entity,
    "/turns/{turn_id}": topic_screens.show_turn,
    "/why": search_reasons.show_question,
    "/why/{record_id}": search_reasons.show_provenance,
    "/purge": memories.preview_purge,
    "/purge/{purge_id}": memories.show_receipt,
    "/memories": memories.list_memories,
    "/memories/forget": memories.preview_forget,
    "/memories/change": memories.preview_changes,
    "/memories/{memory_id}": memories.show_memory,
}
_ACTS: Final[Mapping[str, Act]] = {
    "/decisions/pair": today.decide_pair,
    "/decisions/waiting": today.decide_waiting,
    "/decisions/undo": today.undo_rejection,
    "/health/backup": system_health.back_up,
    "/backups/restore": system_health.restore_from_backup,
    "/backups/delete": system_health.delete_backup,
    "/health/consent": system_health.limit_consent,
    "/health/repair": system_health.repair_files,
    "/purge/run": memories.purge_records,
    "/import/store": import_screen.store_upload,
    "/import/undo": import_screen.undo_import,
    "/memories/edit": memories.store_edit,
    "/memories/store": memories.store_memory,
    "/memories/forget": memories.forget_memories,
    "/memories/change": memories.change_memories,
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
