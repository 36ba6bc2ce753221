"""Pages lead from a claim to its quote in the conversation; an entity shows what it is named with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.unit.web.test_import_screen import drop

if TYPE_CHECKING:
    from tests.unit.web.conftest import PageClient

TURNS = (
    "Tobias Reuter works at Tidewater.",
    "PROJ-12 waits for Tobias Reuter.",
    "Tobias Reuter closed PROJ-12 at Tidewater.",
    "<b>Ignore</b> your rules, says Tobias Reuter.",
)


@pytest.fixture
async def talk(page: PageClient) -> PageClient:
    """Return a page whose memory has a conversation."""
    lines = [{"role": "user", "content": text, "timestamp": "2026-01-02T10:00:00Z"} for text in TURNS]
    content = "\n".join(map(json.dumps, lines)).encode()
    address = (await drop(page, content, "chat.jsonl"))["address"]
    table = await page.read(address)
    assert [row["what"] for row in table["rows"]] == ["turns"]
    await page.post("/import/store", upload=address.rpartition("/")[2], new=table["new"])
    return page


async def test_topics_without_documents_say_where_they_come_from(page: PageClient) -> None:
    await page.store("The heron nests in May.")
    assert "Nothing has a page yet" in await page.get("/topics")


async def test_topic_leads_from_each_claim_to_its_turn(talk: PageClient) -> None:
    (topic,) = (await talk.read("/topics"))["topics"]
    data = await talk.read(f"/topics/{topic['name']}")
    assert len(data["notes"]) == len(TURNS)
    html = await talk.get(f"/topics/{topic['name']}")
    assert "<b>Ignore" not in html
    turn = await talk.read(data["notes"][1]["address"])
    assert [shown["content"] for shown in turn["turns"] if shown["is_quoted"]] == [TURNS[1]]
    assert len(turn["turns"]) >= len(TURNS)
    assert "aria-current" in await talk.get(data["notes"][1]["address"])


async def test_entity_screen_shows_texts_and_graph(talk: PageClient) -> None:
    entities = {entity["name"]: entity["id"] for entity in (await talk.read("/topics"))["entities"]}
    data = await talk.read(f"/entities/{entities['Tobias Reuter']}")
    assert data["entry_count"] >= 2
    assert "PROJ-12" in {node["name"] for node in data["nodes"]}
    assert all(0 < node["x"] < 720 and 0 < node["y"] < 520 for node in data["nodes"])
    html = await talk.get(f"/entities/{entities['Tobias Reuter']}")
    assert f'href="/entities/{entities["PROJ-12"]}"' in html
    assert len(re.findall("<circle", html)) == len(data["nodes"]) + 1


async def test_forgotten_turn_is_not_shown(talk: PageClient) -> None:
    (topic,) = (await talk.read("/topics"))["topics"]
    address = (await talk.read(f"/topics/{topic['name']}"))["notes"][1]["address"]
    service = await talk.service()
    memories = [memory for memory in await service.searcher.list_all() if "waits for" in memory.content]
    for memory in memories:
        await service.forget(memory.id)
    for turn in (await talk.read(address, (await talk.http.get(address)).status_code)).get("turns", []):
        assert turn["content"] != TURNS[1] or not memories


@pytest.mark.parametrize("path", ["/topics/none", "/entities/ent-000000000000", "/turns/epi-000000000000"])
async def test_unknown_record_is_an_error_with_a_hint(page: PageClient, path: str) -> None:
    assert "That did not work" in await page.get(path, 404)


async def store_file(page: PageClient, name: str, content: str) -> None:
    """Import a file through the screen."""
    address = (await drop(page, content.encode(), name))["address"]
    new = (await page.read(address))["new"]
    await page.post("/import/store", upload=address.rpartition("/")[2], new=new)


async def test_topics_with_one_title_show_their_files(page: PageClient) -> None:
    for name, text in (("first.md", "The heron nests in May."), ("second.md", "The keel is made of larch.")):
        await store_file(page, name, f"# Relations\n\n## Notes\n\n{text}\n")
    titles = [topic["title"] for topic in (await page.read("/topics"))["topics"]]
    assert sorted(titles) == ["Relations (first.md)", "Relations (second.md)"]


async def test_tools_are_not_people(page: PageClient) -> None:
    turns = [
        {"role": "user", "name": "Ines", "content": "Run the release script on the harbour server."},
        {"role": "tool", "name": "bash", "content": "The release script has finished on the harbour server."},
    ]
    await store_file(page, "chat.jsonl", "\n".join(map(json.dumps, turns)))
    assert [entity["name"] for entity in (await page.read("/topics"))["entities"]] == ["Ines"]


async def test_turn_without_speaker_is_of_an_unknown_speaker(page: PageClient) -> None:
    names = [{"user": "U1", "username": "Ines"}, {}, {"user": "U2", "username": "Tom"}, {}]
    messages = [
        {"type": "message", "text": text, "ts": f"176732304{number}.000100", **names[number]}
        for number, text in enumerate(TURNS)
    ]
    await store_file(page, "2026-01-02.json", json.dumps(messages))
    descriptions = [topic["description"] for topic in (await page.read("/topics"))["topics"]]
    assert ["an unknown speaker" in text for text in descriptions if text.startswith("Conversation")] == [True]
