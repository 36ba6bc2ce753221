"""Bringing exported memories back through the service: as they were, once, without secrets, in any order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent_memory.cli.formats import Format, decode, encode
from agent_memory.errors import StorageError, ValidationError
from agent_memory.memory import AuditLog, Caller, MemoryService
from agent_memory.models import MEMORY
from agent_memory.storage import FileStorage
from agent_memory.store.record_redaction import redact_record
from tests.support import memory_of, scale_examples
from tests.unit.cli.strategies import memories

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from agent_memory.memory.results import Imported
    from agent_memory.models import Memory
    from agent_memory.store.record_redaction import Redacted

CLI = Caller("cli")
A, B, C = "mem-00000000000a", "mem-00000000000b", "mem-00000000000c"
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.fixture
async def service(root: Path) -> AsyncIterator[MemoryService]:
    opened = open_service(root)
    yield opened
    await opened.close()


def open_service(root: Path) -> MemoryService:
    storage = FileStorage("bob", root)
    return MemoryService(storage, audit=AuditLog(storage.folder.audit))


async def restore(service: MemoryService, *several: Memory) -> list[Imported]:
    outcomes: list[Imported] = []
    await service.writer.import_memories(several, outcomes.append, CLI, trusted=True)
    return outcomes


async def all_of(service: MemoryService) -> list[Memory]:
    return [memory async for memory in service.storage.iter_all()]


async def test_a_memory_comes_back_as_it_was(service: MemoryService) -> None:
    memory = memory_of(" as it was, spaces and all ", access_count=7, pinned=True, created_by_session="s1")
    (outcome,) = await restore(service, memory)
    assert (outcome.outcome, outcome.redacted) == ("stored", ())
    assert await all_of(service) == [memory]


async def test_doing_it_again_changes_nothing(service: MemoryService) -> None:
    several = [memory_of("one", id=A), memory_of("two", id=B)]
    await restore(service, *several)
    journal = service.storage.folder.journal.read_bytes()  # type: ignore[attr-defined]
    assert [each.outcome for each in await restore(service, *several)] == ["present", "present"]
    assert service.storage.folder.journal.read_bytes() == journal  # type: ignore[attr-defined]


async def test_what_was_used_since_the_export_keeps_its_counts(service: MemoryService) -> None:
    await restore(service, memory_of("one", id=A))
    await service.storage.touch([A])
    assert [each.outcome for each in await restore(service, memory_of("one", id=A))] == ["present"]
    assert (await service.get(A)).access_count == 1


async def test_what_was_changed_since_the_export_stays_and_is_reported(service: MemoryService) -> None:
    await restore(service, memory_of("one", id=A))
    await service.update(A, {"content": "changed"}, CLI)
    assert [each.outcome for each in await restore(service, memory_of("one", id=A))] == ["differs"]
    assert (await service.get(A)).content == "changed"


async def test_a_secret_is_removed_and_named(service: MemoryService) -> None:
    memory = memory_of(f"the build server uploads with the token {SECRET}", id=A, metadata={"again": SECRET})
    (outcome,) = await restore(service, memory)
    assert outcome.outcome == "stored"
    assert outcome.redacted
    folder = service.storage.folder.path  # type: ignore[attr-defined]
    await service.settle()
    assert not [file for file in folder.iterdir() if file.is_file() and SECRET.encode() in file.read_bytes()]
    assert [each.outcome for each in await restore(service, memory)] == ["present"]


async def test_nothing_but_a_secret_is_refused_and_the_rest_goes_on(service: MemoryService) -> None:
    outcomes = await restore(service, memory_of(SECRET, id=A), memory_of("fine", id=B))
    assert [each.outcome for each in outcomes] == ["refused", "stored"]
    assert outcomes[0].error is not None
    assert outcomes[0].error.code == "only_secret"


@pytest.mark.parametrize("order", [(A, B, C), (C, B, A), (B, C, A)])
async def test_what_replaces_what_survives_any_order(service: MemoryService, order: tuple[str, ...]) -> None:
    chain = {
        A: memory_of("one", id=A),
        B: memory_of("two", id=B, supersedes=A),
        C: memory_of("three", id=C, supersedes=B),
    }
    await restore(service, *(chain[each] for each in order))
    assert await all_of(service) == [chain[each] for each in order]
    assert await service.storage.superseded() == {A: B, B: C}


async def test_of_two_that_replace_each_other_one_link_is_refused_and_named(service: MemoryService) -> None:
    pair = [memory_of("one", id=A, supersedes=B), memory_of("two", id=B, supersedes=A)]
    outcomes = await restore(service, *pair)
    assert [(each.outcome, each.error is None) for each in outcomes] == [("stored", True), ("stored", False)]
    assert await all_of(service) == [pair[0], memory_of("two", id=B)]


async def test_one_that_replaced_a_forgotten_one_survives(service: MemoryService) -> None:
    both = [memory_of("two", id=B, supersedes=A), memory_of("other two", id=C, supersedes=A)]
    assert [each.outcome for each in await restore(service, *both)] == ["stored", "stored"]
    assert await all_of(service) == both
    assert await service.list_recent() == [both[1], both[0]]


async def test_one_that_replaces_a_refused_one_survives(service: MemoryService) -> None:
    newer = memory_of("the new one", id=B, supersedes=A)
    outcomes = await restore(service, newer, memory_of(SECRET, id=A))
    assert [each.outcome for each in outcomes] == ["stored", "refused"]
    assert await all_of(service) == [newer]


async def test_the_audit_log_knows_who_brought_it(service: MemoryService) -> None:
    await restore(service, memory_of("one", id=A))
    await service.settle()
    log = service.storage.folder.audit.read_text()  # type: ignore[attr-defined]
    assert A in log
    assert '"session_id": "cli"' in log


async def test_the_scratchpad_shows_what_came_back(service: MemoryService) -> None:
    await restore(service, memory_of("a thing to know", id=A))
    await service.settle()
    assert "a thing to know" in service.storage.folder.scratchpad.read_text()  # type: ignore[attr-defined]


async def test_after_a_failure_the_rest_is_done_by_doing_it_again(
    service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [memory_of(f"one of those that are stored together: {number}") for number in range(100)]
    several = [*before, memory_of("two", id=B), memory_of("three", id=C)]
    store = service.storage.store_many

    async def fails_at_the_second(memories: Sequence[Redacted[Memory]]) -> None:
        if memories[0].value.id == B:
            raise StorageError("no room")
        await store(memories)

    told: list[Imported] = []
    with monkeypatch.context() as broken:
        broken.setattr(service.storage, "store_many", fails_at_the_second)
        with pytest.raises(StorageError):
            await service.writer.import_memories(several, told.append, CLI, trusted=True)
    assert [each.memory_id for each in told] == [each.id for each in before]
    assert [each.outcome for each in await restore(service, *several)] == ["present"] * 100 + ["stored"] * 2


def goes_in_a_circle(several: list[Memory]) -> bool:
    """Tell whether a memory replaces itself, directly or through others; storage lets that happen to none."""
    replaces = {memory.id: memory.supersedes for memory in several}
    for each, at in replaces.items():
        for _ in several:
            if at == each:
                return True
            at = replaces.get(at or "")  # noqa: PLW2901 - the next in the chain
    return False


def is_without_secrets(memory: Memory) -> bool:
    try:
        return not redact_record(MEMORY, memory).kinds
    except ValidationError:  # it is nothing but one
        return False


@settings(max_examples=scale_examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("form", ["yaml", "jsonl"])
@given(several=st.lists(memories, max_size=4, unique_by=lambda memory: memory.id))
def test_an_agent_exported_and_imported_elsewhere_is_the_same(
    form: Format, several: list[Memory], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The whole way: stored, exported, read, restored; any field, any link, whatever supersedes whatever."""
    assume(not goes_in_a_circle(several))
    assume(all(map(is_without_secrets, several)))

    async def there_and_back() -> None:
        here = open_service(tmp_path_factory.mktemp("here"))
        there = open_service(tmp_path_factory.mktemp("there"))
        try:
            await restore(here, *several)
            text = "".join([encode(memory, form) for memory in await all_of(here)])
            records = list(decode(text.encode(), form, "bob"))
            await restore(there, *[record.memory for record in records if record.memory is not None])
            assert await all_of(there) == await all_of(here) == several
        finally:
            await here.close()
            await there.close()

    asyncio.run(there_and_back())
