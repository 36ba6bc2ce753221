"""MCP server by loopback HTTP, with a new token for each start."""

from __future__ import annotations

import hmac
import os
import secrets
from typing import TYPE_CHECKING, Final

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from agent_memory.files.atomic import make_private_folder, opened, translated, write_all
from agent_memory.integrations.mcp.server import build_server
from agent_memory.integrations.mcp.server_session import MAX_CLIENTS

if TYPE_CHECKING:
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
    path = _write_token(root, port, token)
    try:
        announce(address, path)
        await uvicorn.Server(uvicorn.Config(app, _HOST, port, log_level="warning", access_log=False)).serve()
    finally:
        path.unlink(missing_ok=True)
        await session.close()


def _write_token(root: Path, port: int, token: str) -> Path:
    path = root / TOKENS / f"{port}.token"
    make_private_folder(path.parent)
    with translated(path, "write"), opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as descriptor:
        os.fchmod(descriptor, 0o600)
        write_all(descriptor, token.encode())
    return path
