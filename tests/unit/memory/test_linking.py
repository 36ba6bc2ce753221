"""Links that are written lead somewhere, and are shown at both ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import UnknownIdError
from agent_memory.models import LinkedRecord, content_mark
from tests.support import raises

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService


async def test_a_link_is_shown_with_a_hit_at_both_ends(service: MemoryService) -> None:
    tea = (await service.store("Bob drinks peppermint tea.")).memory
    links = [{"rel": "because", "id": tea.id}]
    mug = (await service.store({"content": "Bob needs a large mug.", "links": links})).memory

    (hit,) = await service.search("peppermint tea")
    assert hit.surroundings.links == (LinkedRecord("because", mug.id, mug.content, is_incoming=True),)
    (named,) = await service.search(mug.id)
    assert named.surroundings.links == (LinkedRecord("because", tea.id, tea.content),)


async def test_a_link_to_nothing_is_refused_and_nothing_is_stored(service: MemoryService) -> None:
    tea = (await service.store("Bob drinks tea.")).memory
    links = [{"rel": "because", "id": "mem-00000000000f"}]
    with raises(UnknownIdError, "unknown_id"):
        await service.store({"content": "Bob needs a mug.", "links": links})
    with raises(UnknownIdError, "unknown_id"):
        await service.update(tea.id, {"links": links})
    assert await service.storage.count() == 1
    assert (await service.get(tea.id)).links == []


async def test_what_rests_on_a_changed_memory_is_in_doubt_until_it_is_written_anew(service: MemoryService) -> None:
    tea = (await service.store("Bob drinks tea.")).memory
    links = [{"rel": "derived_from", "id": tea.id}]
    mug = (await service.store({"content": "Bob needs a mug.", "links": links})).memory
    assert mug.links[0].said == content_mark("Bob drinks tea.")

    await service.update(tea.id, {"content": "Bob drinks from the tap.", "pinned": True})
    (hit,) = await service.search(mug.id)
    assert hit.surroundings.doubt == f"it is derived from {tea.id}, which was changed since"

    await service.update(mug.id, {"content": "Bob needs no mug."})
    (hit,) = await service.search(mug.id)
    assert hit.surroundings.doubt is None
    assert (await service.get(mug.id)).links[0].said == content_mark("Bob drinks from the tap.")


async def test_new_words_leave_links_to_what_is_gone(service: MemoryService) -> None:
    tea = (await service.store("Bob drinks tea.")).memory
    mug = (await service.store({"content": "A mug.", "links": [{"rel": "derived_from", "id": tea.id}]})).memory
    await service.forget(tea.id)

    await service.update(mug.id, {"content": "A large mug."})

    assert [link.id for link in (await service.get(mug.id)).links] == [tea.id]


@pytest.mark.parametrize("links", [None, []])
async def test_links_can_be_taken_away(service: MemoryService, links: list[str] | None) -> None:
    tea = (await service.store("Bob drinks tea.")).memory
    mug = (await service.store({"content": "A mug.", "links": [{"rel": "because", "id": tea.id}]})).memory
    await service.update(mug.id, {"links": links})
    assert (await service.get(mug.id)).links == []
