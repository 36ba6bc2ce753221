"""Counts that are kept while records change are those of a full count, and cost no other one."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import UnknownIdError
from agent_memory.models import EVERYTHING, Listing, SearchFilters
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from agent_memory.store.lookups import RecordCounter
from tests.support import memory_of, scale_examples

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.models import Memory, RecordCounts
    from tests.support import FrozenClock


def opened(root: Path, clock: FrozenClock) -> FileStorage:
    return FileStorage("bob", root, settings=ServiceSettings(embedder="none"), clock=clock)


def made(chance: random.Random, number: int, clock: FrozenClock) -> Memory:
    kind = chance.choice(["assistant", "extraction"])
    return memory_of(
        f"Number {number} of many.",
        source={"kind": kind},
        topic=chance.choice(["", "boats", "tents"]),
        group=chance.choice(["", "acme:s1", "beta:s1"]),
        tags=chance.sample(["a", "b", "c"], 2),
        trust=chance.choice(["low", "medium"]),
        pinned=chance.random() < 0.2,
        expires_at=clock() + timedelta(days=chance.randint(1, 9)) if chance.random() < 0.3 else None,
    )


async def changed(
    storage: FileStorage, chance: random.Random, known: list[str], number: int, clock: FrozenClock
) -> None:
    """Make one change at random; what was forgotten with a newer version is not there to be changed."""
    if not known or chance.random() < 0.4:
        new = made(chance, number, clock)
        older = chance.choice(known) if known and chance.random() < 0.3 else None
        with suppress(UnknownIdError):
            await storage.store(new.model_copy(update={"supersedes": older}))
            known.append(new.id)
        return
    one = chance.choice(known)
    changes: dict[str, Any] = chance.choice([{"topic": "tents"}, {"topic": ""}, {"tags": ["d"]}, {"pinned": True}])
    way = chance.choice([storage.delete, lambda _: storage.touch([one]), lambda _: storage.update(one, changes)])
    with suppress(UnknownIdError):
        await way(one)


def comparable(tally: RecordCounts) -> RecordCounts:
    return replace(tally, last_item=None)


@pytest.mark.parametrize("seed", range(scale_examples(4)))
async def test_what_is_kept_is_what_a_full_count_finds(root: Path, clock: FrozenClock, seed: int) -> None:
    chance, known, storage = random.Random(seed), list[str](), opened(root, clock)
    await storage.tally()
    for number in range(120):
        await changed(storage, chance, known, number, clock)
        if number % 20 == 0:
            clock.advance(hours=20)
        kept = await storage.tally()
        if number % 12 == 11:
            fresh = opened(root, clock)
            assert comparable(await fresh.tally()) == comparable(kept)
            for topic in ("boats", "tents", "none_such"):
                listing = Listing("oldest", SearchFilters(topic=topic, include_items=True))
                every = (await fresh.browse(Listing("oldest", EVERYTHING))).records
                assert (await storage.browse(listing)).records == [each for each in every if each.topic == topic]
            await fresh.close()
    await storage.close()


def test_what_changed_alone_is_counted_again() -> None:
    records = {each.id: each for each in (memory_of(f"Number {number}.") for number in range(50))}
    counted = RecordCounter(records)
    assert counted.copy_tally().records == 50
    records.clear()  # nothing is read of them a second time
    counted.note({"mem-00000000aaaa": memory_of("One more.")})
    assert counted.copy_tally().records == 51
