"""Today lists changes since yesterday with an undo each, what waits, and the state of the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.web import today

if TYPE_CHECKING:
    import pytest

    from tests.unit.web.conftest import PageClient


async def test_today_without_memories_says_how_to_begin(page: PageClient) -> None:
    assert "Nothing is remembered yet" in await page.get("/")
    data = await page.read("/today")
    assert (data["waiting_count"], data["changes"]) == (0, {"kept": [], "changed": [], "forgotten": []})


async def test_today_groups_changes_by_what_happened(page: PageClient) -> None:
    kept, changed, gone = [await page.store(f"Number {number} is here.") for number in ("one", "two", "three")]
    service = await page.service()
    await service.update(changed, {"category": "task"})
    await service.forget(gone)
    changes = (await page.read("/today"))["changes"]
    assert [change["memories"][0]["id"] for change in changes["kept"]] == [gone, changed, kept]
    assert [(change["memories"][0]["id"], change["fields"]) for change in changes["changed"]] == [
        (changed, ["category"])
    ]
    assert [change["memories"][0]["id"] for change in changes["forgotten"]] == [gone]


async def test_today_undo_takes_a_change_back_and_can_be_undone(page: PageClient) -> None:
    memory_id = await page.store("Deploy on Tuesdays.")
    service = await page.service()
    await service.forget(memory_id)
    change = (await page.read("/today"))["changes"]["forgotten"][0]["change"]
    html = await page.post("/undo", change=change, back="/")
    assert "Took back 1 change of 1 memory." in html
    assert await service.get(memory_id)
    again = html.partition('class="notice"')[2].partition('name="change" value="')[2].partition('"')[0]
    await page.post("/undo", change=again, back="/")
    assert await service.storage.get(memory_id) is None


async def test_today_shows_waiting_notes_and_conflicts(page: PageClient) -> None:
    for number in (60, 90):
        await page.store(f"The API allows {number} requests a minute.")
    service = await page.service()
    await service.writer.finder.compare_all()
    async with opened_inbox(service) as inbox:
        await inbox.hold_store({"content": "The varnish needs three days."}, page.session.caller)
    data = await page.read("/today")
    assert (data["waiting_count"], data["conflict_count"]) == (1, 1)
    html = await page.get("/")
    assert "The varnish needs three days." in html
    assert 'href="/decisions">Decide' in html


async def test_today_of_a_damaged_journal_says_what_to_do(page: PageClient) -> None:
    await page.store("Deploy on Tuesdays.")
    journal = page.session.folder / "memories.yaml"
    await page.session.close()
    journal.write_bytes(b"\x00\x01not a journal\n" * 10)
    html = await page.get("/", (await page.http.get("/")).status_code)
    assert "Traceback" not in html
    assert "alert" in html


async def test_today_leaves_out_changes_before_yesterday(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    await page.store("Deploy on Tuesdays.")
    monkeypatch.setattr(today, "_DAYS", -1)  # from tomorrow on
    assert (await page.read("/today"))["changes"]["kept"] == []


async def test_today_of_a_damaged_journal_does_not_say_that_nothing_is_remembered(page: PageClient) -> None:
    await page.store("Deploy on Tuesdays.")
    journal = page.session.folder / "memories.yaml"
    await page.session.close()
    journal.write_bytes(b"not a journal\n" * 10)
    for path in ("/", "/memories"):
        assert "Nothing is remembered yet" not in await page.get(path)
        assert '/health?check=on#doctor">Doctor' in await page.get(path)


async def test_today_says_that_consent_is_off(page: PageClient) -> None:
    await page.store("Deploy on Tuesdays.")
    await page.post("/health/consent", limit="off")
    assert "Sessions store nothing and show no memory" in await page.get("/")


async def test_today_names_screens_instead_of_commands(page: PageClient) -> None:
    for number in (60, 90):
        await page.store(f"The API allows {number} requests a minute.")
    await (await page.service()).writer.finder.compare_all()
    html = await page.get("/")
    assert "agent-memory conflicts" not in html
    assert '<a href="/decisions">Decisions</a> shows what to decide.' in html
