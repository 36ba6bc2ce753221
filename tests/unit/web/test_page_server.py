"""The server listens on this machine alone, says its address once, and ends when nobody looks."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConfigurationError
from agent_memory.web import page_server
from agent_memory.web.demo_year import build_demo
from agent_memory.web.page_view import PageSession

if TYPE_CHECKING:
    from agent_memory.settings import ServiceSettings

pytestmark = pytest.mark.enable_socket


async def test_server_announces_its_address_and_ends_without_requests(settings: ServiceSettings) -> None:
    session, addresses = PageSession("ada", settings), list[str]()
    await page_server.serve_page(session, 0, addresses.append, opens_browser=False, idle_seconds=0)
    (address,) = addresses
    assert address.startswith("http://127.0.0.1:")
    assert address.endswith(f"/enter?token={session.token}")


async def test_server_opens_the_browser(settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, int, str]] = []

    def open_file(address: str) -> None:
        path = Path(address.removeprefix("file://"))
        opened.append((address, path.stat().st_mode & 0o777, path.read_text("utf-8")))

    monkeypatch.setattr(page_server.webbrowser, "open", open_file)
    addresses: list[str] = []
    session = PageSession("ada", settings)
    await page_server.serve_page(session, 0, addresses.append, opens_browser=True, idle_seconds=0)
    ((address, mode, content),) = opened
    assert str(session.token) not in address
    assert mode == 0o600
    assert addresses[0] in content
    assert not Path(address.removeprefix("file://")).exists()


async def test_port_in_use_is_an_error_with_a_hint(settings: ServiceSettings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Port {port}") as error:
            await page_server.serve_page(PageSession("ada", settings), port, print, opens_browser=False)
    assert "--port" in error.value.recovery


async def test_demo_has_something_on_every_screen(settings: ServiceSettings) -> None:
    await build_demo("demo", settings)
    session = PageSession("demo", settings)
    service = await session.open()
    assert len(await service.suspects()) == 2
    assert len(await service.history.forgotten()) == 1
    assert await service.storage.count() > 15
    await session.close()


async def test_stamp_is_read_without_opening_the_memory(settings: ServiceSettings) -> None:
    session = PageSession("ada", settings)
    first = session.read_stamp()
    await (await session.open()).store("The heron nests in May.")
    assert await asyncio.to_thread(session.read_stamp) != first
    await session.close()


async def test_open_two_views_at_once_share_one_memory(settings: ServiceSettings) -> None:
    session = PageSession("ada", settings)
    first, second = await asyncio.gather(session.open(), session.open())
    assert first is second
    await session.close()


async def test_warm_changes_nothing(settings: ServiceSettings) -> None:
    session = PageSession("ada", settings)
    await session.warm()
    assert await (await session.open()).history.list_changes() == []
    await session.close()


async def test_server_socket_names_its_protocol(settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, asyncio leaves small packets to wait for each other."""
    session, protocols, listen = PageSession("ada", settings), list[int](), socket.socket.listen

    def note(listening: socket.socket, *backlog: int) -> None:
        protocols.append(listening.proto)
        listen(listening, *backlog)

    monkeypatch.setattr(socket.socket, "listen", note)
    await page_server.serve_page(session, 0, str, opens_browser=False, idle_seconds=0)
    assert protocols == [socket.IPPROTO_TCP]
