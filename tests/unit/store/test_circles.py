"""Memories that replace each other all around, as no program of ours writes them: one of them is shown."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.journal import Change, Journal
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON, memory_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A, B, C = "mem-00000000000a", "mem-00000000000b", "mem-00000000000c"


@pytest.fixture
def write(root: Path) -> Callable[..., None]:
    """Return a function that writes a memory as another program might."""
    journal = Journal(root / "bob" / "memories.yaml", {"memory"})

    def put(memory_id: str, supersedes: str | None, minutes: int = 0, **fields: Any) -> None:
        memory = memory_of(f"cycle {memory_id}", id=memory_id, timestamp=NOON + timedelta(minutes=minutes), **fields)
        record = memory.to_record() | ({"supersedes": supersedes} if supersedes else {})
        with journal.locked() as writer:
            writer.append([Change("put", "memory", memory_id, record)])

    return put


async def shown(storage: FileStorage) -> list[str]:
    found = sorted(result.memory.id for result in await storage.search("cycle"))
    assert found == sorted(memory.id for memory in await storage.valid())
    return found


async def test_of_a_circle_the_newest_is_shown_and_health_names_all(
    storage: FileStorage, write: Callable[..., None]
) -> None:
    write(A, C, minutes=1)
    write(B, A, minutes=9)
    write(C, B, minutes=5)
    assert await shown(storage) == [B]
    health = await storage.health()
    assert health["status"] == "damaged"
    assert health["first_problems"] == [f"{A}, {B}, {C}: they replace each other all around; {B}, the newest, is shown"]


async def test_a_memory_that_replaces_itself_is_shown(storage: FileStorage, write: Callable[..., None]) -> None:
    write(A, A)
    assert await shown(storage) == [A]
    assert "replaces itself" in (await storage.health())["first_problems"][0]


async def test_what_replaces_the_newest_of_a_circle_from_outside_hides_it(
    storage: FileStorage, write: Callable[..., None]
) -> None:
    write(A, B, minutes=1)
    write(B, A, minutes=2)
    write(C, B, minutes=3)
    assert await shown(storage) == [C]


async def test_a_circle_that_is_opened_is_none_any_more(storage: FileStorage, write: Callable[..., None]) -> None:
    write(A, B, minutes=1)
    write(B, A, minutes=2)
    assert await shown(storage) == [B]
    await storage.update(A, {"supersedes": None})
    assert await shown(storage) == [B]
    assert (await storage.health())["status"] == "ok"
    write(A, B, minutes=3)
    assert await shown(storage) == [A]
    await storage.delete(A)
    assert (await storage.health())["status"] == "ok"


async def test_a_chain_is_no_circle(storage: FileStorage, write: Callable[..., None]) -> None:
    write(C, B, minutes=3)
    write(B, A, minutes=2)
    write(A, None, minutes=1)
    assert await shown(storage) == [C]
    assert (await storage.health())["status"] == "ok"


async def test_words_of_a_stranger_close_no_circle(storage: FileStorage, write: Callable[..., None]) -> None:
    write(A, B, minutes=1, trust="high")
    write(B, A, minutes=2, trust="low")
    assert await shown(storage) == [A]
    assert (await storage.health())["status"] == "ok"


async def test_lines_that_were_moved_are_told(storage: FileStorage, root: Path) -> None:
    for content in ("one", "two", "three"):
        await storage.store(memory_of(content))
    journal = root / "bob" / "memories.yaml"
    header, *lines = journal.read_bytes().splitlines(keepends=True)
    again = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    assert (await again.health())["status"] == "ok"
    await again.close()
    journal.write_bytes(b"".join([header, *reversed(lines)]))
    again = FileStorage("bob", root, settings=ServiceSettings(embedder="none"))
    assert (await again.health())["first_problems"] == [
        "line 3: its number is lower than that of the line before; lines were moved"
    ]
    assert await again.count() == 3
    await again.close()
