"""Page guard: one browser, its own forms, and headers of each answer."""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from agent_memory.web.page_session import PageSession

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
