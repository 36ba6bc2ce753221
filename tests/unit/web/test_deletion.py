"""Words list candidates and choose none; a purge is previewed, confirmed, and has a receipt."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.web.test_decisions import hold_note

if TYPE_CHECKING:
    from tests.unit.web.conftest import PageClient

SECRET = "The heron colony at Loch Gruinart is secret."


async def get_plan(page: PageClient, *ids: str) -> dict[str, Any]:
    """Return the fields of the form of a purge preview."""
    data = (await page.http.get("/purge.json", params={"id": list(ids)})).json()
    return {"id": data["asked"], "planned": data["ids"]}


async def test_screen_without_memories_has_an_empty_state(page: PageClient) -> None:
    html = await page.get("/forget")
    assert "Nothing is forgotten." in html
    assert "Nothing was purged." in html
    assert "No memory matches" in await page.get("/forget", q="my address")


async def test_words_list_candidates_and_choose_none(page: PageClient) -> None:
    mine = await page.store("My address is 5 Lime Road.", source={"kind": "user"})
    hers = await page.store("My sister's address is 8 Elm Street.", source={"kind": "user"})
    data = await page.read("/forget", q="my address")
    assert {row["id"] for row in data["candidates"]} == {mine, hers}
    html = await page.get("/forget", q="my address")
    assert "checked" not in html
    assert "about the user" in html


async def test_words_also_name_waiting_notes(page: PageClient) -> None:
    await hold_note(page, "The varnish needs three days.")
    assert "waits: reject it there" in await page.get("/forget", q="varnish three days")


async def test_long_description_is_refused(page: PageClient) -> None:
    await page.get("/forget", 400, q="x" * 5_000)


async def test_forgotten_memories_are_listed_and_restored(page: PageClient) -> None:
    memory_id = await page.store(SECRET)
    service = await page.service()
    await service.forget(memory_id)
    assert [row["id"] for row in (await page.read("/forget"))["forgotten"]] == [memory_id]
    await page.post("/restore", id=memory_id)
    assert (await page.read("/forget"))["forgotten"] == []


async def test_preview_of_a_purge_shows_texts_and_deletes_nothing(page: PageClient) -> None:
    memory_id = await page.store(SECRET)
    html = await page.get("/purge", id=memory_id)
    assert SECRET in html
    assert "cannot be undone" in html
    assert await (await page.service()).get(memory_id)


async def test_preview_without_a_choice_or_of_an_unknown_record_is_refused(page: PageClient) -> None:
    await page.store(SECRET)
    await page.get("/purge", 400)
    await page.get("/purge", 404, id="mem-000000000000")


async def test_purge_deletes_the_text_from_every_file_and_has_a_receipt(page: PageClient) -> None:
    memory_id = await page.store(SECRET)
    await page.store("Deploy on Tuesdays.")
    html = await page.post("/purge/run", **await get_plan(page, memory_id), sure="on")
    assert "Every byte of every file was searched." in html
    assert "Receipt of a purge" in html
    await (await page.service()).settle()
    assert all(b"heron" not in file.read_bytes() for file in page.session.root.rglob("*") if file.is_file())
    purges = (await page.read("/forget"))["purges"]
    receipt = await page.read(f"/purge/{purges[0]['purge_id']}")
    assert (receipt["ids"], receipt["state"]) == ([memory_id], "gone")
    await page.get(f"/memories/{memory_id}", 404)


@pytest.mark.parametrize("missing", ["sure", "id"])
async def test_purge_without_the_mark_deletes_nothing(page: PageClient, missing: str) -> None:
    memory_id = await page.store(SECRET)
    fields = {**await get_plan(page, memory_id), "sure": "on"}
    del fields[missing]
    await page.post("/purge/run", 400, **fields)
    assert await (await page.service()).get(memory_id)


async def test_purge_of_more_than_the_preview_showed_is_refused(page: PageClient) -> None:
    memory_id = await page.store(SECRET)
    fields = await get_plan(page, memory_id)
    service = await page.service()
    await service.forget(memory_id)
    other_id = await page.store(SECRET)
    assert "Open the preview again" in await page.post("/purge/run", 409, **fields, sure="on")
    assert await service.get(other_id)


async def test_unknown_receipt_is_not_found(page: PageClient) -> None:
    await page.get("/purge/none", 404)


async def test_read_only_page_offers_no_deletion(page: PageClient, reader: PageClient) -> None:
    memory_id = await page.store(SECRET)
    html = await reader.get("/forget", q="heron colony")
    assert re.findall(r"<button[^>]*>([^<]+)", html) == ["Find candidates"]
    assert "<button" not in await reader.get("/purge", id=memory_id)
    await reader.post("/purge/run", 403, id=memory_id, planned=memory_id, sure="on")
