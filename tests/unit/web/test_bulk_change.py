"""Several memories get a project, category, tag or pin after a preview."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.web.conftest import PageClient


async def test_preview_shows_what_each_memory_would_become(page: PageClient) -> None:
    first = await page.store("The keel is larch.", project="boat", tags=["wood"])
    second = await page.store("Deploy on Tuesdays.")
    data = await page.read("/memories/change", id=[first, second], project="boat", tag="wood")
    assert [memory["changes"] for memory in data["memories"]] == [{}, {"project": "boat", "tags": ["wood"]}]
    html = await page.get("/memories/change", id=[first, second], project="boat", tag="wood")
    assert "is so already" in html


async def test_change_of_several_is_undone_as_a_whole(page: PageClient) -> None:
    ids = [await page.store(text) for text in ("The keel is larch.", "Deploy on Tuesdays.")]
    html = await page.post("/memories/change", id=ids, category="decision", pinned="on", tag="x", back="/memories")
    assert "Changed 2 memories." in html
    service = await page.service()
    changed = [await service.get(memory_id) for memory_id in ids]
    assert [(memory.category, memory.pinned, memory.tags) for memory in changed] == [("decision", True, ["x"])] * 2
    numbers = re.findall(r'name="change" value="(\d+)"', html.partition('class="notice"')[2].partition("</form>")[0])
    assert len(numbers) == 2
    await page.post("/undo", change=numbers, back="/memories")
    assert {(await service.get(memory_id)).category for memory_id in ids} == {"note"}


async def test_project_is_emptied_with_a_hyphen(page: PageClient) -> None:
    memory_id = await page.store("The keel is larch.", project="boat")
    await page.post("/memories/change", id=memory_id, project="-")
    assert (await (await page.service()).get(memory_id)).project == ""


async def test_change_without_a_memory_or_a_value_is_refused(page: PageClient) -> None:
    memory_id = await page.store("The keel is larch.")
    await page.post("/memories/change", 400, id=memory_id)
    await page.post("/memories/change", 400, project="boat")
    assert "No memory was chosen" in await page.get("/memories/change")
