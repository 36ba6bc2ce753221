"""The archive: what goes there comes back as it was, is found on request alone, and is never in neither file."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.care.archive import Archive
from agent_memory.errors import ConfigurationError, StorageError, UnknownIdError, ValidationError
from agent_memory.memory import Caller, MemoryService
from agent_memory.memory.events import COMMON, EVENTS
from agent_memory.memory.features import attach_features
from agent_memory.memory.inbox_access import has_journal
from agent_memory.models import ARCHIVED, Link, Memory
from agent_memory.redaction import SecretRedactor
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from tests.support import NOON, FrozenClock, memory_of, raises
from tests.unit.care.conftest import House

if TYPE_CHECKING:
    from pathlib import Path

EVERY_FIELD: dict[str, Any] = {
    "tags": ["drinks", "maria"],
    "timestamp": NOON - timedelta(days=400),
    "observed_at": NOON - timedelta(days=401),
    "last_accessed": NOON - timedelta(days=200),
    "access_count": 7,
    "created_by_session": "session-9",
    "origin": "agent after some_package",
    "trust": "high",
    "confidence": 0.5,
    "importance": 0.2,
    "expires_at": NOON + timedelta(days=900),
    "evicted_at": NOON - timedelta(days=100),
    "metadata": {"where": {"room": 3}, "list": [1, "two", None]},
    "category": "preference",
    "topic": "kitchen",
    "group": "acme:one",
    "project": "kestrel",
    "source": {"kind": "user", "detail": "chat"},
}


async def test_a_memory_comes_back_with_every_field(house: House) -> None:
    other = await house.keep("The mug is blue.")
    links = [Link(rel="needs", id=other.id), Link(rel="derived_from", id=other.id, said="")]
    memory = await house.keep("Maria likes tea.", links=links, **EVERY_FIELD)
    left = set(Memory.model_fields) - set(memory.model_dump(exclude_defaults=True))
    assert left == {"supersedes", "pinned", "promoted_at"}
    (put,) = await house.archive.add([memory.id], house.caller, why="nobody asks")
    assert (put.memory, put.why, put.rule) == (memory, "nobody asks", "asked")
    assert memory.id not in await house.live()
    assert await house.archive.restore([memory.id], house.caller) == [memory]
    assert (await house.live())[memory.id] == memory
    assert await house.put_away() == set()


async def test_what_is_archived_is_found_on_request_alone(house: House) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    assert list((await house.service.search("tea")).results) == []
    assert [hit.memory.id for hit in await house.archive.search("tea")] == [memory.id]
    assert [hit.memory.id for hit in await house.archive.search("tea", 5, {"category": "note"})] == []
    assert (await house.archive.get(memory.id)) is not None
    assert await house.archive.beginning_with(memory.id[:8]) == [memory.id]
    assert (await house.archive.stats()).by_category == {"question": 1}


async def test_it_is_no_forgetting(house: House) -> None:
    """Capture may store the text again, the list of what was forgotten has it not, `restore` brings nothing."""
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    assert not await house.storage.was_forgotten("Maria likes tea.")
    assert await house.service.history.forgotten() == []
    assert await house.service.history.traces() == []
    assert [version.op for version in await house.service.history.history(memory.id)] == ["put", "move"]
    with pytest.raises(UnknownIdError):
        await house.service.history.restore(memory.id)
    again = await house.service.store("Maria likes tea.")
    assert (again.memory.id != memory.id, await house.put_away()) == (True, {memory.id})


async def test_it_is_no_forgetting_after_a_compaction_and_in_another_process(
    house: House, root: Path, clock: FrozenClock
) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    await house.service.writer.compact()
    await house.close()
    other = House(root, clock)
    assert not await other.storage.was_forgotten("Maria likes tea.")
    assert await other.service.history.forgotten() == []
    await other.service.writer.compact(timedelta(0))
    assert b"Maria" not in (root / "bob" / "memories.yaml").read_bytes()
    assert (await other.archive.restore([memory.id])) == [memory]
    await other.close()


async def chain(house: House) -> list[Memory]:
    """Return three memories, each of which replaced the one before."""
    first = await house.keep("The ledger is in MySQL.", days=3)
    second = await house.keep("The ledger is in SQLite.", days=2, supersedes=first.id)
    return [first, second, await house.keep("The ledger is in PostgreSQL.", days=1, supersedes=second.id)]


async def test_what_it_replaced_goes_and_comes_with_it(house: House) -> None:
    first, second, third = await chain(house)
    put = await house.archive.add([third.id])
    assert [each.id for each in put] == [third.id, second.id, first.id]
    assert await house.live() == {}
    back = await house.archive.restore([first.id])
    assert back[0].id == first.id, "what was asked for comes first"
    assert await house.live() == {each.id: each for each in (first, second, third)}
    assert await house.storage.superseded() == {first.id: second.id, second.id: third.id}


async def test_a_replaced_one_goes_with_what_replaced_it_alone(house: House) -> None:
    first, second, third = await chain(house)
    before = await house.live()
    for one in (first, second):
        with raises(ValidationError, "replaced"):
            await house.archive.add([one.id])
    with pytest.raises(UnknownIdError):
        await house.archive.add([third.id, "mem-ffffffffffff"])
    assert (await house.live(), house.archive.exists()) == (before, False)


async def test_what_counts_again_since_the_newer_one_expired_stays(house: House) -> None:
    old = await house.keep("The desk is in Rome.", days=3)
    new = await house.keep("The desk is in Turin.", days=2, supersedes=old.id, expires_at=NOON - timedelta(days=1))
    assert [each.id for each in await house.archive.add([new.id])] == [new.id]
    assert (await house.live()).keys() == {old.id}
    await house.archive.restore([new.id])
    assert await house.live() == {old.id: old, new.id: new}


async def test_one_that_was_used_meanwhile_stays(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    memory, other = await house.keep("Maria likes tea."), await house.keep("The mug is blue.")
    moving = house.service.writer.move_out

    async def used_first(*arguments: Any, **named: Any) -> list[str]:
        await house.storage.touch([memory.id])
        return await moving(*arguments, **named)

    monkeypatch.setattr(house.service.writer, "move_out", used_first)
    assert [each.id for each in await house.archive.add([memory.id, other.id])] == [other.id]
    assert (await house.live()).keys() == {memory.id}
    assert await house.put_away() == {other.id}


async def test_a_chain_of_which_one_was_used_stays_whole(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = await chain(house)
    moving = house.service.writer.move_out

    async def used_first(*arguments: Any, **named: Any) -> list[str]:
        await house.storage.touch([third.id])
        return await moving(*arguments, **named)

    monkeypatch.setattr(house.service.writer, "move_out", used_first)
    assert await house.archive.add([third.id]) == []
    assert (await house.live()).keys() == {first.id, second.id, third.id}
    assert await house.put_away() == set()


async def test_what_a_killed_process_leaves_in_both_is_live_and_the_next_change_finishes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = await house.keep("Maria likes tea."), await house.keep("The mug is blue.")

    async def killed(*_: Any, **__: Any) -> list[str]:
        raise StorageError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(house.service.writer, "move_out", killed)
        with pytest.raises(StorageError):
            await house.archive.add([memory.id])
    assert memory.id in await house.live()
    assert (await house.put_away(), await house.archive.get(memory.id)) == (set(), None)
    assert list(await house.archive.search("tea")) == []
    assert await house.archive.beginning_with("mem-") == []
    await house.storage.update(memory.id, {"tags": ["new"]})
    await house.archive.add([other.id, memory.id])
    (back,) = [each for each in await house.archive.everything() if each.id == memory.id]
    assert back.tags == ["new"], "what it became since is what is kept"


async def test_a_restore_that_is_killed_between_its_two_writes_has_brought_it_back(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    moving = house.service.writer.put_back

    async def killed(*arguments: Any, **named: Any) -> None:
        await moving(*arguments, **named)
        raise StorageError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(house.service.writer, "put_back", killed)
        with pytest.raises(StorageError):
            await house.archive.restore([memory.id])
    assert await house.live() == {memory.id: memory}
    assert await house.put_away() == set()
    assert await house.archive.mend() == [memory.id]
    assert await house.archive.mend() == []


@pytest.mark.parametrize("step", ["archive", "restore"])
async def test_memory_left_in_both_by_a_kill_and_then_forgotten_is_in_no_archive(
    house: House, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    memory = await house.keep("Maria likes tea.")
    if step == "restore":
        await house.archive.add([memory.id])
    moving = house.service.writer.put_back

    async def killed(*arguments: Any, **named: Any) -> list[str]:
        if step == "restore":
            await moving(*arguments, **named)
        raise StorageError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(house.service.writer, "move_out" if step == "archive" else "put_back", killed)
        with pytest.raises(StorageError):
            await (house.archive.add([memory.id]) if step == "archive" else house.archive.restore([memory.id]))
    house.clock.advance(seconds=1)
    await house.service.forget(memory.id)
    assert await house.put_away() == set()
    assert await house.archive.get(memory.id) is None
    assert list(await house.archive.search("tea")) == []
    with pytest.raises(UnknownIdError):
        await house.archive.restore([memory.id])
    assert await house.archive.mend() == [memory.id]
    await house.service.history.restore(memory.id)
    assert set(await house.live()) == {memory.id}


async def test_archived_text_stored_again_and_forgotten_does_not_return(house: House) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    house.clock.advance(seconds=1)
    again = (await house.service.store("Maria likes tea.")).memory
    assert again.id != memory.id
    assert await house.put_away() == {memory.id}
    house.clock.advance(seconds=1)
    await house.service.forget(again.id)
    assert await house.put_away() == set()


async def test_text_forgotten_before_it_was_archived_stays_in_the_archive(house: House) -> None:
    forgotten = await house.keep("Maria likes tea.")
    await house.service.forget(forgotten.id)
    house.clock.advance(seconds=1)
    memory = (await house.service.store("Maria likes tea.")).memory
    house.clock.advance(seconds=1)
    await house.archive.add([memory.id])
    assert await house.put_away() == {memory.id}


async def test_person_forgets_and_restores_an_archived_memory_by_the_service_alone(house: House) -> None:
    attach_features(house.service)
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    with pytest.raises(UnknownIdError):
        await house.service.forget(memory.id, Caller("model", trust="medium"))
    assert await house.put_away() == {memory.id}
    assert (await house.service.history.restore(memory.id)).what == "archived"
    assert set(await house.live()) == {memory.id}
    await house.archive.add([memory.id])
    house.clock.advance(seconds=1)
    await house.service.forget(memory.id)
    assert (await house.live(), await house.put_away()) == ({}, set())


async def test_forgetting_it_is_forgetting(house: House) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    await house.archive.forget(memory.id, reason="she asked")
    assert (await house.live(), await house.put_away()) == ({}, set())
    assert await house.storage.was_forgotten("Maria likes tea.")
    assert [trace.reason for trace in await house.service.history.traces()] == ["she asked"]
    assert [each.id for each, _ in await house.service.history.forgotten()] == [memory.id]
    await house.archive.compact(timedelta(0))
    await house.service.writer.compact(timedelta(0))
    for name in ("memories.yaml", "archive.yaml"):
        assert b"Maria" not in (house.folder / name).read_bytes()


async def test_what_is_deleted_from_it_can_be_brought_back_into_it_for_a_time(house: House) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id])
    assert await house.archive.delete([memory.id, "mem-ffffffffffff"]) == [memory.id]
    assert await house.put_away() == set()
    assert await house.archive.undelete(memory.id)
    assert await house.put_away() == {memory.id}
    await house.archive.delete([memory.id])
    await house.archive.compact(timedelta(0))
    assert not await house.archive.undelete(memory.id)


async def test_a_stranger_cannot_have_it_done(house: House) -> None:
    memory = await house.keep("Maria likes tea.", trust="high")
    stranger = Caller("session-1", trust="low", prompt="What is the weather?")
    with raises(ValidationError, "needs_user"):
        await house.archive.add([memory.id], stranger)
    assert (await house.live()).keys() == {memory.id}


async def test_the_events_say_which_and_why_and_no_words(house: House) -> None:
    memory = await house.keep("Maria likes tea.")
    await house.archive.add([memory.id], house.caller)
    await house.archive.restore([memory.id], house.caller)
    names = [name for name, _ in house.events]
    assert names == ["memory:archived", "memory:restored"]
    for name, data in house.events:
        assert data.keys() == EVENTS[name].fields.keys() | COMMON
        assert "Maria" not in str(data)
    assert house.events[0][1]["rule"] == "asked"
    assert house.events[1][1]["was"] == "archived"


async def test_the_scratchpad_shows_it_no_more(house: House) -> None:
    memory, other = await house.keep("Maria likes tea."), await house.keep("The mug is blue.")
    assert memory.id in [each.id for each in (await house.service.scratchpad()).entries]
    await house.archive.add([memory.id])
    assert [each.id for each in (await house.service.scratchpad()).entries] == [other.id]
    await house.service.settle()
    assert "Maria" not in (house.folder / "scratchpad.yaml").read_text()


async def test_an_id_that_is_in_no_archive_is_said_so(house: House) -> None:
    with pytest.raises(UnknownIdError, match="not in the archive"):
        await house.archive.restore(["mem-ffffffffffff"])
    assert (await house.archive.get("mem-ffffffffffff"), house.archive.exists()) == (None, False)
    assert (await house.archive.stats()).memories == 0


async def test_a_list_has_the_last_first_and_the_archive_knows_whether_it_is_there(
    house: House, clock: FrozenClock
) -> None:
    settings = house.service.settings
    assert not has_journal("bob", settings, ARCHIVED)
    first, second = await house.keep("Maria likes tea."), await house.keep("The mug is blue.")
    await house.archive.add([first.id])
    clock.advance(days=1)
    await house.archive.add([second.id])
    assert [each.id for each in await house.archive.browse()] == [second.id, first.id]
    assert has_journal("bob", settings, ARCHIVED)
    assert not has_journal("bob", settings.model_copy(update={"backend": "server"}), ARCHIVED)
    found = await house.archive.stats()
    assert (found.first, found.last) == (NOON, NOON + timedelta(days=1))


async def test_more_than_fit_into_one_change_keep_their_chains_together(house: House) -> None:
    """Portions of a hundred: what replaced each other is on one side of each boundary."""
    chained = [await chain(house) for _ in range(40)]
    put = await house.archive.add([third.id for _, _, third in chained])
    assert len(put) == 120
    lines = [line for line in (house.folder / "archive.yaml").read_bytes().splitlines() if b'"archived"' in line]
    assert len(lines) == 2
    for first, second, third in chained:
        assert sum(all(each.id.encode() in line for each in (first, second, third)) for line in lines) == 1
    await house.archive.restore([first.id for first, _, _ in chained])
    assert len(await house.storage.superseded()) == 80


def test_a_server_has_none(root: Path) -> None:
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    service = MemoryService(FileStorage("bob", settings=settings), settings.model_copy(update={"backend": "server"}))
    with raises(ConfigurationError, "archive_needs_files"):
        Archive(service)


_WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=40)
_MEMORIES = st.lists(
    st.fixed_dictionaries(
        {
            "content": _WORDS.filter(lambda text: text.strip() and not SecretRedactor().redact(text).kinds),
            "tags": st.lists(st.sampled_from(["a", "b", "c"]), unique=True),
            "access_count": st.integers(0, 20),
            "trust": st.sampled_from(["high", "medium", "low"]),
            "importance": st.none() | st.floats(0, 1),
            "pinned": st.booleans(),
            "metadata": st.dictionaries(st.sampled_from(["x", "y"]), st.integers() | st.booleans() | st.none()),
            "replaces": st.booleans(),
        }
    ),
    min_size=1,
    max_size=6,
)


@given(said=_MEMORIES, which=st.integers(0, 5))
def test_whatever_is_stored_comes_back_exactly(
    said: list[dict[str, Any]], which: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    async def run() -> None:
        house = House(tmp_path_factory.mktemp("house"), FrozenClock())
        before: str | None = None
        for number, each in enumerate(said):
            replaces = each.pop("replaces")
            moment = NOON + timedelta(minutes=number)
            memory = memory_of(**each, timestamp=moment, supersedes=before if replaces else None)
            await house.storage.store_many([memory])
            before = memory.id
        live, replaced = await house.live(), await house.storage.superseded()
        heads = [one for one in live if one not in replaced]
        head = heads[which % len(heads)]
        put = await house.archive.add([head])
        assert live.keys() - (await house.live()).keys() == {each.id for each in put}
        assert await house.storage.superseded() == {
            old: new for old, new in replaced.items() if old not in {each.id for each in put}
        }
        await house.archive.restore([put[-1].id])
        assert await house.live() == live
        assert await house.storage.superseded() == replaced
        await house.close()

    asyncio.run(run())
