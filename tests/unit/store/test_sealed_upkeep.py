"""A child seals what there is when there is enough of it, when its vectors are there, and at the end of a session."""

from __future__ import annotations

import gc
import shutil
import sys
import warnings
from datetime import timedelta
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.index.segment import open_chain
from agent_memory.index.segment_vectors import folder_name
from agent_memory.journal import Change, Journal
from agent_memory.models import MEMORY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store import memory_storage as upkeep
from agent_memory.store import segment_builder as sealing
from agent_memory.store.changes import to_store
from agent_memory.store.segment_builder import seal_up
from tests.support import memory_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.index.segment_writer import Row

ENOUGH = 3
EMBEDDER = HashEmbedder()


class Children:
    """Stands for child processes: each has ended when it is looked at.

    Attributes:
        begun: How many were started.
        work: What each does.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self.begun = 0
        self.work = work

    def __call__(self, command: list[str]) -> Children:
        assert command[-2] == MEMORY.place
        self.begun += 1
        self.work()
        return self

    def poll(self) -> int:
        return 0


@pytest.fixture
def folder(tmp_path: Path) -> AgentFolder:
    return folder_of("bob", tmp_path)


@pytest.fixture
def children(folder: AgentFolder, monkeypatch: pytest.MonkeyPatch) -> Children:
    children = Children(lambda: seal_up(folder, MEMORY, EMBEDDER.identity, least=ENOUGH))
    monkeypatch.setattr(upkeep, "start_child", children)
    monkeypatch.setattr(upkeep, "_REST_SECONDS", 0.0)
    made = upkeep.SegmentUpkeep.__init__
    monkeypatch.setattr(upkeep.SegmentUpkeep, "__init__", partialmethod(made, least=ENOUGH))
    return children


def opened(folder: AgentFolder, **more: Any) -> FileStorage:
    return FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"), **more)


async def looked_at(storage: FileStorage, times: int) -> None:
    """Let the storage look after its segments so often."""
    for _ in range(times):
        storage.opened.upkeep.look_after(is_changed=False)
        await storage.count()


async def test_a_child_that_could_do_nothing_is_not_started_again_for_the_same(
    folder: AgentFolder, children: Children
) -> None:
    children.work = bool
    storage = opened(folder)
    await storage.store_many([memory_of(f"tea {number}") for number in range(ENOUGH)])
    await looked_at(storage, 8)
    assert children.begun == 1

    children.work = lambda: seal_up(folder, MEMORY, None, least=ENOUGH)
    await storage.store_many([memory_of(f"coffee {number}") for number in range(ENOUGH)])
    await looked_at(storage, 8)
    assert children.begun == 2
    assert storage.opened.state.unsealed_count == 0
    await storage.close()
    assert children.begun == 2


async def test_what_is_left_is_sealed_when_a_session_ends(
    folder: AgentFolder, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_REST_SECONDS", 1_000.0)
    storage = opened(folder)
    await storage.store_many([memory_of(f"tea {number}") for number in range(ENOUGH)])
    assert children.begun == 1
    await storage.store_many([memory_of(f"coffee {number}") for number in range(ENOUGH)])
    await storage.close()

    assert children.begun == 2
    assert open_chain(folder.segments("memory"), "memory").last_seq == 2


async def test_a_session_that_leaves_little_starts_no_child_when_it_ends(
    folder: AgentFolder, children: Children
) -> None:
    storage = opened(folder)
    await storage.store(memory_of("tea"))
    await storage.close()

    assert children.begun == 0


@pytest.mark.parametrize("at_the_end", [False, True])
async def test_vectors_are_added_once_all_texts_are_embedded(
    folder: AgentFolder, children: Children, at_the_end: bool
) -> None:
    storage = opened(folder)
    await storage.store_many([memory_of(f"tea {number}") for number in range(ENOUGH)])
    await storage.close()
    assert children.begun == 1
    vectors = folder_name(str(EMBEDDER.identity))
    (segment,) = open_chain(folder.segments("memory"), "memory").segments
    assert not (segment.folder / vectors).is_dir()

    storage = opened(folder, embedder=EMBEDDER)
    assert await storage.prepare(None)
    await storage.store(memory_of("one more"))  # what follows a write embeds what is sealed
    assert await storage.prepare(None)
    if at_the_end:
        await storage.close()
    else:
        await looked_at(storage, 4)

    assert (segment.folder / vectors).is_dir()
    await storage.close()
    assert children.begun in {2, 3}, "one may have looked before they were asked for"


async def test_what_comes_while_a_child_works_is_sealed_before_it_ends(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    await storage.store(memory_of("tea"))
    await storage.store(memory_of("milk"))
    first, later = sealing.remove_unused, [memory_of("coffee")]
    seal_up(folder, MEMORY, None, least=1)
    await storage.store(memory_of("water"))

    def write_beside(place: Path, **options: bool) -> None:  # once two segments are merged
        if len(open_chain(place, "memory").segments) == 1 and later and len(open_chain(place, "memory")) == 3:
            record = later.pop()
            storage.opened.change(lambda state: to_store(state, record, record.timestamp, unique=False))
        first(place, **options)

    monkeypatch.setattr(sealing, "remove_unused", write_beside)
    assert seal_up(folder, MEMORY, None, least=1)

    assert later == []
    assert open_chain(folder.segments("memory"), "memory").last_seq == 4
    await storage.close()


async def test_sealing_begins_again_when_a_purge_removed_what_it_writes(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage("bob", folder.path.parent, settings=ServiceSettings(embedder="none"))
    await storage.store(memory_of("tea"))
    await storage.close()
    seal, removed = sealing.seal, []

    def seal_beside_a_purge(unfinished: Path, *given: Any, **more: Any) -> None:
        if not removed:
            removed.append(unfinished)
            shutil.rmtree(unfinished)
        seal(unfinished, *given, **more)

    monkeypatch.setattr(sealing, "seal", seal_beside_a_purge)

    assert seal_up(folder, MEMORY, None, least=1)
    assert len(open_chain(folder.segments("memory"), "memory")) == 1


async def test_a_session_goes_on_with_everything_while_a_compacted_journal_is_sealed_in_stretches(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(folder)
    for number in range(20):
        await storage.store(memory_of(f"tea {number}"))
    await storage.compact(timedelta(0))
    monkeypatch.setattr(sealing, "_BYTES_AT_ONCE", 1_000)
    monkeypatch.setattr(sealing, "_MOST_AT_ONCE", 8)
    before = [memory.content async for memory in storage.iter_all()]
    seen: list[int] = []

    def adopt(*_: object) -> bool:  # what another session may do between two stretches
        storage.opened.upkeep.opening().adopt(storage.opened)
        seen.append(len(storage.opened.state.records))
        return False

    monkeypatch.setattr(sealing, "_add_vectors", adopt)
    seal_up(folder, MEMORY, None, least=1)
    assert seen == [20] * len(seen)
    assert len(seen) > 2
    assert [memory.content async for memory in storage.iter_all()] == before
    await storage.close()


async def test_a_journal_that_is_put_back_while_it_is_sealed_leaves_nothing_of_what_came_later(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(folder)
    await storage.store(memory_of("tea"))
    backup = folder.journal.read_bytes()
    await storage.store(memory_of("coffee"))
    await storage.compact(timedelta(0))
    seal_up(folder, MEMORY, None, least=1)
    await storage.store(memory_of("cocoa"))
    await storage.close()
    drop_purged = sealing.drop_purged

    def put_back(place: Path, journal: Journal) -> bool:  # between the opening of the segments and the first read
        folder.journal.write_bytes(backup)
        return drop_purged(place, journal)

    monkeypatch.setattr(sealing, "drop_purged", put_back)
    seal_up(folder, MEMORY, None, least=1)

    after = opened(folder)
    assert [memory.content async for memory in after.iter_all()] == ["tea"]
    await after.close()


async def test_accesses_are_sealed_in_stretches_too(folder: AgentFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = opened(folder)
    memories = [memory_of(f"tea {number}") for number in range(20)]
    await storage.store_many(memories)
    seal_up(folder, MEMORY, None, least=1)
    for memory in memories:
        await storage.touch([memory.id])
    await storage.close()
    monkeypatch.setattr(sealing, "_BYTES_AT_ONCE", 1_000)
    monkeypatch.setattr(sealing, "_MOST_AT_ONCE", 8)
    held, really = [], sealing.seal

    def counting(unfinished: Path, rows: Sequence[Row], *others: Any, **more: Any) -> None:
        held.append(len(rows))
        really(unfinished, rows, *others, **more)

    monkeypatch.setattr(sealing, "seal", counting)
    seal_up(folder, MEMORY, None, least=1)
    assert sum(held) == 20
    assert len(held) > 1


async def test_a_note_about_a_sealed_record_changes_nothing(folder: AgentFolder) -> None:
    storage = opened(folder)
    await storage.store(memory := memory_of("tea in the morning"))
    seal_up(folder, MEMORY, None, least=1)
    await storage.close()
    with Journal(folder.journal, {"memory"}).locked() as writer:
        writer.append([Change("mark", "memory", memory.id, {"note": "seen"})])

    for _ in range(2):
        storage = opened(folder)
        assert [found.memory.content for found in await storage.search("tea")] == [memory.content]
        assert await storage.count() == 1
        await storage.close()


def test_child_without_owner_is_not_reported_as_running() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        upkeep.start_child([sys.executable, "-c", "import time; time.sleep(1)"])
        gc.collect()
    assert caught == []
