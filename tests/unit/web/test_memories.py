"""Memories are searched, filtered, edited, forgotten after a preview and restored; a stale edit shows both versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import UnknownIdError

if TYPE_CHECKING:
    from tests.unit.web.conftest import PageClient


async def get_edit(page: PageClient, memory_id: str) -> dict[str, Any]:
    """Return the fields of the edit form of a memory."""
    data = await page.read(f"/memories/{memory_id}")
    memory = data["memory"]
    fields = {name: memory[name] for name in ("content", "category", "project")}
    pinned = {"pinned": "on"} if memory["pinned"] else {}
    expires = {"expires_at": data["expires_on"]}
    return {"id": memory_id, "seq": data["seq"], **fields, "tags": ", ".join(memory["tags"]), **expires, **pinned}


async def test_list_without_memories_is_an_empty_state(page: PageClient) -> None:
    assert "Nothing is remembered yet" in await page.get("/memories")
    assert (await page.read("/memories"))["memories"] == []


async def test_list_shows_one_memory_in_the_singular(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.", tags=["birds"])
    html = await page.get("/memories")
    assert "1\u20131 of 1" in html
    assert f'href="/memories/{memory_id}"' in html
    assert "#birds" in html


async def test_list_pages_through_many_memories(page: PageClient) -> None:
    ids = [await page.store(f"Fact number {number} of many.") for number in range(27)]
    first, second = await page.read("/memories"), await page.read("/memories", offset="25")
    assert [memory["id"] for memory in first["memories"] + second["memories"]] == ids[::-1]
    assert first["total"] == 27
    assert 'rel="next"' in await page.get("/memories")
    assert 'rel="prev"' in await page.get("/memories", offset="25")


@pytest.mark.parametrize("offset", ["-1", "x", "\u0663", "9" * 40])
async def test_list_with_a_wrong_offset_begins_at_the_newest(page: PageClient, offset: str) -> None:
    await page.store("The heron nests in May.")
    assert (await page.read("/memories", offset=offset))["offset"] == 0


async def test_search_finds_by_words_and_counts(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    await page.store("Deploy on Tuesdays.")
    data = await page.read("/memories", q="heron nests")
    assert [memory["id"] for memory in data["memories"]] == [memory_id]
    assert "1 best match" in await page.get("/memories", q="heron nests")


async def test_search_without_a_result_offers_all(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    html = await page.get("/memories", q="zzz quux")
    assert "Nothing found" in html
    assert "Show all 1" in html


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"category": "task"}, ["b"]),
        ({"project": "boat"}, ["a"]),
        ({"tag": "birds"}, ["a"]),
        ({"trust": "low"}, ["c"]),
        ({"since": "2100-01-01"}, []),
        ({"until": "yesterday"}, []),
        ({"state": "expired"}, []),
    ],
)
async def test_filters_limit_the_list(page: PageClient, filters: dict[str, str], expected: list[str]) -> None:
    ids = {
        "a": await page.store("The heron nests in May.", tags=["birds"], project="boat"),
        "b": await page.store("Order bronze nails.", category="task"),
        "c": await page.store("A page said so.", trust="low"),
    }
    data = await page.read("/memories", **filters)
    assert [memory["id"] for memory in data["memories"]] == [ids[name] for name in expected]


@pytest.mark.parametrize("filters", [{"since": "someday"}, {"category": "\x00"}, {"state": "gone"}])
async def test_wrong_filter_is_an_error_with_a_hint(page: PageClient, filters: dict[str, str]) -> None:
    error = (await page.read("/memories", 400, **filters))["error"]
    assert error["recovery"]
    assert "That did not work" in await page.get("/memories", 400, **filters)


async def test_facets_are_chips_that_can_be_removed(page: PageClient) -> None:
    await page.store("The heron nests in May.", project="boat & bird")
    assert "?project=boat+%26+bird" in await page.get("/memories")
    assert "Project: boat &amp; bird" in await page.get("/memories", project="boat & bird")


async def test_unknown_memory_is_not_found(page: PageClient) -> None:
    assert (await page.read("/memories/mem-000000000000", 404))["error"]["code"] == "unknown_id"
    assert "That did not work" in await page.get("/memories/mem-000000000000", 404)


@pytest.mark.parametrize("memory_id", ["nonsense", "mem-", "../secret", "%00", "mem-\u202e"])
async def test_address_of_no_memory_is_an_error(page: PageClient, memory_id: str) -> None:
    assert (await page.http.get(f"/memories/{memory_id}")).status_code in {400, 404}


async def test_add_stores_what_a_person_typed(page: PageClient) -> None:
    assert 'action="/memories/store"' in await page.get("/memories")
    marks = {"category": "fact", "tags": "birds", "project": "atlas", "pinned": "on"}
    html = await page.post("/memories/store", content="The heron nests in May.", **marks)
    assert "Stored" in html
    assert "Undo" in html
    (memory,) = (await page.read("/memories"))["memories"]
    assert (memory["content"], memory["category"], memory["trust"]) == ("The heron nests in May.", "fact", "high")
    assert (memory["tags"], memory["project"], memory["pinned"]) == (["birds"], "atlas", True)
    assert "says that already" in await page.post("/memories/store", content="The heron nests in May.", category="note")


@pytest.mark.parametrize(("field", "text"), [("content", "  "), ("expires_at", "someday")])
async def test_refused_addition_stores_nothing(page: PageClient, field: str, text: str) -> None:
    await page.post("/memories/store", 400, **{"content": "The heron nests in May.", "category": "note", field: text})
    assert (await page.read("/memories"))["memories"] == []


async def test_read_only_page_adds_nothing(reader: PageClient) -> None:
    assert "/memories/store" not in await reader.get("/memories")
    await reader.post("/memories/store", 403, content="The heron nests in May.", category="note")


async def test_edit_changes_the_given_fields_with_high_trust(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.", source={"kind": "user"}, tags=["birds"])
    fields = await get_edit(page, memory_id)
    html = await page.post(
        "/memories/edit",
        **{**fields, "content": "The heron nests in April.", "tags": "birds, Spring", "pinned": "on"},
    )
    assert "Changed content" in html
    memory = await (await page.service()).get(memory_id)
    assert (memory.content, memory.tags, memory.pinned) == ("The heron nests in April.", ["birds", "spring"], True)
    assert memory.trust == "high"
    assert '<mark class="old">May</mark>' in html
    assert '<mark class="new">April</mark>' in html


async def test_edit_without_a_change_stores_nothing(page: PageClient) -> None:
    memory_id = await page.store("One line.\nAnother line.")
    before = (await page.read(f"/memories/{memory_id}"))["seq"]
    fields = await get_edit(page, memory_id)
    html = await page.post("/memories/edit", **{**fields, "content": fields["content"].replace("\n", "\r\n")})
    assert "Nothing was changed." in html
    assert (await page.read(f"/memories/{memory_id}"))["seq"] == before


@pytest.mark.parametrize(
    ("field", "text"), [("content", "  "), ("expires_at", "someday"), ("expires_at", "2001-01-01")]
)
async def test_refused_edit_changes_nothing(page: PageClient, field: str, text: str) -> None:
    memory_id = await page.store("The heron nests in May.")
    fields = await get_edit(page, memory_id)
    await page.post("/memories/edit", 400, **{**fields, field: text})
    assert (await (await page.service()).get(memory_id)).content == "The heron nests in May."


async def test_edit_sets_and_clears_the_last_day(page: PageClient) -> None:
    memory_id = await page.store("The shed is rented.")
    await page.post("/memories/edit", **{**await get_edit(page, memory_id), "expires_at": "2099-03-31"})
    assert (await get_edit(page, memory_id))["expires_at"] == "2099-03-31"
    await page.post("/memories/edit", **{**await get_edit(page, memory_id), "expires_at": ""})
    assert (await (await page.service()).get(memory_id)).expires_at is None


async def test_stale_edit_shows_both_versions_and_stores_none(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    stale = await get_edit(page, memory_id)
    service = await page.service()
    await service.update(memory_id, {"content": "The heron nests in June."})
    html = await page.post("/memories/edit", 409, **{**stale, "content": "The heron nests in April."})
    assert "June" in html
    assert "April" in html
    assert (await service.get(memory_id)).content == "The heron nests in June."
    seq = html.partition('name="seq" value="')[2].partition('"')[0]
    await page.post("/memories/edit", **{**stale, "seq": seq, "content": "The heron nests in April."})
    assert (await service.get(memory_id)).content == "The heron nests in April."


async def test_edit_of_a_forgotten_memory_is_refused(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    fields = await get_edit(page, memory_id)
    await (await page.service()).forget(memory_id)
    await page.post("/memories/edit", 404, **fields)
    assert "Forgotten" in await page.get(f"/memories/{memory_id}")


async def test_secret_in_an_edit_is_removed_and_reported(page: PageClient) -> None:
    memory_id = await page.store("The token is elsewhere.")
    secret = "ghp_" + "a1B2" * 9
    fields = await get_edit(page, memory_id)
    html = await page.post(
        "/memories/edit", **{**fields, "content": f"The harbour account in Oban has the key {secret}."}
    )
    assert "A secret was removed" in html
    assert secret not in html


async def test_preview_shows_similar_memories_and_changes_nothing(page: PageClient) -> None:
    memory_id = await page.store("My blood type is A positive.")
    other_id = await page.store("My blood pressure is 120 to 80.")
    data = await page.read("/memories/forget", id=memory_id)
    assert [memory["id"] for memory in data["memories"]] == [memory_id]
    assert other_id in [memory["id"] for memory in data["similar"]]
    assert await (await page.service()).get(memory_id)


async def test_forget_takes_the_chosen_memories_as_one_change(page: PageClient) -> None:
    ids = [await page.store(f"Fact {name} is known.") for name in ("alpha", "beta", "gamma")]
    html = await page.post("/memories/forget", id=ids[:2], back="/memories", reason="old")
    assert "Forgot 2 memories." in html
    service = await page.service()
    assert [memory.id for memory in await service.searcher.list_all()] == ids[2:]
    change = html.partition('name="change" value="')[2].partition('"')[0]
    await page.post("/undo", change=change, back="/memories")
    assert {memory.id for memory in await service.searcher.list_all()} == {*ids}


async def test_forget_without_a_choice_is_refused(page: PageClient) -> None:
    assert "No memory was chosen" in await page.post("/memories/forget", 400)
    assert "No memory was chosen" in await page.get("/memories/forget")


async def test_forgotten_memory_is_restored_from_its_address(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    service = await page.service()
    await service.forget(memory_id)
    assert "Forgotten" in await page.get(f"/memories/{memory_id}")
    await page.post("/restore", id=memory_id)
    assert await service.get(memory_id)


async def test_version_of_the_history_is_restored(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    service = await page.service()
    first = (await page.read(f"/memories/{memory_id}"))["seq"]
    for month in ("June", "July"):
        await service.update(memory_id, {"content": f"The heron nests in {month}."})
    await page.post("/restore", id=memory_id, version=first)
    assert (await service.get(memory_id)).content == "The heron nests in May."


async def test_replaced_memory_names_its_successor_and_counts_again(page: PageClient) -> None:
    old = await page.store("The ledger is in MySQL.")
    new = await page.store("The ledger is in PostgreSQL.", supersedes=old)
    assert f'href="/memories/{new}"' in await page.get(f"/memories/{old}")
    await page.post("/restore", id=old)
    assert (await page.read(f"/memories/{old}"))["memory"]["superseded_by"] is None


async def test_undo_of_an_unknown_change_is_not_found(page: PageClient) -> None:
    await page.post("/undo", 404, change="99999")
    await page.post("/undo", 400, change="x")


async def test_undo_leaves_a_memory_that_was_changed_since(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    service = await page.service()
    await service.update(memory_id, {"content": "The heron nests in June."})
    change = (await page.read("/today"))["changes"]["changed"][0]["change"]
    await service.update(memory_id, {"content": "The heron nests in July."})
    assert "is left as it is" in await page.post("/undo", change=change, back="/")
    assert (await service.get(memory_id)).content == "The heron nests in July."


@pytest.mark.parametrize("back", ["//evil.example", "/\\evil.example", "http://evil.example", "", "/\r\nX: y"])
async def test_redirect_stays_on_the_page(page: PageClient, back: str) -> None:
    memory_id = await page.store("The heron nests in May.")
    data = {"csrf": page.session.csrf, "id": memory_id, "back": back}
    headers = {"Origin": "http://127.0.0.1:8123"}
    response = await page.http.post("/memories/forget", data=data, headers=headers)
    assert response.headers["location"].startswith("/?")


async def test_other_process_changes_the_stamp_and_the_view(page: PageClient, reader: PageClient) -> None:
    before = (await reader.http.get("/changes.json")).json()
    memory_id = await page.store("The heron nests in May.")
    assert (await reader.http.get("/changes.json")).json() != before
    assert memory_id in await reader.get("/memories")


async def test_looking_at_a_memory_does_not_change_the_stamp(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    service = await page.service()
    await service.settle()
    before = page.session.read_stamp()
    for path in ("/", "/memories", "/memories?q=heron", f"/memories/{memory_id}", f"/memories/forget?id={memory_id}"):
        await page.get(path)
    await service.settle()
    assert page.session.read_stamp() == before


async def test_forgotten_memory_has_no_view_to_edit(page: PageClient) -> None:
    memory_id = await page.store("The heron nests in May.")
    service = await page.service()
    await service.forget(memory_id)
    with pytest.raises(UnknownIdError):
        await service.get(memory_id)
    assert "/memories/edit" not in await page.get(f"/memories/{memory_id}")
