"""A dropped or pasted text becomes a table first; a yes stores it, and an undo takes all of it back."""

from __future__ import annotations

import errno
import io
import json
import tempfile
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.web import temporary_files
from tests.unit.web.conftest import ORIGIN

if TYPE_CHECKING:
    from pathlib import Path

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
    await page.get(address, 404)  # its plain text is deleted
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
    assert "They act as instructions only after `agent-memory accept import-" in html


async def test_pasted_list_shows_the_same_table(page: PageClient) -> None:
    html = await page.post("/import/paste", 200, text=MEM0)
    assert "1 new record" in html


async def test_import_options_follow_the_format(page: PageClient) -> None:
    chat = b"02/03/26, 09:15 - Ines: Deploy on Tuesday.\n03/03/26, 09:16 - Tom: Yes, on Tuesday.\n"
    table = b"fact_text,day\nThe heron nests in May.,2026-01-02\n"
    address = (await drop(page, chat, "chat.txt"))["address"]
    assert (await page.read(address))["options"] == ["me", "dates"]
    assert 'name="dates"' in await page.get(address)
    assert (await page.read((await drop(page, MEM0.encode(), "mem0.json"))["address"]))["options"] == []
    csv = (await drop(page, table, "facts.csv"))["address"]
    data = await page.read(csv)
    assert (data["options"], data["new"]) == (["columns"], 0)
    html = await page.get(f"{csv}?columns=text=fact_text,date=day")
    assert "1 new record" in html
    assert 'name="columns" value="text=fact_text,date=day"' in html
    await page.get(f"{csv}?columns=words=fact_text", 400)
    stored = {"upload": csv.rpartition("/")[2], "new": "1", "columns": "text=fact_text,date=day"}
    assert "Stored 1 memory." in await page.post("/import/store", **stored)


async def test_memory_that_changed_since_the_table_refuses_the_import(page: PageClient) -> None:
    for status in (303, 409):
        upload = (await drop(page, MEM0.encode(), "mem0.json"))["address"].rpartition("/")[2]
        await page.post("/import/store", status, upload=upload, new="1")


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


@pytest.mark.parametrize(
    "name",
    [
        "../../../etc/mem.json", "..\\..\\x.json", "/abs.json", ".hidden", "..", "", "a" * 400, "m\0.json", "m\n.json",
        "鷺" * 200 + ".json", "😀" * 100, "m." + "鷺" * 200, "a" * 300 + ".json", "\0",
    ],
)  # fmt: skip
async def test_name_of_an_upload_stays_in_its_folder(page: PageClient, name: str) -> None:
    address = (await drop(page, MEM0.encode(), name))["address"]
    path = page.session.uploads.get_path(address.rpartition("/")[2])
    assert path.read_bytes() == MEM0.encode()
    assert (path.suffix == ".json") == name.endswith(".json")
    folder = path.parent.parent
    assert folder.stat().st_mode & 0o777 == 0o700
    page.session.uploads.close()
    assert not folder.exists()


async def test_upload_is_deleted_once_its_use_ended(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    async def upload(content: bytes = MEM0.encode(), name: str = "mem0.json") -> tuple[str, Path]:
        upload_id = (await drop(page, content, name))["address"].rpartition("/")[2]
        return upload_id, page.session.uploads.get_path(upload_id)

    _, earlier = await upload()
    upload_id, path = await upload()
    folder = path.parent.parent
    assert not earlier.exists()  # the next one was dropped
    await page.post("/import/store", upload=upload_id, new="1")
    assert list(folder.iterdir()) == []
    await upload()
    memory_id = (await (await page.service()).searcher.list_all())[0].id
    await page.post("/purge/run", id=memory_id, planned=memory_id, sure="on")
    assert list(folder.iterdir()) == []
    upload_id, _ = await upload()
    await page.post("/import/store", 409, upload=upload_id, new="7")
    assert list(folder.iterdir()) == []
    upload_id, _ = await upload(b"\x00\x01\x02", "photo.png")
    await page.get(f"/import/{upload_id}", 400)
    await drop(page, b"", "empty.json", 400)
    monkeypatch.setattr(temporary_files, "MAX_UPLOAD", 10)
    await drop(page, b"x" * 11, "x.txt", 400)
    assert list(folder.iterdir()) == []


async def test_upload_that_the_disk_refuses_says_why(page: PageClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(temporary_files, "write_all", refuse)
    assert "No space" in (await drop(page, MEM0.encode(), "mem0.json", 400))["problem"]


async def test_start_deletes_uploads_of_killed_processes(
    page: PageClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stale = tmp_path / "agent-memory-import-stale" / "0"
    stale.mkdir(parents=True)
    (stale / "mem0.json").write_bytes(MEM0.encode())
    (tmp_path / "agent-memory-import-link").symlink_to(tmp_path)
    address = (await drop(page, MEM0.encode(), "mem0.json"))["address"]
    path = page.session.uploads.get_path(address.rpartition("/")[2])
    assert path.is_relative_to(tmp_path)
    temporary_files.sweep_uploads()
    assert not stale.parent.exists()
    assert path.exists()  # its page runs


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
