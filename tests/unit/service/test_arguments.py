"""What a program of its own gives by mistake is refused in words that say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError

if TYPE_CHECKING:
    from agent_memory.service import MemoryService


async def test_a_text_alone_is_a_memory(service: MemoryService) -> None:
    assert (await service.store("Maria likes tea.")).memory.content == "Maria likes tea."


async def test_an_answer_tells_its_mode_and_can_be_gone_through(service: MemoryService) -> None:
    await service.store("Maria likes tea.")
    found = await service.search("tea")
    assert (found.mode, len(found)) == (found.results.mode, 1)
    assert [hit.memory.content for hit in found] == ["Maria likes tea."]
    assert await service.search("xylophone"), "an answer without a hit is one"


@pytest.mark.parametrize(
    ("method", "arguments", "words"),
    [
        ("search", {"query": "tea", "limit": "a"}, "limit must be a whole number"),
        ("search", {"query": None}, "query must be text"),
        ("search", {"query": "tea", "filters": "x"}, "not a mapping"),
        ("search", {"query": "tea", "filters": {"date_range": "x"}}, "date_range is not a mapping"),
        ("list_recent", {"limit": "a"}, "limit must be a whole number"),
        ("store", {"values": None}, "a text or a mapping"),
        ("update", {"memory_id": "mem-000000000000", "changes": "x"}, "a mapping"),
    ],
)
async def test_what_is_of_the_wrong_type_is_named(
    service: MemoryService, method: str, arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        await getattr(service, method)(**arguments)


async def test_a_storage_names_what_it_keeps(service: MemoryService) -> None:
    with pytest.raises(ValidationError, match="keeps a Memory"):
        await service.storage.store({"content": "x"})  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="query must be text"):
        await service.storage.search(None)  # type: ignore[arg-type]
