"""Segments are used where the journal goes on from their end, and are never believed where it does not."""

from __future__ import annotations

import shutil
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import StorageError
from agent_memory.models import MEMORY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.segment_builder import seal_up
from tests.support import memory_of, read_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

OFFLINE = ServiceSettings(embedder="none")


def opened(folder: AgentFolder) -> FileStorage:
    return FileStorage("bob", folder.path.parent, settings=OFFLINE)


async def texts(folder: AgentFolder) -> tuple[list[str], bool]:
    """Return what is stored, in order, and whether any of it came from segments."""
    storage = opened(folder)
    found = sorted([memory.content async for memory in storage.iter_all()])
    sealed = storage.opened.state.sealed
    was_used = sealed is not None and len(sealed) > 0
    await storage.close()
    return found, was_used


@pytest.fixture
async def folder(tmp_path: Path) -> AgentFolder:
    """Return a folder with two sealed memories, one of which was forgotten, and one that is not sealed."""
    folder = folder_of("bob", tmp_path)
    storage = opened(folder)
    await storage.store(memory_of("sealed"))
    gone = memory_of("forgotten")
    await storage.store(gone)
    await storage.delete(gone.id)
    seal_up(folder, MEMORY, None, least=1)
    await storage.store(memory_of("not sealed"))
    await storage.close()
    return folder


async def test_what_is_sealed_is_not_read_from_the_journal(folder: AgentFolder) -> None:
    assert await texts(folder) == (["not sealed", "sealed"], True)


def segment_of(folder: AgentFolder) -> Path:
    (found,) = [path for path in folder.segments("memory").iterdir() if path.is_dir()]
    return found


