"""Settings and health show consent, backups and findings, and change them by a form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.care.privacy.file_encryption import encrypt
from agent_memory.encryption.keys import forget_keys
from agent_memory.files.layout import folder_of
from agent_memory.web.page_view import PageSession
from tests.unit.web.conftest import PageClient

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.settings import ServiceSettings

KEY = "a-long-pass-phrase-of-a-person"


async def test_health_without_memories_has_an_empty_state(page: PageClient) -> None:
    html = await page.get("/health")
    assert "There is no backup of this agent." in html
    assert "mode <strong>autonomous</strong>" in html
    assert (await page.read("/health"))["findings"] is None


async def test_health_examines_every_file_if_asked(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    assert "nothing needs your attention" in await page.get("/health", check="on")


async def test_health_shows_a_finding_and_repairs_it(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    page.session.folder.chmod(0o755)
    findings = (await page.read("/health", check="on"))["findings"]
    assert "permissions_open" in {finding["code"] for finding in findings}
    html = await page.post("/health/repair")
    assert "Repaired" in html
    assert [memory.content for memory in await (await page.service()).list_recent()] == ["The heron nests in May."]


@pytest.mark.parametrize(("limit", "sentence"), [("off", "is off"), ("ask", "is mode ask"), ("manual", "mode manual")])
async def test_consent_is_limited_for_the_agent(page: PageClient, limit: str, sentence: str) -> None:
    await page.store("The heron nests in May.")
    assert sentence in await page.post("/health/consent", limit=limit)
    consent = (await page.read("/health"))["consent"]
    assert consent["enabled"] is (limit != "off")
    assert consent["sources"]
    await page.post("/health/consent", limit="autonomous")
    assert (await page.read("/health"))["consent"]["mode"] == "autonomous"


async def test_unknown_limit_changes_nothing(page: PageClient) -> None:
    await page.post("/health/consent", 400, limit="everything")


async def test_backup_is_made_and_listed(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    assert "Backed up 1 memory" in await page.post("/health/backup")
    (backup,) = (await page.read("/health"))["backups"]
    assert (backup["memories"], backup["problem"]) == (1, "")
    assert backup["file"] in await page.get("/health")


async def test_backup_of_nothing_is_refused(page: PageClient) -> None:
    assert "That did not work" in await page.post("/health/backup", 500)


async def test_damaged_backup_says_why(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    await page.post("/health/backup")
    (file,) = (page.session.root / "_backups").glob("*.zip")
    file.write_bytes(b"not a zip")
    assert (await page.read("/health"))["backups"][0]["problem"]


async def test_read_only_page_offers_no_act(page: PageClient, reader: PageClient) -> None:
    await page.store("The heron nests in May.")
    assert "<form" not in await reader.get("/health", check="on")
    await reader.post("/health/consent", 403, limit="off")


@pytest.fixture
async def locked(
    page: PageClient, settings: ServiceSettings, monkeypatch: pytest.MonkeyPatch, root: Path
) -> PageClient:
    """Return a page of an encrypted memory, without its key."""
    await page.store("The heron nests in May.")
    await page.session.close()
    monkeypatch.setenv("AGENT_MEMORY_KEY", KEY)
    encrypt(folder_of("ada", root))
    monkeypatch.delenv("AGENT_MEMORY_KEY")
    forget_keys()
    client = PageClient(PageSession("ada", settings))
    await client.enter()
    return client


@pytest.mark.parametrize("path", ["/", "/memories", "/decisions", "/forget", "/health", "/why"])
async def test_encrypted_memory_asks_for_its_key(locked: PageClient, path: str) -> None:
    html = await locked.get(path, 423)
    assert "This memory is encrypted" in html
    assert 'type="password"' in html
    assert "heron" not in html


async def test_right_key_opens_an_encrypted_memory(locked: PageClient) -> None:
    refused = await locked.post("/unlock", 423, key="wrong", back="/memories")
    assert "This memory is encrypted" in refused
    assert "This is not the key of this memory" in refused
    html = await locked.post("/unlock", key=KEY, back="/memories")
    assert "The heron nests in May." in html
    assert '<span class="badge">Encrypted</span>' in html
    assert KEY not in html
    await locked.session.close()
