"""Records of a newer version, with values that this version does not know."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ReadOnlyError
from agent_memory.journal import Change, Journal
from agent_memory.journal.format import encode_line
from agent_memory.memory import open_service
from agent_memory.settings import ServiceSettings
from tests.support import resealed

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService

NEW = "mem-00000000000a"


@pytest.fixture
async def service(tmp_path: Path) -> MemoryService:
    settings = ServiceSettings(storage_root=str(tmp_path), embedder="none")
    service = open_service("bob", settings)
    await service.store("The team prefers green tea.")
    await service.close()
    return service


async def read_newer(service: MemoryService, tmp_path: Path, **values: Any) -> MemoryService:
    """Return the service of a newer journal that also has a record with these values."""
    path = tmp_path / "bob" / "memories.yaml"
    data = {"content": "The ledger is in MySQL.", "timestamp": "2026-01-30T12:00:00Z", **values}
    with Journal(path, {"memory"}).locked() as writer:
        writer.append([Change("put", "memory", NEW, data)])
    first, _, rest = path.read_bytes().partition(b"\n")
    header = {**json.loads(first[4:]), "format": 9, "min_reader": 9}
    path.write_bytes(resealed(encode_line(header)) + rest)
    return open_service("bob", ServiceSettings(storage_root=str(tmp_path), embedder="none"))


@pytest.mark.parametrize(
    ("values", "trust"),
    [
        ({"pinned": "until-monday"}, "medium"),
        ({"source": {"kind": "telepathy"}, "trust": "high"}, "low"),
        ({"trust": "absolute", "pinned": 7}, "low"),
        ({"expires_at": "after the audit", "trust": "high"}, "high"),
    ],
)
async def test_unknown_value_in_newer_journal_is_left_out(
    service: MemoryService, tmp_path: Path, values: dict[str, Any], trust: str
) -> None:
    newer = await read_newer(service, tmp_path, **values)
    hits = (await newer.search("ledger")).results
    assert [(hit.memory.id, hit.memory.trust) for hit in hits] == [(NEW, trust)]
    with pytest.raises(ReadOnlyError, match="newer version"):
        await newer.store("The parser is in Rust.")
    await newer.close()


@pytest.mark.parametrize("values", [{"group": ["a"]}, {"timestamp": "yesterday"}, {"content": ["a"]}])
async def test_newer_record_is_hidden_without_a_needed_value(
    service: MemoryService, tmp_path: Path, values: dict[str, Any]
) -> None:
    newer = await read_newer(service, tmp_path, **values)
    assert await newer.storage.get(NEW) is None
    assert (await newer.search("tea")).results
    await newer.close()
