"""The shortlist beside the journal: it says exactly what reading the journal would, or nothing."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.files.layout import AgentFolder
from agent_memory.index.segment import Chain
from agent_memory.models import MEMORY, to_text
from agent_memory.scratchpad import ScratchpadManager
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store.segment_builder import seal_up
from agent_memory.store.store import Store
from tests.support import NOON, FrozenClock, memory_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from agent_memory.models import Memory

OFF = ServiceSettings(embedder="none")


@pytest.fixture
async def opened(root: Path, clock: FrozenClock) -> AsyncIterator[Callable[[], FileStorage]]:
    """Return what opens the storage; all are closed at the end."""
    every: list[FileStorage] = []

    def open_storage() -> FileStorage:
        every.append(FileStorage("bob", root, settings=OFF, clock=clock))
        return every[-1]

    yield open_storage
    for storage in every:
        await storage.close()


@pytest.fixture
def file(root: Path) -> Path:
    return root / "bob" / "shortlist.json"


async def shown(storage: FileStorage, count: int = 3) -> list[Memory]:
    return (await ScratchpadManager("bob", count, storage=storage).load()).entries


async def begun(opened: Callable[[], FileStorage], *memories: Memory) -> list[Memory]:
    """Store memories, look at the scratchpad and close, which leaves a shortlist; return what was shown."""
    storage = opened()
    await storage.store_many(memories)
    found = await shown(storage)
    await storage.close()
    return found


def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make reading the journal fail."""
    monkeypatch.setattr(Store, "refresh", lambda _: pytest.fail("the journal was read"))


async def test_a_start_shows_the_same_without_reading_the_journal(
    opened: Callable[[], FileStorage], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await begun(opened, *(memory_of(f"fact {number}", tags=["a"]) for number in range(9)))
    assert file.stat().st_mode & 0o777 == 0o600
    storage = opened()
    with monkeypatch.context() as patch:
        unread(patch)
        assert await shown(storage) == found
        assert await storage.still_true(found), "and knows that it may be shown on"
    assert await storage.count() == 9


@pytest.mark.parametrize(
    "change",
    [
        lambda storage, ids: storage.delete(ids[-1]),
        lambda storage, ids: storage.update(ids[-1], {"content": "another"}),
        lambda storage, ids: storage.update(ids[0], {"pinned": True}),
        lambda storage, _: storage.store(memory_of("newer", timestamp=NOON + timedelta(hours=1))),
        lambda storage, ids: storage.store(memory_of("instead", supersedes=ids[-1])),
        lambda storage, ids: storage.touch([ids[0]]),
        lambda storage, _: storage.compact(),
    ],
    ids=["forgotten", "reworded", "pinned", "stored", "replaced", "accessed", "compacted"],
)
async def test_whatever_was_written_since_counts(opened: Callable[[], FileStorage], file: Path, change: Any) -> None:
    memories = [memory_of(f"fact {number}", access_count=2) for number in range(5)]
    await begun(opened, *memories)
    elsewhere = opened()  # which is not asked for a scratchpad, and leaves no shortlist
    await change(elsewhere, [memory.id for memory in memories])
    await elsewhere.close()
    storage = opened()
    found = await shown(storage)
    await storage.close()
    file.unlink(missing_ok=True)
    again = opened()
    assert found == await shown(again)


async def test_a_text_that_is_forgotten_or_reworded_does_not_stay_in_it(
    opened: Callable[[], FileStorage], file: Path
) -> None:
    for change in ("delete", "update"):
        memory = memory_of(f"tea to {change}")
        await begun(opened, memory)
        assert b"tea to" in file.read_bytes()
        storage = opened()
        await (storage.delete(memory.id) if change == "delete" else storage.update(memory.id, {"content": "water"}))
        await storage.close()
        assert not file.exists()


@pytest.mark.parametrize("hours", [2, -2])
async def test_time_that_passed_or_a_clock_set_back_counts_where_something_expires(
    opened: Callable[[], FileStorage], clock: FrozenClock, hours: int
) -> None:
    old = memory_of("old office")
    new = memory_of("new office", supersedes=old.id, expires_at=NOON + timedelta(hours=1))
    gone = memory_of("gone", expires_at=NOON - timedelta(hours=1))
    assert [memory.content for memory in await begun(opened, old, new, gone)] == ["new office"]
    clock.advance(hours=hours)
    storage = opened()
    assert {memory.content for memory in await shown(storage)} == (
        {"old office"} if hours > 0 else {"new office", "gone"}
    )


async def test_another_size_is_another_question(opened: Callable[[], FileStorage]) -> None:
    await begun(opened, *(memory_of(f"fact {number}") for number in range(5)))
    storage = opened()
    assert len(await shown(storage, 5)) == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda _: b"[]",
        lambda _: b"\xff{",
        lambda _: b"[" * 100_000,
        lambda content: content[:-10],
        lambda content: json.dumps({**json.loads(content), "memories": [["x", {}]]}).encode(),
        lambda content: json.dumps({**json.loads(content), "until": "soon"}).encode(),
        lambda content: json.dumps({**json.loads(content), "journal": None}).encode(),
    ],
)
async def test_one_that_is_damaged_costs_nothing(opened: Callable[[], FileStorage], file: Path, damage: Any) -> None:
    found = await begun(opened, memory_of("tea"), memory_of("milk"))
    file.write_bytes(damage(file.read_bytes()))
    storage = opened()
    assert await shown(storage) == found


async def test_any_history_shows_the_same_with_it_as_without(
    opened: Callable[[], FileStorage], file: Path, clock: FrozenClock
) -> None:
    choose = random.Random(8)
    used = 0
    for _ in range(40):
        storage = opened()
        used += file.exists()
        first = await shown(storage)
        known = [memory async for memory in storage.iter_all()]
        truth = opened()
        file.unlink(missing_ok=True)
        assert first == await shown(truth)
        await truth.close()
        for _ in range(choose.randrange(3)):
            clock.advance(minutes=choose.randrange(90))
            one = choose.choice(known) if known else None
            match choose.randrange(6):
                case 0 if one is not None:
                    await storage.delete(one.id)
                    known.remove(one)
                case 1 if one is not None:
                    await storage.update(one.id, {"pinned": not one.pinned, "promoted_at": clock()})
                case 2 if one is not None:
                    await storage.touch([one.id])
                case _:
                    ends = clock() + timedelta(hours=1) if choose.random() < 0.3 else None
                    await storage.store(memory_of(f"at {clock()}", timestamp=clock(), expires_at=ends))
        await shown(storage)
        await storage.close()
    assert used > 20


async def test_what_is_sealed_and_expires_ends_its_time_and_nothing_sealed_is_loaded_to_know(
    root: Path,
    clock: FrozenClock,
    file: Path,
    opened: Callable[[], FileStorage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end = NOON + timedelta(days=2)
    await begun(opened, memory_of("expires", expires_at=end), *(memory_of(f"fact {number}") for number in range(99)))
    assert seal_up(AgentFolder(root / "bob"), MEMORY, None, least=1)
    loaded: list[int] = []
    record = Chain.record
    monkeypatch.setattr(Chain, "record", lambda chain, number: loaded.append(number) or record(chain, number))
    await begun(opened, memory_of("a later one"))
    known = json.loads(file.read_text())
    assert known["until"] == to_text(end)
    assert known["since"] == to_text(clock())
    assert len(set(loaded)) < 50
