"""Time shows when memories held, and the memory as it was after an earlier change."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.web.conftest import PageClient


async def store_move(page: PageClient) -> tuple[str, str]:
    """Store a memory and its replacement; return their IDs."""
    older = await page.store("The ledger is in MySQL.", project="tidewatch")
    newer = await page.store("The ledger is in PostgreSQL.", project="tidewatch", supersedes=older)
    return older, newer


async def test_replaced_memory_shares_a_lane_and_is_over(page: PageClient) -> None:
    older, newer = await store_move(page)
    await page.store("The heron nests in May.")
    subjects = {subject["name"]: subject["lanes"] for subject in (await page.read("/time"))["subjects"]}
    (lane,) = subjects["tidewatch"]
    assert [(bar["id"], bar["is_over"]) for bar in lane["bars"]] == [(older, True), (newer, False)]
    assert lane["bars"][0]["end"] == lane["bars"][1]["begin"]
    assert len(subjects[""]) == 1


async def test_subject_is_chosen_by_words_or_project(page: PageClient) -> None:
    older, newer = await store_move(page)
    heron = await page.store("The heron nests in May.")

    async def list_ids(**asked: str) -> set[str]:
        subjects = (await page.read("/time", **asked))["subjects"]
        return {bar["id"] for subject in subjects for lane in subject["lanes"] for bar in lane["bars"]}

    assert await list_ids(q="PostgreSQL ledger") == {older, newer}
    assert await list_ids(project="tidewatch") == {older, newer}
    assert await list_ids(project="-") == {heron}
    assert await list_ids(q="PostgreSQL", as_of="1") == set()


async def test_earlier_state_has_what_existed_with_its_text(page: PageClient) -> None:
    first = await page.store("The heron nests in May.")
    service = await page.service()
    await service.update(first, {"content": "The heron nests in June."})
    second = await page.store("Deploy on Tuesdays.")
    await service.forget(first)
    last = (await page.read("/time"))["changes"]["last"]

    async def list_texts(as_of: int) -> list[str]:
        return [memory["content"] for memory in (await page.read("/memories", as_of=as_of))["memories"]]

    assert await list_texts(1) == ["The heron nests in May."]
    assert await list_texts(2) == ["The heron nests in June."]
    assert await list_texts(3) == ["Deploy on Tuesdays.", "The heron nests in June."]
    assert await list_texts(last) == ["Deploy on Tuesdays."]
    assert second in await page.get("/time", as_of="3")
    assert "as it was" not in await page.get("/memories")
    assert 'data-key="f"' not in await page.get("/memories", as_of="2")


async def test_earlier_state_shows_a_memory_before_it_was_replaced(page: PageClient) -> None:
    older, _ = await store_move(page)
    (memory,) = (await page.read("/memories", as_of="1"))["memories"]
    assert (memory["id"], memory.get("superseded_by")) == (older, None)
    memories = (await page.read("/memories", as_of="2"))["memories"]
    assert [bool(memory.get("superseded_by")) for memory in memories] == [False, True]


async def test_day_stands_for_its_last_change(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    assert (await page.read("/memories", as_of="2001-01-01"))["total"] == 0
    assert (await page.read("/time", as_of="2999-01-01"))["past"]["total"] == 1
    await page.get("/time", 400, as_of="soonish")


async def test_purged_memory_is_in_no_earlier_state(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    planned = await page.read("/purge", id=memory_id)
    await page.post("/purge/run", id=memory_id, planned=planned["ids"], sure="on")
    for path in ("/memories", "/time"):
        html = await page.get(path, as_of="1")
        assert "heron" not in html


async def test_time_of_an_empty_memory_says_what_appears(page: PageClient) -> None:
    assert "Memories appear here" in await page.get("/time")
