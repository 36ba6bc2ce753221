"""Page server on 127.0.0.1: socket, first address, end without requests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import uvicorn

from agent_memory.errors import AgentMemoryError, ConfigurationError
from agent_memory.web.application import ENTER, build_application
from agent_memory.web.page_view import load_templates
from agent_memory.web.temporary_files import sweep_uploads, write_opening

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_memory.web.page_view import PageSession

HOST: Final = "127.0.0.1"
IDLE_SECONDS: Final = 30 * 60
_CHECK_SECONDS: Final = 0.2


async def serve_page(
    session: PageSession,
    port: int,
    announce: Callable[[str], None],
    *,
    opens_browser: bool,
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Serve the page until Ctrl-C or a time without requests.

    Args:
        session: Memory and secrets of the run.
        port: Port on 127.0.0.1; 0 for a free one.
        announce: Receives the first address once the server answers.
        opens_browser: True to open the address in the browser.
        idle_seconds: Seconds without a request after which the server ends; an open tab asks each second or two.

    Raises:
        ConfigurationError: The port is in use.
    """
    sweep_uploads()
    listening = _listen(port)
    port = listening.getsockname()[1]
    last = time.monotonic()

    def note_request() -> None:
        nonlocal last
        last = time.monotonic()

    application = build_application(session, port, note_request)
    config = uvicorn.Config(application, log_level="warning", access_log=False, server_header=False, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    warming: asyncio.Task[None] | None = None
    try:
        while not server.started and not serving.done():
            await asyncio.wait([serving], timeout=_CHECK_SECONDS / 10)
        address = f"http://{HOST}:{port}{ENTER}?token={session.token}"
        announce(address)
        warming = asyncio.create_task(_warm(session))
        with TemporaryDirectory(prefix="agent-memory-open-", ignore_cleanup_errors=True) as folder:
            if opens_browser:
                opening = write_opening(Path(folder), address)
                await asyncio.to_thread(webbrowser.open, opening.as_uri())
            while not serving.done():
                await asyncio.wait([serving], timeout=_CHECK_SECONDS)
                server.should_exit = server.should_exit or time.monotonic() - last > idle_seconds
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving
        if warming is not None:
            await asyncio.wait([warming])
        await session.close()
        session.uploads.close()


async def _warm(session: PageSession) -> None:
    """Load what the first views need, while the browser starts."""
    with contextlib.suppress(AgentMemoryError):  # each view reports it
        await asyncio.to_thread(load_templates)
        await session.warm()


def _listen(port: int) -> socket.socket:
    # asyncio sends small packets without delay only if the protocol is named: 40 ms for each answer.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"Port {port} of {HOST} cannot be used: {error.strerror or error}.",
            recovery="Leave --port out to use a free one.",
        ) from None
    return listening
