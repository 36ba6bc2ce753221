"""What a store proposes to tidy by its configuration, and what becomes of it when it is applied."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.tidying.tidy_runs import Tidying
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.lifecycle import ArchivalConfig, CleanupConfig, MemoryEntry, MemoryStore, MemoryStoreConfig
from agent_memory.memory import Caller

if TYPE_CHECKING:
    from tests.support import FrozenClock


def aged(text: str, clock: FrozenClock, days: int, **fields: Any) -> MemoryEntry:
    return MemoryEntry(
        **{"entry_type": "learning", "content": {"text": text}, "timestamp": clock() - timedelta(days=days)} | fields
    )


@pytest.fixture
async def filled(store: MemoryStore, clock: FrozenClock) -> MemoryStore:
    """Return a store with an old, a pinned old, an important old and a new memory, and an old turn."""
    await store.store_entries(
        [
            aged("The old kiln is grey.", clock, 100, importance_score=0.1),
            aged("The pinned anvil is black.", clock, 100, pinned=True),
            aged("The important lathe is green.", clock, 100, importance_score=0.9),
            aged("The new saw is red.", clock, 1),
            aged("Which drill is blue?", clock, 100, entry_type="interaction"),
        ]
    )
    await store.service.settle()  # without the background work of the turn
    return store


async def told(store: MemoryStore) -> set[str]:
    return {each.text.split()[1] for each in await store.list_entries()}


async def test_a_cleanup_is_a_preview_until_it_is_applied(filled: MemoryStore) -> None:
    assert await filled.cleanup_old_entries() == 1
    assert await filled.cleanup_old_entries() == 1
    assert await told(filled) == {"old", "pinned", "important", "new", "drill"}
    (suggested,) = (await filled.cleanup_manager.plan()).suggestions
    assert (suggested.action, suggested.memory.content) == ("archive", "The old kiln is grey.")
    assert await filled.cleanup_old_entries(apply=True) == 1
    assert await told(filled) == {"pinned", "important", "new", "drill"}
    assert await filled.cleanup_old_entries() == 0


async def test_what_was_tidied_is_in_the_archive_and_comes_back(filled: MemoryStore) -> None:
    (old,) = [each for each in await filled.list_entries() if "old" in each.text]
    await filled.cleanup_old_entries(apply=True)
    away = await filled.get_entry_by_id(old.entry_id)
    assert away is not None
    assert (away.text, away.archived) == (old.text, True)
    assert await filled.retrieve_relevant("old kiln", relevance_threshold=0.0, entry_types=["learning"]) != [away]
    await Tidying(filled.kept.archive).undo()
    back = await filled.get_entry_by_id(old.entry_id)
    assert back is not None
    assert not back.archived


async def test_an_archived_entry_can_be_deleted(filled: MemoryStore) -> None:
    (old,) = [each for each in await filled.list_entries() if "old" in each.text]
    await filled.cleanup_old_entries(apply=True)
    assert await filled.delete_entry(old.entry_id)
    assert await filled.get_entry_by_id(old.entry_id) is None
    assert not await filled.delete_entry(old.entry_id)


@pytest.mark.parametrize("entry_id", ["", "kiln-1"])
async def test_delete_entry_stored_again_forgets_its_archived_text(
    store: MemoryStore, clock: FrozenClock, entry_id: str
) -> None:
    first = await store.store_entry(MemoryEntry(entry_id, content={"text": "The kiln is grey."}))
    await store.store_entry(MemoryEntry(content={"text": "The shed is grey."}))
    assert await store.archive_entries({"entry_ids": [first]}, apply=True) == 1
    again = await store.store_entry(MemoryEntry(entry_id, content={"text": "The kiln is grey."}))
    clock.advance(minutes=1)
    assert await store.delete_entry(again)
    assert [await store.get_entry_by_id(deleted) for deleted in (first, again)] == [None, None]
    assert await store.kept.archive.everything() == []
    assert [kept.text for kept in await store.list_entries()] == ["The shed is grey."]


async def test_nothing_is_deleted_but_when_it_is_said(filled: MemoryStore, clock: FrozenClock) -> None:
    await filled.cleanup_old_entries(apply=True)
    clock.advance(days=200)
    without, with_it = await filled.cleanup_old_entries(), await filled.cleanup_old_entries(delete=True)
    assert with_it == without + 1
    await filled.cleanup_old_entries(apply=True)
    assert [each.content for each in await filled.kept.archive.everything()].count("The old kiln is grey.") == 1
    await filled.cleanup_old_entries(apply=True, delete=True)
    assert "The old kiln is grey." not in [each.content for each in await filled.kept.archive.everything()]


@pytest.mark.parametrize(
    ("config", "suggested"),
    [
        (CleanupConfig(), 1),
        (CleanupConfig(archive_old_entries_days=101, max_age_days=150), 0),
        (CleanupConfig(min_importance_threshold=0.05), 0),
        (CleanupConfig(min_importance_threshold=0.95), 2),
        (CleanupConfig(max_entries=2, archive_old_entries_days=150, max_age_days=150, delete_unaccessed_days=90), 1),
    ],
)
async def test_the_numbers_of_the_configuration_decide(
    filled: MemoryStore, clock: FrozenClock, config: CleanupConfig, suggested: int
) -> None:
    async with MemoryStore(MemoryStoreConfig(cleanup_config=config), service=filled.service, clock=clock) as own:
        assert await own.cleanup_old_entries() == suggested


def test_numbers_that_contradict_each_other_are_refused() -> None:
    config = MemoryStoreConfig(cleanup_config=CleanupConfig(max_age_days=30))
    with pytest.raises(ConfigurationError, match="cleanup_config"):
        MemoryStore(config)


@pytest.mark.parametrize(
    ("criteria", "meant"),
    [
        ({}, {"old"}),
        ({"max_importance": 1.0}, {"old", "important"}),
        ({"older_than_days": 0}, {"old", "new"}),
        ({"older_than_days": 0, "entry_types": ["insight"]}, set()),
        ({"older_than_days": 0, "tags": ["Loud"]}, set()),
        ({"unused_for_days": 101}, set()),
        ({"older_than_days": 0, "session_id": "nobody"}, set()),
    ],
)
async def test_criteria_choose_what_is_archived(filled: MemoryStore, criteria: dict[str, Any], meant: set[str]) -> None:
    found = await filled.archival_manager.matching(criteria)
    assert {each.content.split()[1] for each in found} == meant
    assert await filled.archive_entries(criteria) == len(meant)
    before = await told(filled)
    assert await filled.archive_entries(criteria, apply=True) == len(meant)
    assert await told(filled) == before - meant


async def test_ids_choose_whatever_the_age_but_nothing_pinned(filled: MemoryStore) -> None:
    ids = [each.entry_id for each in await filled.list_entries()]
    assert await filled.archive_entries({"entry_ids": ids}, apply=True) == 3
    assert await told(filled) == {"pinned", "drill"}


async def test_the_configuration_says_what_is_archived_unasked(filled: MemoryStore, clock: FrozenClock) -> None:
    config = MemoryStoreConfig(archival_config=ArchivalConfig(archive_after_days=1, max_importance=0.95))
    async with MemoryStore(config, service=filled.service, clock=clock) as own:
        assert await own.archive_entries({}) == 3


async def test_no_more_are_archived_at_once_than_a_budget_says(store: MemoryStore, clock: FrozenClock) -> None:
    await store.store_entries([aged(f"The kiln number {n} is grey.", clock, 100) for n in range(15)])
    await store.settle()
    assert await store.archive_entries({}) == 10
    assert await store.archival_manager.archive_entries({}, budget=3, apply=True) == 3
    assert len(await store.list_entries()) == 12


@pytest.mark.parametrize("criteria", [{"colour": "red"}, {"older_than_days": -1}, {"entry_types": ["rumour"]}, "all"])
async def test_wrong_criteria_archive_nothing(filled: MemoryStore, criteria: Any) -> None:
    with pytest.raises(ValidationError):
        await filled.archive_entries(criteria, apply=True)
    assert len(await filled.list_entries()) == 5


async def test_another_group_archives_nothing_of_it(filled: MemoryStore, clock: FrozenClock) -> None:
    async with MemoryStore(service=filled.service, caller=Caller(group="acme:one"), clock=clock) as one:
        mine = await one.store_entry(aged("The kiln of one is grey.", clock, 100, entry_id="mine"))
        assert await one.archive_entries({"entry_ids": [mine]}, apply=True) == 1
        assert await one.get_entry_by_id(mine) is not None
    async with MemoryStore(service=filled.service, caller=Caller(group="acme:two"), clock=clock) as two:
        assert await two.get_entry_by_id(mine) is None
