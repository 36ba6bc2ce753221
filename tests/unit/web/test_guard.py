"""The page answers one browser, accepts its own forms, and sends nothing that could run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.web.application import HOSTS
from agent_memory.web.page_view import PageSession
from tests.unit.web.conftest import ORIGIN, PORT, PageClient

if TYPE_CHECKING:
    from agent_memory.settings import ServiceSettings

PATHS = ["/", "/today.json", "/memories", "/memories.json", "/changes.json", "/static/page.css", "/no-such-page"]


@pytest.fixture
def stranger(settings: ServiceSettings) -> PageClient:
    """Return a browser that was not given the address."""
    return PageClient(PageSession("ada", settings))


@pytest.mark.parametrize("path", PATHS)
async def test_request_without_cookie_is_refused(stranger: PageClient, path: str) -> None:
    assert (await stranger.http.get(path)).status_code == 403


async def test_token_becomes_a_strict_cookie_and_leaves_the_address(stranger: PageClient) -> None:
    response = await stranger.enter()
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.session.token is None


async def test_token_is_valid_once(stranger: PageClient) -> None:
    token = stranger.session.token
    await stranger.enter()
    assert (await stranger.http.get("/enter", params={"token": token or ""})).status_code == 403


@pytest.mark.parametrize("token", ["", "wrong", "None", "\u00e9"])
async def test_wrong_token_is_refused(stranger: PageClient, token: str) -> None:
    assert (await stranger.http.get("/enter", params={"token": token})).status_code == 403
    assert stranger.session.token is not None


@pytest.mark.parametrize(
    "cookie", ["", "x=1", "agent_memory_page_8123=wrong", "agent_memory_page_8123=", '"', "\u00e9=1"]
)
async def test_wrong_cookie_is_refused(stranger: PageClient, cookie: str) -> None:
    response = await stranger.http.get("/", headers={"Cookie": cookie.encode()})
    assert response.status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"evil.example:{PORT}", ""])
@pytest.mark.parametrize("path", ["/", "/enter", "/static/page.css"])
async def test_foreign_host_is_misdirected(page: PageClient, host: str, path: str) -> None:
    assert (await page.http.get(path, headers={"Host": host})).status_code == 421


@pytest.mark.parametrize("name", HOSTS)
async def test_own_host_is_answered(page: PageClient, name: str) -> None:
    assert (await page.http.get("/", headers={"Host": f"{name}:{PORT}"})).status_code == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"https://127.0.0.1:{PORT}", "http://127.0.0.1:1"]
)
async def test_form_of_another_origin_changes_nothing(page: PageClient, origin: str | None) -> None:
    memory_id = await page.store("The ledger is in MySQL.")
    headers = {} if origin is None else {"Origin": origin}
    data = {"csrf": page.session.csrf, "id": memory_id}
    assert (await page.http.post("/memories/forget", data=data, headers=headers)).status_code == 403
    assert await (await page.service()).get(memory_id)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_request_that_another_site_started_is_refused(page: PageClient, site: str) -> None:
    assert (await page.http.get("/", headers={"Sec-Fetch-Site": site})).status_code == 403


@pytest.mark.parametrize("csrf", ["", "wrong", "\u00e9"])
@pytest.mark.parametrize("path", ["/memories/edit", "/memories/forget", "/restore", "/undo", "/unlock"])
async def test_form_without_the_secret_changes_nothing(page: PageClient, path: str, csrf: str) -> None:
    memory_id = await page.store("The ledger is in MySQL.")
    assert "not of this page" in await page.post(path, 403, csrf=csrf, id=memory_id, change="1")
    assert await (await page.service()).get(memory_id)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_other_method_is_refused(page: PageClient, method: str) -> None:
    response = await page.http.request(method, "/memories", headers={"Origin": ORIGIN})
    assert response.status_code == 405


@pytest.mark.parametrize("path", [*PATHS, "/enter"])
async def test_each_answer_forbids_what_the_page_does_not_need(page: PageClient, path: str) -> None:
    headers = (await page.http.get(path)).headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/static/../page_view.py", "/static/%2e%2e/application.py", "/static/"])
async def test_static_serves_its_folder_alone(page: PageClient, path: str) -> None:
    assert (await page.http.get(path)).status_code == 404


async def test_read_only_page_refuses_acts_and_shows_no_form(page: PageClient, reader: PageClient) -> None:
    memory_id = await page.store("The ledger is in MySQL.")
    assert "--read-only" in await reader.post("/memories/forget", 403, id=memory_id)
    for path in ("/", "/memories", f"/memories/{memory_id}"):
        assert 'method="post"' not in await reader.get(path)


async def test_long_form_is_refused(page: PageClient) -> None:
    assert "larger than 1 MB" in await page.post("/memories/edit", 400, content="x" * 1_100_000)


async def test_crash_of_a_view_says_nothing_of_a_memory(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise LookupError("The secret word is heron.")

    monkeypatch.setattr(PageSession, "open", fail)
    response = await page.http.get("/memories")
    assert response.status_code == 500
    assert "heron" not in response.text
    assert "default-src 'none'" in response.headers["content-security-policy"]


async def test_each_request_counts_against_idleness(page: PageClient) -> None:
    before = page.requests
    await page.get("/memories")
    await page.http.get("/changes.json")
    assert page.requests == before + 2


async def test_entry_from_a_file_leads_on_without_a_redirect(settings: ServiceSettings) -> None:
    """After a redirect that began in a file, a browser sends no strict cookie."""
    client = PageClient(PageSession("ada", settings))
    response = await client.http.get(
        "/enter", params={"token": client.session.token or ""}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert (response.status_code, "location" in response.headers) == (200, False)
    assert 'content="0;url=/"' in response.text
    assert "Today" in await client.get("/")
    await client.http.aclose()
    await client.session.close()
