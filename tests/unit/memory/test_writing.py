"""The one write path: bounded, normalised, redacted, checked, deduplicated, written, told."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError, UnknownIdError, ValidationError
from agent_memory.models import Observation, Source
from tests.support import NOON, FrozenClock, lines_of, raises

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from tests.unit.memory.conftest import Listener, Services


def everything_below(folder: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def seen(content: str, **fields: Any) -> Observation:
    return Observation(**{"content": content, "category": "note", "confidence": 0.9, "rule": "remember", **fields})


# -- storing ----------------------------------------------------------------------------------------------------------


async def test_a_stored_memory_is_on_disk_in_the_pad_and_told(
    service: MemoryService, listener: Listener, folder: Path
) -> None:
    stored = await service.store(
        {"content": " Prefers\r\ntea ", "category": "Preference", "tags": ["Hot"]}, listener.caller
    )
    memory = stored.memory
    assert (memory.content, memory.category, memory.tags) == ("Prefers\ntea", "preference", ["hot"])
    assert (memory.timestamp, memory.created_by_session, memory.trust) == (NOON, "session-1", "medium")
    assert (stored.in_scratchpad, stored.duplicate, stored.backend) == (True, False, "file")
    assert memory.id.encode() in (folder / "memories.yaml").read_bytes()
    (told,) = listener.of("memory:stored")
    assert (told["memory_id"], told["tag_count"], told["in_scratchpad"]) == (memory.id, 1, True)
    await service.settle()
    assert memory.id in (folder / "scratchpad.yaml").read_text()


async def test_no_secret_reaches_a_file_or_an_event(
    service: MemoryService, listener: Listener, folder: Path, secret: str
) -> None:
    values = {
        "content": f"The token for the mirror is {secret}, ask Ada",
        "tags": [f"tok {secret}", "mirror"],
        "metadata": {
            "note": f"x {secret}",
            f"key {secret}": 1,
            "list": [{"deep": secret}],
            "password": "hunter2hunter2",
        },
    }
    stored = await service.store(values, listener.caller)
    changes = {"content": f"now {secret} at the mirror", "metadata": {"again": secret}}
    updated = await service.update(stored.memory.id, changes, listener.caller)
    outcome = await service.capture(
        [seen(f"Remember that the deploy token is {secret} for the blue host")], listener.caller
    )
    await service.scratchpad(listener.caller)
    await service.settle()
    assert stored.redacted
    assert updated.redacted
    assert len(outcome.stored) == 1
    assert "mirror" in stored.memory.content
    assert "[redacted:" in stored.memory.content
    everything = everything_below(folder) + repr(listener.events).encode()
    for hidden in (secret, secret.lower(), "hunter2hunter2"):
        assert hidden.encode() not in everything
    assert all(
        event["redacted"] for name in ("stored", "updated", "captured") for event in listener.of(f"memory:{name}")
    )


async def test_nothing_but_a_secret_is_refused_without_repeating_it(
    service: MemoryService, listener: Listener, root: Path, secret: str
) -> None:
    with raises(ValidationError, "only_secret") as refused:
        await service.store({"content": secret}, listener.caller)
    assert secret not in str(refused.value.as_dict())
    assert listener.events == []
    assert not root.exists()


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({}, "invalid"),
        ({"content": ""}, "invalid"),
        ({"content": " \n\t "}, "invalid"),
        ({"content": None}, "invalid"),
        ({"content": 5}, "invalid"),
        ({"content": "x" * 10_001}, "too_long"),
        ({"content": "half \ud800"}, "invalid"),
        ({"content": "nul \0"}, "invalid"),
        ({"content": "x", "tags": ["t"] * 10_000}, "too_many"),
        ({"content": "x", "tags": "t"}, "invalid"),
        ({"content": "x", "tags": ["\ud800"]}, "invalid"),
        ({"content": "x", "category": "No form"}, "invalid"),
        ({"content": "x", "metadata": {"x": float("nan")}}, "invalid"),
        ({"content": "x", "metadata": {"x": "y" * 9000}}, "invalid"),
        ({"content": "x", "metadata": {"k" * 257: 1}}, "invalid"),
        ({"content": "x", "metadata": []}, "invalid"),
        ({"content": "x", "metadata": {"x": {1}}}, "invalid"),
        ({"content": "x", "expires_at": "some day"}, "invalid"),
        ({"content": "x", "supersedes": "nonsense"}, "invalid"),
        ({"content": "x", "supersedes": "mem-000000000000"}, "unknown_id"),
        ({"content": "x", "unknown": 1}, "invalid"),
        ({"content": "x", "trust": "total"}, "invalid"),
        ({"content": "x", "confidence": 7}, "invalid"),
    ],
)
async def test_what_breaks_the_data_model_is_refused_and_nothing_is_written(
    service: MemoryService, listener: Listener, folder: Path, values: dict[str, Any], code: str
) -> None:
    with raises(ValidationError, code):
        await service.store(values, listener.caller)
    assert listener.events == []
    assert not (folder / "memories.yaml").exists() or lines_of(folder / "memories.yaml") == []


async def test_metadata_of_any_depth_is_refused_without_exhausting_the_stack(service: MemoryService) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"d": deep}
    cyclic: dict[str, Any] = {}
    cyclic["self"] = cyclic
    for metadata in (deep, cyclic, {"list": [deep]}):
        with pytest.raises(ValidationError):
            await service.store({"content": "x", "metadata": metadata})
        with pytest.raises(ValidationError):
            await service.update("mem-000000000000", {"metadata": metadata})


async def test_the_same_text_is_kept_once_and_counts_as_an_access(
    service: MemoryService, listener: Listener, folder: Path
) -> None:
    first = await service.store({"content": "Prefers tea"}, listener.caller)
    again = await service.store({"content": " Prefers  tea "}, listener.caller)
    await service.settle()
    assert again.duplicate
    assert again.memory.id == first.memory.id
    assert listener.names() == ["memory:stored"]
    assert (await service.get(first.memory.id)).access_count == 1


async def test_superseding_replaces_even_with_the_same_text(service: MemoryService, listener: Listener) -> None:
    old = (await service.store({"content": "Office in Berlin"})).memory
    new = await service.store({"content": "Office in Berlin", "supersedes": old.id}, listener.caller)
    assert not new.duplicate
    assert listener.of("memory:stored")[0]["supersedes"] == old.id
    assert list((await service.scratchpad()).ids()) == [new.memory.id]


# -- changing and forgetting ------------------------------------------------------------------------------------------


async def test_an_update_tells_which_fields_really_changed(service: MemoryService, listener: Listener) -> None:
    memory = (await service.store({"content": "Prefers tea", "tags": ["hot"]})).memory
    updated = await service.update(memory.id, {"content": "Prefers tea", "tags": ["cold"]}, listener.caller)
    assert updated.fields == ("tags",)
    assert [event["fields"] for event in listener.of("memory:updated")] == [["tags"]]
    same = await service.update(memory.id, {"tags": ["cold"]}, listener.caller)
    assert same.fields == ()
    assert len(listener.events) == 1


async def test_a_pin_keeps_a_memory_in_the_pad(make_service: Services, clock: FrozenClock) -> None:
    service = make_service(max_scratchpad_entries=2)
    first = (await service.store({"content": "pinned"})).memory
    await service.update(first.id, {"pinned": True})
    for text in ("one", "two", "three"):
        clock.advance(minutes=1)
        await service.store({"content": text})
    assert [m.content for m in (await service.scratchpad()).entries] == ["pinned", "three"]


@pytest.mark.parametrize(
    "changes", [{"content": ""}, {"content": "x" * 10_001}, {"nonsense": 1}, {"id": "x"}, {"content": 5}]
)
async def test_a_wrong_update_changes_and_tells_nothing(
    service: MemoryService, listener: Listener, changes: dict[str, Any]
) -> None:
    memory = (await service.store({"content": "tea"})).memory
    with pytest.raises(ValidationError):
        await service.update(memory.id, changes, listener.caller)
    assert await service.get(memory.id) == memory
    assert listener.events == []


@pytest.mark.parametrize(
    "changes",
    [
        {"category": "No name"},
        {"content": "x" * 10_001},
        {"tags": [f"tag{number}" for number in range(60)]},
        {"expires_at": "2020-01-01"},
        {"importance": 3},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_refused_update_says_that_nothing_was_changed(service: MemoryService, changes: dict[str, Any]) -> None:
    memory = (await service.store({"content": "tea"})).memory
    with pytest.raises(ValidationError, match=r"^Nothing was changed: "):
        await service.update(memory.id, changes)


async def test_forgetting_takes_a_memory_and_its_older_versions_out_of_everything(
    service: MemoryService, listener: Listener, folder: Path
) -> None:
    old = (await service.store({"content": "The office is in Berlin"})).memory
    new = (await service.store({"content": "The office is in Lyon", "supersedes": old.id})).memory
    await service.settle()
    shown = await service.scratchpad()
    assert await service.storage.still_true(shown.entries)
    forgotten = await service.forget(new.id, listener.caller)
    await service.settle()
    assert (forgotten.memory.id, forgotten.older_versions) == (new.id, (old.id,))
    assert not await service.storage.still_true(shown.entries)
    assert [event["memory_id"] for event in listener.of("memory:forgotten")] == [new.id, old.id]
    assert list((await service.search("office")).results) == []
    assert "office" not in (folder / "scratchpad.yaml").read_text()


async def test_what_was_forgotten_is_not_found_when_the_journal_cannot_be_read(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = (await service.store({"content": "Prefers tea"})).memory
    await service.store({"content": "Drinks tea at five"})
    await service.scratchpad()
    await service.forget(gone.id)

    async def broken(*_: object, **__: object) -> None:
        raise StorageError("the disk is failing")

    monkeypatch.setattr(service.storage, "search", broken)
    found = await service.search("tea")
    assert [result.memory.content for result in found.results] == ["Drinks tea at five"]


async def test_an_unknown_id_is_an_error_and_no_success(service: MemoryService, listener: Listener) -> None:
    for attempt in (service.forget, service.promote, service.get):
        with pytest.raises(UnknownIdError):
            await attempt("mem-000000000000")
    with pytest.raises(UnknownIdError):
        await service.update("mem-000000000000", {"pinned": True})
    await service.evict("mem-000000000000")
    assert listener.events == []


# -- the scratchpad's places ------------------------------------------------------------------------------------------


async def test_low_trust_never_comes_into_the_pad(service: MemoryService, listener: Listener) -> None:
    stored = await service.store({"content": "Read on a page", "trust": "low"}, listener.caller)
    assert stored.in_scratchpad is False
    with raises(ValidationError, "low_trust"):
        await service.promote(stored.memory.id, listener.caller)
    for _ in range(4):
        await service.search("page", caller=listener.caller)
        await service.settle()
    assert len(await service.scratchpad()) == 0
    assert listener.of("memory:promoted") == []


async def test_a_promotion_into_a_full_pad_of_fifty_makes_the_last_one_leave(
    service: MemoryService, listener: Listener, clock: FrozenClock
) -> None:
    ids = []
    for number in range(51):
        clock.advance(minutes=1)
        ids.append((await service.store({"content": f"fact {number}"})).memory.id)
    clock.advance(minutes=1)
    outcome = await service.promote(ids[0], listener.caller)
    assert (outcome.promoted, outcome.evicted, outcome.scratchpad_size) == (True, ids[1], 50)
    (told,) = listener.of("memory:promoted")
    assert (told["reason"], told["evicted"], told["scratchpad_size"]) == ("manual", ids[1], 50)
    again = await service.promote(ids[0], listener.caller)
    assert (again.promoted, again.evicted) == (False, None)
    assert len(listener.events) == 1


async def test_promoting_what_the_pad_cannot_show_does_not_pretend(
    make_service: Services, listener: Listener, clock: FrozenClock
) -> None:
    service = make_service(max_scratchpad_entries=1)
    old = (await service.store({"content": "Office in Berlin"})).memory
    new = (await service.store({"content": "Office in Lyon", "supersedes": old.id})).memory
    with pytest.raises(ValidationError) as refused:
        await service.promote(old.id, listener.caller)
    assert (refused.value.code, new.id in refused.value.recovery) == ("superseded", True)
    await service.update(new.id, {"pinned": True})
    other = (await service.store({"content": "coffee"})).memory
    expired = (await service.store({"content": "milk", "expires_at": NOON + timedelta(minutes=1)})).memory
    clock.advance(hours=1)
    for memory in (other, expired):
        assert (await service.promote(memory.id, listener.caller)).promoted is False
    assert listener.of("memory:promoted") == []


async def test_the_third_access_promotes_and_is_told_once(
    make_service: Services, listener: Listener, clock: FrozenClock
) -> None:
    service = make_service(max_scratchpad_entries=2)
    wanted = (await service.store({"content": "peppermint tea"})).memory
    for text in ("one", "two"):
        clock.advance(minutes=1)
        await service.store({"content": text})
    told = []
    for _ in range(5):
        clock.advance(minutes=1)
        await service.open(wanted.id, listener.caller)
        await service.settle()
        told.append(len(listener.of("memory:promoted")))
    assert told == [0, 0, 1, 1, 1]
    (event,) = listener.of("memory:promoted")
    assert (event["memory_id"], event["reason"]) == (wanted.id, "access_threshold")
    assert wanted.id in await service.scratchpad()


async def test_a_memory_that_is_used_often_comes_back_into_the_pad_and_its_file(
    make_service: Services, listener: Listener, clock: FrozenClock, folder: Path
) -> None:
    service = make_service(max_scratchpad_entries=1)
    wanted = (await service.store({"content": "peppermint tea", "access_count": 7})).memory
    clock.advance(minutes=1)
    await service.store({"content": "coffee"})
    clock.advance(minutes=1)
    await service.open(wanted.id, listener.caller)
    await service.settle()
    assert [event["memory_id"] for event in listener.of("memory:promoted")] == [wanted.id]
    assert wanted.id in (folder / "scratchpad.yaml").read_text()


# -- capture ----------------------------------------------------------------------------------------------------------


async def test_a_captured_memory_carries_where_it_came_from(service: MemoryService, listener: Listener) -> None:
    observation = seen(
        "We use Postgres",
        category="decision",
        source=Source(kind="user", detail="prompt"),
        trust="high",
        session_id="s-9",
    )
    outcome = await service.capture([observation], listener.caller)
    memory = await service.get(outcome.stored[0])
    assert (memory.trust, memory.source.kind, memory.confidence) == ("high", "user", 0.9)
    assert memory.created_by_session == "s-9"
    (told,) = listener.of("memory:captured")
    assert (told["rule"], told["source"], told["confidence"], told["category"]) == ("remember", "user", 0.9, "decision")


async def test_forgotten_texts_duplicates_and_secrets_are_skipped_with_a_reason(
    service: MemoryService, listener: Listener, secret: str
) -> None:
    forgotten = (await service.store({"content": "The office is in Berlin"})).memory
    await service.forget(forgotten.id)
    await service.store({"content": "We deploy every Friday in the morning to the blue cluster"})
    outcome = await service.capture(
        [
            seen("the office is in  BERLIN"),
            seen("We deploy every Friday in the morning to the blue cluster"),
            seen("We deploy, every Friday, in the morning, to the blue cluster!"),
            seen(secret),
            seen("We deploy every Monday"),
        ],
        listener.caller,
    )
    assert len(outcome.stored) == 1
    assert outcome.skipped == {"forgotten": 1, "duplicate": 2, "only_secret": 1}
    skipped = {event["reason"]: event["count"] for event in listener.of("memory:capture_skipped")}
    assert skipped == outcome.skipped


async def test_capture_does_not_add_to_what_was_stored_in_the_same_breath(service: MemoryService) -> None:
    outcome = await service.capture([seen("We use Postgres for the ledger"), seen("we use postgres for the ledger")])
    assert (len(outcome.stored), outcome.skipped) == (1, {"duplicate": 1})
