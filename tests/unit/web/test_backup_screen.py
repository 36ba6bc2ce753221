"""Backups are checked, restored and deleted on the page; a deletion needs the typed name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.web.conftest import PageClient


async def list_files(page: PageClient) -> list[str]:
    """Return the backups of the agent, the newest first."""
    return [backup["file"] for backup in (await page.read("/health"))["backups"]]


async def test_backup_is_read_whole_and_restored(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    await page.post("/health/backup")
    (file,) = await list_files(page)
    await page.store("Deploy on Tuesdays.")
    data = await page.read(f"/backups/{file}")
    assert (data["problems"], data["effect"]) == ([], {"back": 0, "gone": 1})
    html = await page.post("/backups/restore", file=file, sure="on")
    assert "Restored 1 memory" in html
    assert [memory.content for memory in await (await page.service()).searcher.list_all()] == [
        "The heron nests in May."
    ]
    before = next(name for name in await list_files(page) if name != file)
    assert before in html
    await page.post("/backups/restore", file=before, sure="on")
    assert await (await page.service()).storage.count() == 2


async def test_restore_without_a_mark_changes_nothing(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    await page.post("/health/backup")
    await page.store("Deploy on Tuesdays.")
    await page.post("/backups/restore", 400, file=(await list_files(page))[0])
    assert await (await page.service()).storage.count() == 2


async def test_deletion_needs_the_typed_name_and_leaves_the_newest(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    await page.post("/health/backup")
    (older,) = await list_files(page)
    await page.store("Deploy on Tuesdays.")
    await page.post("/health/backup")
    newest = next(name for name in await list_files(page) if name != older)
    await page.post("/backups/delete", 400, file=older, typed="older")
    await page.post("/backups/delete", 400, file=newest, typed=newest)
    assert len(await list_files(page)) == 2
    assert f"Deleted {older}" in await page.post("/backups/delete", file=older, typed=older)
    assert await list_files(page) == [newest]


async def test_damaged_backup_is_named_and_cannot_be_restored(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    await page.post("/health/backup")
    (file,) = await list_files(page)
    path = next(page.session.root.rglob(file))
    path.write_bytes(path.read_bytes()[:-200])
    html = await page.get(f"/backups/{file}")
    assert "Replace the memory" not in html
    assert (await page.read(f"/backups/{file}"))["problems"]


async def test_backup_screen_other_file_is_unknown(page: PageClient, root: Path) -> None:
    await page.store("The heron nests in May.")
    (root / "secret.zip").write_bytes(b"x")
    for name in ("secret.zip", "..%2fsecret.zip", "%2e%2e"):
        assert (await page.http.get(f"/backups/{name}")).status_code == 404
    await page.post("/backups/delete", 404, file="../secret.zip", typed="../secret.zip")
    await page.post("/backups/restore", 404, file="../secret.zip", sure="on")
    assert (root / "secret.zip").exists()
