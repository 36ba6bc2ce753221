"""MCP server by loopback HTTP, with a new token for each start."""

from __future__ import annotations

import hmac
import secrets
from typing import TYPE_CHECKING, Final

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.integrations.mcp.server import build_server
from agent_memory.integrations.mcp.server_session import MAX_CLIENTS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.integrations.mcp.server_session import ServerSession

_HOST: Final = "127.0.0.1"
_MAX_BODY: Final = 1024 * 1024
TOKENS: Final = "_mcp"
"""Folder of the token files, below that of all agents."""


class StartToken:
    """Verifier of the one token of this start."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of the right token, else None."""
        is_right = hmac.compare_digest(token.encode(), self._token.encode())
        return AccessToken(token=token, client_id="local", scopes=[]) if is_right else None


class TokenServer(uvicorn.Server):
    """Server whose token is in a file while its port is bound.

    A port in use ends the process before, so that the token of the server there stays.
    """

    def __init__(self, config: uvicorn.Config, path: Path, token: str, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._path, self._token, self._announce = path, token, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Bind the port, then write the token and announce the server."""
        await super().startup(sockets)
        make_private_folder(self._path.parent)
        with translated(self._path, "write"):
            replace_file(self._path, self._token.encode(), durable=False)
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Delete the token, then release the port."""
        self._path.unlink(missing_ok=True)
        await super().shutdown(sockets)


async def serve_http(session: ServerSession, root: Path, port: int, announce: Callable[[str, Path], None]) -> None:
    """Serve clients on 127.0.0.1 until the process ends.

    Args:
        session: Session to serve.
        root: Folder of all agents.
        port: Port of the server.
        announce: Receives address and path of the token's file once it is written.

    Raises:
        StorageError: The file of the token cannot be written.
    """
    token, address = secrets.token_urlsafe(32), f"http://{_HOST}:{port}/mcp"
    server = build_server(
        session,
        auth=AuthSettings(issuer_url=AnyHttpUrl(f"http://{_HOST}:{port}"), resource_server_url=None),
        token_verifier=StartToken(token),
    )
    names = [f"{name}:{port}" for name in (_HOST, "localhost")]
    app = server.streamable_http_app(
        host=_HOST,
        max_request_body_size=_MAX_BODY,
        max_sessions=MAX_CLIENTS,
        transport_security=TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        ),
    )
    path = root / TOKENS / f"{port}.token"
    config = uvicorn.Config(app, _HOST, port, log_level="warning", access_log=False)
    try:
        await TokenServer(config, path, token, lambda: announce(address, path)).serve()
    finally:
        await session.close()