DAMAGES: dict[str, Callable[[Path], object]] = {
    "an array cut": lambda segment: (segment / "seq.npy").write_bytes((segment / "seq.npy").read_bytes()[:-3]),
    "an array of nothing": lambda segment: (segment / "data.npy").write_bytes(b""),
    "an array gone": lambda segment: (segment / "hides.npy").unlink(),
    "no word about it": lambda segment: (segment / "segment.json").unlink(),
    "another version": lambda segment: (segment / "segment.json").write_text('{"version": 77}'),
    "all of it gone": shutil.rmtree,
    "a list of nonsense": lambda segment: (segment.parent / "segments.json").write_text('{"segments": 7, "notes": []}'),
    "a list cut": lambda segment: (segment.parent / "segments.json").write_text('{"segm'),
    "a place of nonsense": lambda segment: (segment.parent / "segments.json").write_text(
        f'{{"segments": ["{segment.name}"], "notes": {{"place": {{"header": 3}}}}}}'
    ),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
async def test_damaged_segments_are_left_aside_and_made_anew(
    folder: AgentFolder, damage: Callable[[Path], object]
) -> None:
    damage(segment_of(folder))

    assert await texts(folder) == (["not sealed", "sealed"], False)

    seal_up(folder, MEMORY, None, least=1)
    assert await texts(folder) == (["not sealed", "sealed"], True)


async def test_a_journal_put_back_from_before_the_segments_is_read_as_a_whole(folder: AgentFolder) -> None:
    lines = folder.journal.read_bytes().splitlines(keepends=True)
    folder.journal.write_bytes(b"".join(lines[:2]))

    assert await texts(folder) == (["sealed"], False)


async def test_a_journal_that_went_on_otherwise_is_read_as_a_whole(folder: AgentFolder) -> None:
    lines = folder.journal.read_bytes().splitlines(keepends=True)
    folder.journal.write_bytes(b"".join(lines[:2]))
    storage = opened(folder)
    for text in ("one", "two", "three", "four"):
        await storage.store(memory_of(text))
    await storage.close()

    assert await texts(folder) == (["four", "one", "sealed", "three", "two"], False)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_journal_that_went_on_otherwise_and_was_compacted_is_read_as_a_whole(
    folder: AgentFolder, tmp_path: Path, elsewhere: bool
) -> None:
    backup = folder_of("bob", tmp_path / "backup")
    shutil.copytree(folder.path, backup.path)
    storage = opened(folder)
    await storage.store_many([memory_of(f"lost {number}") for number in range(3)])
    await storage.store(memory_of("lost 3"))
    await storage.close()
    seal_up(folder, MEMORY, None, least=1)
    if not elsewhere:
        shutil.copyfile(backup.journal, folder.journal)
    storage = opened(backup if elsewhere else folder)
    for number in range(6):
        await storage.store(memory_of(f"other {number}"))
    await storage.compact()
    await storage.close()
    if elsewhere:
        shutil.copyfile(backup.journal, folder.journal)

    assert await texts(folder) == (["not sealed", *(f"other {number}" for number in range(6)), "sealed"], False)


@pytest.mark.parametrize("grace", [None, timedelta(0)])
async def test_a_compaction_leaves_segments_valid_whatever_it_folds(tmp_path: Path, grace: timedelta | None) -> None:
    folder = folder_of("bob", tmp_path)
    storage = opened(folder)
    last = memory_of("changed")
    await storage.store_many([memory_of("first"), last])
    await storage.update(last.id, {"tags": ["new"]})
    await storage.touch([last.id])
    await storage.touch([last.id])
    seal_up(folder, MEMORY, None, least=1)
    await storage.touch([last.id])
    await storage.compact(grace)
    await storage.close()

    assert await texts(folder) == (["changed", "first"], True)


async def test_a_compaction_leaves_segments_valid(folder: AgentFolder) -> None:
    storage = opened(folder)
    await storage.compact()
    await storage.close()

    assert await texts(folder) == (["not sealed", "sealed"], True)


async def test_what_was_sealed_is_kept_aside_when_another_program_removes_it(folder: AgentFolder) -> None:
    storage = opened(folder)
    assert await storage.count() == 2
    lines = [line for line in folder.journal.read_text().splitlines(keepends=True) if '"sealed"' not in line]
    folder.journal.write_text("".join(lines))
    assert [memory.content for memory in await storage.list_recent()] == ["not sealed"]
    await storage.close()
    (lost,) = folder.path.glob("memories.lost-*.yaml")
    assert '"sealed"' in lost.read_text()


async def test_a_compaction_adds_no_accesses_that_are_sealed_to_those_that_are_not(folder: AgentFolder) -> None:
    storage = opened(folder)
    (memory,) = [memory async for memory in storage.iter_all() if memory.content == "sealed"]
    await storage.touch([memory.id])
    seal_up(folder, MEMORY, None, least=1)
    await storage.touch([memory.id])
    await storage.compact()
    await storage.close()

    again = opened(folder)
    found = await again.get(memory.id)
    assert found is not None
    assert found.access_count == 2
    assert again.opened.state.sealed is not None
    await again.close()


async def test_a_purge_of_what_segments_do_not_know_of_has_the_journal_read(folder: AgentFolder) -> None:
    storage = opened(folder)
    sealed = next(iter([memory async for memory in storage.iter_all() if memory.content == "sealed"]))
    await storage.delete(sealed.id)
    await storage.compact(timedelta(0))
    await storage.close()

    assert await texts(folder) == (["not sealed"], False)


async def test_a_purge_removes_segments_with_texts_that_were_forgotten(folder: AgentFolder) -> None:
    assert any(b"forgotten" in path.read_bytes() for path in segment_of(folder).glob("terms*")) is False
    storage = opened(folder)
    sealed = next(iter([memory async for memory in storage.iter_all() if memory.content == "sealed"]))
    await storage.delete(sealed.id)
    await storage.compact(timedelta(0))

    left = [path for path in folder.segments("memory").rglob("*.npy") if b"seal" in path.read_bytes()]

    assert left == []
    await storage.close()


async def test_a_purge_removes_segments_with_texts_that_were_replaced(tmp_path: Path) -> None:
    folder = folder_of("bob", tmp_path)
    storage = opened(folder)
    memory = memory_of("as it was")
    await storage.store(memory)
    seal_up(folder, MEMORY, None, least=1)
    await storage.update(memory.id, {"content": "reworded"})
    await storage.store(memory_of("later"))
    await storage.compact()
    assert [path for path in folder.path.rglob("*.npy") if b"as it was" in path.read_bytes()], "it can be brought back"

    await storage.compact(timedelta(0))
    await storage.close()

    assert not [path for path, content in read_files(folder.path) if b"as it was" in content]
    assert (await texts(folder))[0] == ["later", "reworded"]


async def test_missing_journal_is_an_error_whatever_is_sealed(folder: AgentFolder) -> None:
    folder.journal.unlink()

    with pytest.raises(StorageError, match="is missing"):
        await texts(folder)


async def test_sealing_leaves_nothing_of_a_killed_attempt(folder: AgentFolder) -> None:
    left = folder.segments("memory") / ".0123456789ab"
    left.mkdir()
    (left / "seq.npy").write_bytes(b"half")

    seal_up(folder, MEMORY, None, least=1)

    assert not left.exists()


async def test_many_are_stored_at_once_without_loading_what_is_sealed(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(folder)
    assert await storage.count() == 2
    loaded: list[str] = []
    load = type(storage.kind).load
    monkeypatch.setattr(
        type(storage.kind), "load", lambda kind, agent, one, data: loaded.append(one) or load(kind, agent, one, data)
    )
    new = [memory_of("one of many"), memory_of("another of many")]
    await storage.store_many([*new, new[0]])
    await storage.close()
    assert loaded == []
    assert (await texts(folder))[0] == ["another of many", "not sealed", "one of many", "sealed"]
