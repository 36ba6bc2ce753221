"""Exported memories come back as they were; nothing that is there changes, and no secret comes back with them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import BusyError
from agent_memory.memory.caller import NOBODY
from agent_memory.models import Memory, Source, get_import_id, new_memory_id
from tests.support import NOON, lines_of, memory_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.memory.results import Imported
    from agent_memory.store.record_redaction import Redacted
    from tests.unit.memory.conftest import Listener, Services


async def restored(
    service: MemoryService, listener: Listener, *memories: Memory, trusted: bool = True
) -> list[Imported]:
    told: list[Imported] = []
    await service.writer.import_memories(memories, told.append, listener.caller, trusted=trusted)
    await service.settle()
    return told


async def test_a_line_of_the_journal_holds_no_more_long_texts_than_one_may_lose(
    make_service: Services, listener: Listener, folder: Path
) -> None:
    service = make_service(suspects=False)
    short = [memory_of(f"short {number}") for number in range(150)]
    long = [memory_of(f"{number} " + "x" * 9_000) for number in range(24)]
    assert {told.outcome for told in await restored(service, listener, *short, *long)} == {"stored"}
    changes = [json.loads(line[4:]) for line in lines_of(folder / "memories.yaml")]
    assert [len(change.get("entries", [change])) for change in changes] == [100, 57, 7, 7, 3]


async def test_a_memory_comes_back_with_id_times_and_counts(service: MemoryService, listener: Listener) -> None:
    memory = memory_of(" as it was ", access_count=7, pinned=True, tags=["a"], trust="high", created_by_session="then")
    (outcome,) = await restored(service, listener, memory)
    assert (outcome.memory_id, outcome.outcome, outcome.error) == (memory.id, "stored", None)
    assert await service.get(memory.id) == memory
    assert [event["memory_id"] for event in listener.of("memory:stored")] == [memory.id]


async def test_doing_it_again_changes_nothing_and_another_text_stays(
    service: MemoryService, listener: Listener
) -> None:
    memory = memory_of("tea")
    await restored(service, listener, memory)
    await service.update(memory.id, {"tags": ["hot"]})
    other = memory.model_copy(update={"content": "coffee"})
    assert [told.outcome for told in await restored(service, listener, memory, other)] == ["present", "differs"]
    kept = await service.get(memory.id)
    assert (kept.content, kept.tags) == ("tea", ["hot"])


async def test_a_secret_in_an_export_is_removed(
    service: MemoryService, listener: Listener, folder: Path, secret: str
) -> None:
    (told,) = await restored(service, listener, memory_of(f"The mirror takes {secret}"))
    assert told.outcome == "stored"
    assert told.redacted
    assert secret.encode() not in (folder / "memories.yaml").read_bytes()
    (only,) = await restored(service, listener, memory_of(secret))
    assert only.outcome == "refused"
    assert secret not in str(only.error.as_dict())


async def test_links_may_point_forward_and_to_what_was_forgotten(service: MemoryService, listener: Listener) -> None:
    forgotten = new_memory_id()
    old = memory_of("The office is in Berlin", supersedes=forgotten)
    new = memory_of("The office is in Lyon", supersedes=old.id)
    told = await restored(service, listener, new, old)
    assert [each.outcome for each in told] == ["stored", "stored"]
    assert (await service.get(new.id)).supersedes == old.id
    assert (await service.get(old.id)).supersedes == forgotten
    assert await service.storage.superseded() == {old.id: new.id}
    assert await service.storage.count() == 2
    assert list((await service.scratchpad()).ids()) == [new.id]


async def test_a_file_that_is_not_trusted_replaces_only_what_it_brings_along(service: MemoryService) -> None:
    gone = (await service.store({"content": "The office is in Rome"})).memory
    await service.forget(gone.id)
    first = memory_of("The office is in Bonn", supersedes=gone.id)
    second = memory_of("The office is in Lyon", supersedes=first.id)
    await service.writer.import_memories([first, second], lambda _: None, NOBODY)
    assert (await service.get(first.id)).supersedes is None
    assert (await service.get(second.id)).supersedes == first.id


async def test_each_is_there_whole_or_not_at_all(service: MemoryService, listener: Listener, folder: Path) -> None:
    """A process killed in between must leave no memory without its link: each is one line of the journal."""
    forgotten = new_memory_id()
    old = memory_of("The office is in Berlin", supersedes=forgotten)
    new = memory_of("The office is in Lyon", supersedes=old.id)
    await restored(service, listener, new, old)
    lines = [json.loads(line[4:]) for line in lines_of(folder / "memories.yaml")]
    each = [change for line in lines for change in line.get("entries", [line])]
    assert [(line["op"], line["id"], line["data"]["supersedes"]) for line in each] == [
        ("put", new.id, old.id),
        ("put", old.id, forgotten),
    ]


async def test_a_circle_of_links_hides_nobody(service: MemoryService, listener: Listener) -> None:
    first, second = new_memory_id(), new_memory_id()
    circle = [memory_of("one", id=first, supersedes=second), memory_of("two", id=second, supersedes=first)]
    told = await restored(service, listener, *circle)
    assert [each.outcome for each in told] == ["stored", "stored"]
    assert told[1].error is not None
    assert len(await service.list_recent()) == 1
    assert await service.storage.count() == 2


async def test_what_was_told_of_before_a_failure_is_on_disk(
    service: MemoryService, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, told = service.storage.store_many, []

    async def failing(memories: Sequence[Redacted[Memory]]) -> None:
        if memories[0].value.content == "two":
            raise BusyError("somebody else is writing")
        await real(memories)

    before = [memory_of(f"one of those that are stored together: {number}") for number in range(100)]
    memories = [*before, memory_of("two"), memory_of("three")]
    with monkeypatch.context() as patch:
        patch.setattr(service.storage, "store_many", failing)
        with pytest.raises(BusyError):
            await service.writer.import_memories(memories, told.append, listener.caller, trusted=True)
    assert [each.memory_id for each in told] == [each.id for each in before]
    assert await service.get(before[-1].id)
    again = [each.outcome for each in await restored(service, listener, *memories)]
    assert again == ["present"] * 100 + ["stored"] * 2


async def test_one_that_is_refused_among_those_that_are_stored_together_holds_up_no_other(
    service: MemoryService, listener: Listener
) -> None:
    itself = new_memory_id()
    memories = [memory_of(f"fact {number}") for number in range(30)]
    memories.insert(7, memory_of("of somebody else", agent_id="alice"))
    memories.insert(20, memory_of("goes round", id=itself, supersedes=itself))
    told = await restored(service, listener, *memories)
    assert [each.memory_id for each in told] == [each.id for each in memories]
    assert [each.outcome for each in told if each.memory_id != memories[7].id] == ["stored"] * 31
    assert told[7].outcome == "refused"
    assert await service.storage.count() == 31


async def test_what_a_file_has_twice_is_stored_once_and_believed_as_what_comes_later_says(
    service: MemoryService, listener: Listener
) -> None:
    first = memory_of("tea")
    other = first.model_copy(update={"content": "coffee"})
    pinned = first.model_copy(update={"pinned": True})
    told = await restored(service, listener, first, other, pinned)
    assert [(each.outcome, each.raised) for each in told] == [("stored", ()), ("differs", ()), ("present", ("pinned",))]


async def test_import_of_texts_differing_by_case_stores_both_once(service: MemoryService, listener: Listener) -> None:
    texts = ["Use grep -v.", "Use grep -V.", "10⁵ rows", "105 rows"]
    memories = [memory_of(text, id=get_import_id(text)) for text in texts]
    assert [each.outcome for each in await restored(service, listener, *memories)] == ["stored"] * 4
    for order in (memories, memories[::-1]):
        assert [each.outcome for each in await restored(service, listener, *order)] == ["present"] * 4
    assert sorted([memory.content async for memory in service.storage.iter_all()]) == sorted(texts)


async def test_import_of_an_edited_memory_differs(service: MemoryService, listener: Listener) -> None:
    memory = memory_of("Use grep -v.", id=get_import_id("Use grep -v."))
    await restored(service, listener, memory)
    await service.update(memory.id, {"content": "Use ripgrep."})
    assert [each.outcome for each in await restored(service, listener, memory)] == ["differs"]


async def test_what_a_file_claims_is_not_believed_unless_somebody_vouches_for_it(
    service: MemoryService, listener: Listener
) -> None:
    pinned = (await service.store({"content": "Deploys need a review.", "pinned": True, "trust": "high"})).memory
    soon = NOON + timedelta(days=1)
    claims = {
        "trust": "high",
        "pinned": True,
        "source": Source(kind="user", detail="chat"),
        "supersedes": pinned.id,
        "access_count": 10**6,
        "last_accessed": NOON,
        "promoted_at": NOON,
        "timestamp": soon,
        "observed_at": soon,
    }
    memory = memory_of("Deploys need no review.", **claims)
    (told,) = await restored(service, listener, memory, trusted=False)
    assert (told.outcome, set(told.lowered)) == ("stored", {*claims, "origin"})
    kept = await service.get(memory.id)
    assert (kept.trust, kept.pinned, kept.source.kind, kept.supersedes) == ("low", False, "import", None)
    assert (kept.access_count, kept.last_accessed, kept.promoted_at) == (0, None, None)
    assert (kept.timestamp, kept.observed_at) == (NOON, NOON)
    assert (await service.scratchpad()).entries[0].id == pinned.id


async def test_who_vouches_for_a_file_afterwards_has_its_claims_believed_then(
    service: MemoryService, listener: Listener
) -> None:
    memory = memory_of("Deploys need a review.", trust="high", pinned=True)
    await restored(service, listener, memory, trusted=False)
    (told,) = await restored(service, listener, memory)
    assert (told.outcome, set(told.raised)) == ("present", {"trust", "origin", "pinned"})
    assert await service.get(memory.id) == memory
    (event,) = listener.of("memory:updated")
    assert (event["memory_id"], set(event["fields"])) == (memory.id, {"trust", "origin", "pinned"})
    (again,) = await restored(service, listener, memory)
    assert (again.outcome, again.raised) == ("present", ())


async def test_what_was_changed_since_stays_whoever_vouches_for_the_file(
    service: MemoryService, listener: Listener
) -> None:
    memory = memory_of("Deploys need a review.", trust="high")
    await restored(service, listener, memory, trusted=False)
    await service.update(memory.id, {"pinned": True})
    (told,) = await restored(service, listener, memory)
    assert (told.memory_id, told.outcome, told.raised) == (memory.id, "present", ())
    assert (await service.get(memory.id)).trust == "low"


async def test_the_scratchpad_file_shows_what_was_imported_and_nothing_of_a_rehearsal(
    service: MemoryService, listener: Listener, folder: Path
) -> None:
    memory = memory_of("Deploys need a review.", pinned=True)
    await service.writer.import_memories([memory], lambda _: None, listener.caller, trusted=True, dry_run=True)
    await service.settle()
    assert not (folder / "scratchpad.yaml").exists()
    await restored(service, listener, memory)
    assert memory.content in (folder / "scratchpad.yaml").read_text()


async def test_a_file_without_claims_comes_back_as_it_was(service: MemoryService, listener: Listener) -> None:
    older = memory_of("Tea at four.", trust="low", origin="import", tags=["a"], metadata={"k": 1})
    newer = memory_of(
        "Tea at five.", trust="low", origin="import", supersedes=older.id, expires_at=NOON + timedelta(days=9)
    )
    for told in await restored(service, listener, older, newer, trusted=False):
        assert told.lowered == ()
    assert [await service.get(each.id) for each in (older, newer)] == [older, newer]


async def test_a_rehearsal_tells_the_same_and_stores_nothing(
    service: MemoryService, listener: Listener, folder: Path, secret: str
) -> None:
    known = (await service.store({"content": "known"})).memory
    await service.settle()
    journal = (folder / "memories.yaml").read_bytes()
    memories = [
        memory_of("new", trust="high"),
        memory_of(f"with {secret}"),
        memory_of(secret),
        known,
        known.model_copy(update={"content": "other"}),
    ]
    memories.append(memories[0])
    rehearsed: list[Imported] = []
    await service.writer.import_memories(memories, rehearsed.append, listener.caller, dry_run=True)
    await service.settle()
    assert (folder / "memories.yaml").read_bytes() == journal
    done = await restored(service, listener, *memories, trusted=False)
    assert [(each.outcome, each.lowered) for each in rehearsed] == [(each.outcome, each.lowered) for each in done]
