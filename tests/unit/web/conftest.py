"""The page of an agent ada, asked without a socket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agent_memory.settings import ServiceSettings
from agent_memory.web.application import build_application
from agent_memory.web.page_view import PageSession

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.memory.history import History

PORT = 8123
ORIGIN = f"http://127.0.0.1:{PORT}"


class PageClient:
    """Browser of one page: its cookie, and forms with the secret of the page."""

    def __init__(self, session: PageSession) -> None:
        self.session = session
        self.requests = 0
        transport = httpx.ASGITransport(build_application(session, PORT, self._count))
        self.http = httpx.AsyncClient(transport=transport, base_url=ORIGIN)

    def _count(self) -> None:
        self.requests += 1

    async def enter(self) -> httpx.Response:
        """Exchange the token for the cookie."""
        return await self.http.get("/enter", params={"token": self.session.token or ""})

    async def get(self, path: str, status: int = 200, **params: Any) -> str:
        """Return the HTML of a view."""
        response = await self.http.get(path, params=params or None)
        assert response.status_code == status, response.text
        return response.text

    async def read(self, path: str, status: int = 200, **params: Any) -> Any:
        """Return the document of a view."""
        response = await self.http.get(f"{path}.json", params=params or None)
        assert response.status_code == status, response.text
        return response.json()

    async def post(self, path: str, status: int = 303, **fields: Any) -> str:
        """Submit a form of this page; return the HTML after the redirect, or of the refusal."""
        data = {"csrf": self.session.csrf, **fields}
        response = await self.http.post(path, data=data, headers={"Origin": ORIGIN})
        assert response.status_code == status, response.text
        return await self.get(response.headers["location"]) if status == httpx.codes.SEE_OTHER else response.text

    async def service(self) -> MemoryService:
        """Return the memory of the page."""
        return await self.session.open()

    async def history(self) -> History:
        """Return the past of the memory."""
        return (await self.session.open()).history

    async def store(self, content: str, **values: Any) -> str:
        """Store a memory as a session would; return its ID."""
        return (await (await self.service()).store({"content": content, **values})).memory.id


@pytest.fixture
def settings(root: Path) -> ServiceSettings:
    """Return settings that search by words alone."""
    return ServiceSettings(storage_root=str(root), embedder="none")


@pytest.fixture
async def page(settings: ServiceSettings) -> AsyncIterator[PageClient]:
    """Return the page of an agent without memories, opened in a browser."""
    client = PageClient(PageSession("ada", settings))
    await client.enter()
    yield client
    await client.http.aclose()
    await client.session.close()
    client.session.uploads.close()


@pytest.fixture
async def reader(settings: ServiceSettings, page: PageClient) -> AsyncIterator[PageClient]:
    """Return a page of the same memory that was started with --read-only."""
    client = PageClient(PageSession("ada", settings, is_read_only=True))
    await client.enter()
    yield client
    await client.http.aclose()
    await client.session.close()
    client.session.uploads.close()
