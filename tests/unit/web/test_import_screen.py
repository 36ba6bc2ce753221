"""A dropped or pasted text becomes a table first; a yes stores it, and an undo takes all of it back."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

from agent_memory.web import temporary_files
from tests.unit.web.conftest import ORIGIN

if TYPE_CHECKING:
    import pytest

    from tests.unit.web.conftest import PageClient

MEM0 = json.dumps({"results": [{"id": "1", "memory": "The heron nests in May.", "created_at": "2026-01-02T03:04:05Z"}]})


async def drop(page: PageClient, content: bytes, name: str, status: int = 200, csrf: str = "") -> Any:
    """Drop a file; return the answer."""
    headers = {"Origin": ORIGIN, "X-CSRF": csrf or page.session.csrf}
    response = await page.http.post("/import/upload", params={"name": name}, content=content, headers=headers)
    assert response.status_code == status, response.text
    return response.json()


async def test_dropped_file_shows_a_table_and_stores_nothing(page: PageClient) -> None:
    address = (await drop(page, MEM0.encode(), "mem0.json"))["address"]
    data = await page.read(address)
    assert [(row["format"], row["what"], row["new"]) for row in data["rows"]] == [("mem0", "memories", 1)]
    assert "1 new record" in await page.get(address)
    assert await (await page.service()).storage.count() == 0


async def test_confirmed_import_has_low_trust_and_undo(page: PageClient) -> None:
    address = (await drop(page, MEM0.encode(), "mem0.json"))["address"]
    html = await page.post("/import/store", upload=address.rpartition("/")[2], new="1")
    assert "Stored 1 memory." in html
    service = await page.service()
    (memory,) = await service.searcher.list_all()
    assert (memory.content, memory.trust) == ("The heron nests in May.", "low")
    assert (await page.read(address))["new"] == 0
    import_id = html.partition('class="notice"')[2].partition('name="import" value="')[2].partition('"')[0]
    assert "Took back 1 memory." in await page.post("/import/undo", **{"import": import_id})
    assert await service.searcher.list_all() == []


async def test_import_waits_in_the_inbox_if_asked(page: PageClient) -> None:
    address = (await drop(page, MEM0.encode(), "mem0.json"))["address"]
    html = await page.post("/import/store", upload=address.rpartition("/")[2], new="1", review="on")
    assert "1 in the inbox" in html
    assert await (await page.service()).searcher.list_all() == []
    assert (await page.read("/decisions"))["waiting_count"] == 1


async def test_chat_export_in_a_zip_becomes_turns(page: PageClient) -> None:
    message = {"uuid": "m", "sender": "human", "text": "The keel is larch.", "created_at": "2026-01-02T03:04:05Z"}
    chat = [{"uuid": "c", "name": "Boat", "created_at": "2026-01-02T03:04:05Z", "chat_messages": [message]}]
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("conversations.json", json.dumps(chat))
    address = (await drop(page, archive.getvalue(), "export.zip"))["address"]
    assert [(row["what"], row["new"]) for row in (await page.read(address))["rows"]] == [("turns", 1)]
    html = await page.post("/import/store", upload=address.rpartition("/")[2], new="1")
    assert "Stored 1 turn." in html


async def test_pasted_list_shows_the_same_table(page: PageClient) -> None:
    html = await page.post("/import/paste", 200, text=MEM0)
    assert "1 new record" in html


async def test_memory_that_changed_since_the_table_refuses_the_import(page: PageClient) -> None:
    first, second = [(await drop(page, MEM0.encode(), "mem0.json"))["address"].rpartition("/")[2] for _ in range(2)]
    await page.post("/import/store", upload=first, new="1")
    await page.post("/import/store", 409, upload=second, new="1")


async def test_upload_without_the_secret_of_the_page_is_refused(page: PageClient, reader: PageClient) -> None:
    assert "problem" in await drop(page, b"x", "x.txt", 400, csrf="wrong")
    assert "problem" in await drop(reader, b"x", "x.txt", 400)
    response = await page.http.post("/import/upload", content=b"x", headers={"X-CSRF": page.session.csrf})
    assert response.status_code == 403  # no Origin


async def test_import_after_its_undo_stores_it_again(page: PageClient) -> None:
    for _ in range(2):
        upload = (await drop(page, MEM0.encode(), "mem0.json"))["address"].rpartition("/")[2]
        assert "Stored 1 memory." in await page.post("/import/store", upload=upload, new="1")
        [change] = (await (await page.service()).history.list_changes())[:1]
        assert "Took back 1 memory." in await page.post("/import/undo", **{"import": change.session_id})
        assert await (await page.service()).searcher.list_all() == []


async def test_names_of_uploads_stay_in_their_folder(page: PageClient) -> None:
    names = ("../../../etc/passwd", "..\\..\\x.json", "/abs.json", ".hidden", "..", "", "a" * 400)
    addresses = [(await drop(page, MEM0.encode(), name))["address"] for name in names]
    paths = [page.session.uploads.get_path(address.rpartition("/")[2]) for address in addresses]
    assert len({path.parent.parent for path in paths}) == 1
    folder = paths[0].parent.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    page.session.uploads.close()
    assert not folder.exists()


async def test_files_that_are_no_import_say_why(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    address = (await drop(page, b"\x00\x01\x02", "photo.png"))["address"]
    await page.get(address, 400)
    assert "empty" in (await drop(page, b"", "empty.json", 400))["problem"]
    monkeypatch.setattr(temporary_files, "MAX_UPLOAD", 10)
    assert "larger" in (await drop(page, b"x" * 11, "x.txt", 400))["problem"]
    await page.get("/import/0000000000000000", 404)
    await page.post("/import/store", 404, upload="0000000000000000", new="1")
    await page.post("/import/undo", 400, **{"import": "page"})


async def test_own_export_is_left_to_the_command(page: PageClient) -> None:
    line = json.dumps({"kind": "memory", "id": "mem-000000000001", "content": "x", "agent_id": "ada"})
    address = (await drop(page, f"{line}\n".encode(), "export.jsonl"))["address"]
    assert "agent-memory import" in await page.get(address, 400)
