"""What a program of its own gives by mistake is refused in words that say what to do."""

from __future__ import annotations

import json
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import AgentMemoryError, UnknownIdError, ValidationError

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService


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


@pytest.mark.parametrize(
    "method",
    [
        *("get", "forget", "promote", "evict", "past.restore", "past.history", "storage.get", "storage.delete"),
        *("storage.older_versions", "storage.forgotten_with", "storage.update_access_stats"),
    ],
)
@pytest.mark.parametrize("wrong", [None, 5, ["mem-000000000000"], {}, b"mem-000000000000"])
async def test_an_id_is_text(service: MemoryService, method: str, wrong: object) -> None:
    with pytest.raises(ValidationError, match=f"An id is text, got {type(wrong).__name__}"):
        await attrgetter(method)(service)(wrong)


@pytest.mark.parametrize("wrong", [None, 5, "mem-000000000000", [5], [["a"]]])
async def test_ids_are_a_list_of_texts(service: MemoryService, wrong: object) -> None:
    with pytest.raises(ValidationError, match="The ids are a list of texts"):
        await service.storage.touch(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="The texts are a list of texts"):
        await service.storage.forgotten_among(wrong)  # type: ignore[arg-type]


async def test_an_id_that_can_be_none_is_unknown(service: MemoryService) -> None:
    for ask in (service.get, service.history.restore):
        with pytest.raises(UnknownIdError):
            await ask("mem-\ud800")
    assert await service.history.history("mem-\ud800") == []
    assert not await service.storage.was_forgotten("\ud800")
    with pytest.raises(ValidationError, match="grace is a timedelta, got int"):
        await service.storage.compact(5)  # type: ignore[arg-type]


async def test_a_storage_names_what_it_keeps(service: MemoryService) -> None:
    with pytest.raises(ValidationError, match="keeps a Memory"):
        await service.storage.store({"content": "x"})  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="query must be text"):
        await service.storage.search(None)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="are a mapping, got NoneType"):
        await service.storage.update("mem-000000000000", None)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="are a list, got NoneType"):
        await service.storage.store_many(None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("get", ["{}"]),
        ("promote", ["{}"]),
        ("forget", ["{}"]),
        ("update", ["{}", {"pinned": True}]),
        ("past.restore", ["{}"]),
        ("storage.update_access_stats", ["{}"]),
        ("admin.known_category", ["{}"]),
        ("search", ["tea", 5, {"date_range": {"start": "{}"}}]),
        ("search", ["tea", 5, {"{}": 1}]),
    ],
)
async def test_a_refusal_repeats_no_secret_and_little_else(
    service: MemoryService, secret: str, method: str, arguments: list[Any]
) -> None:
    given = json.loads(json.dumps(arguments).replace("{}", f"no {secret} {'so much ' * 99}"))
    with pytest.raises(AgentMemoryError) as refused:
        await attrgetter(method)(service)(*given)
    told = str(refused.value.as_dict())
    assert "[redacted:github-token]" in told
    assert secret[:12] not in told
    assert "so much so much" not in told
