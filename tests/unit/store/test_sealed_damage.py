"""What is damaged, foreign, or left over among segments is never believed, and does not stay."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import time
from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import StorageError
from agent_memory.files.atomic import replace_file
from agent_memory.files.names import SEGMENTS
from agent_memory.index import segment
from agent_memory.index.columns import finish_columns
from agent_memory.index.segment import Chain, list_segments, open_chain
from agent_memory.models import MEMORY
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage, folder_of
from agent_memory.store.memory_storage import SegmentUpkeep
from agent_memory.store.segment_builder import seal_up
from agent_memory.store.segment_opener import remove_unused
from tests.support import memory_of, raises, read_files

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder

EMBEDDER = HashEmbedder()
TEXTS = [f"tea number{number}" for number in range(4)]


def opened(folder: AgentFolder) -> FileStorage:
    return FileStorage(folder.agent_id, folder.path.parent, settings=ServiceSettings(embedder="none"))


async def stored(folder: AgentFolder, *texts: str) -> None:
    storage = opened(folder)
    await storage.store_many([memory_of(text, agent_id=folder.agent_id) for text in texts])
    await storage.close()
    with closing(VectorCache(folder.vectors)) as cache:
        vectors = EMBEDDER.embed_documents(list(texts))
        assert cache.put_many(EMBEDDER.identity, dict(zip(map(text_hash, texts), vectors, strict=True)))


def seal(folder: AgentFolder) -> None:
    seal_up(folder, MEMORY, EMBEDDER.identity, least=1)


async def texts(folder: AgentFolder) -> tuple[list[str], bool]:
    """Return what is stored, in order, and whether any of it came from segments."""
    storage = opened(folder)
    found = sorted([memory.content async for memory in storage.iter_all()])
    assert sorted([each.memory.content for each in await storage.search("tea", 50)]) == found
    sealed = storage.opened.state.sealed
    await storage.close()
    return found, sealed is not None and len(sealed) > 0


@pytest.fixture
async def folder(tmp_path: Path) -> AgentFolder:
    """Return a folder with four sealed memories, which have vectors."""
    folder = folder_of("bob", tmp_path)
    await stored(folder, *TEXTS)
    seal(folder)
    assert await texts(folder) == (TEXTS, True)
    return folder


async def test_a_bit_that_has_flipped_anywhere_has_the_journal_read(folder: AgentFolder) -> None:
    choose = random.Random(7)
    (segment,) = [path for path in folder.segments("memory").iterdir() if path.is_dir()]
    files = [path for path in sorted(segment.iterdir()) if path.is_file()]
    assert len(files) > 30
    for path in files:
        content = path.read_bytes()
        damaged = bytearray(content)
        damaged[choose.randrange(len(content))] ^= 1 << choose.randrange(7)
        path.write_bytes(damaged)
        assert await texts(folder) == (TEXTS, False), path.name
        path.write_bytes(content)
    assert await texts(folder) == (TEXTS, True)


async def test_what_is_damaged_is_not_merged_into_a_new_segment(folder: AgentFolder) -> None:
    long = [f"tea {number} {'so on ' * 1_600}" for number in range(120)]
    await stored(folder, *long)
    seal_up(folder, MEMORY, None, least=1)
    place = folder.segments("memory")
    (large,) = [path for path in place.iterdir() if path.is_dir()]
    assert (large / "data.npy").stat().st_size > 1 << 20, "a small one is read as a whole when it is opened"
    data = large / "data.npy"
    data.write_bytes(data.read_bytes().replace(b"tea 7 ", b"tee 7 "))
    await stored(folder, *(f"tea {number} {'and on ' * 1_400}" for number in range(200, 260)))

    seal_up(folder, MEMORY, None, least=1)
    seal_up(folder, MEMORY, None, least=1)

    assert b"tee 7 " not in b"".join(path.read_bytes() for path in place.glob("0*/data.npy"))
    storage = opened(folder)
    assert {memory.content for memory in [each async for each in storage.iter_all()]} >= {*TEXTS, *long}
    assert storage.opened.state.sealed is not None
    await storage.close()


@pytest.mark.parametrize("link", [False, True])
async def test_the_segments_of_another_agent_are_not_used(folder: AgentFolder, tmp_path: Path, link: bool) -> None:
    (other,) = [path for path in folder.segments("memory").iterdir() if path.is_dir()]
    copy = folder_of("alice", tmp_path)
    shutil.copytree(folder.path, copy.path)
    listed = copy.segments("memory") / "segments.json"
    shutil.rmtree(copy.segments("memory") / other.name)
    if link:
        (copy.segments("memory") / other.name).symlink_to(other)
    else:
        said = json.loads(listed.read_bytes())
        listed.write_text(json.dumps({**said, "segments": [f"../../../bob/derived/memory/{other.name}"]}))

    assert await texts(copy) == (TEXTS, False)
    seal(copy)

    assert other.is_dir()
    assert await texts(folder) == (TEXTS, True)


@pytest.mark.parametrize("linked", ["derived", "derived/memory"])
async def test_what_a_link_in_place_of_segments_leads_to_is_left_alone(
    folder: AgentFolder, tmp_path: Path, linked: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    for name in ("memory", "000000000004-0badc0de", ".0123456789ab", "holiday"):
        (elsewhere / name).mkdir(parents=True)
        (elsewhere / name / "photo").touch()
    shutil.rmtree(folder.path / linked)
    (folder.path / linked).symlink_to(elsewhere)

    seal(folder)
    storage = opened(folder)
    await storage.compact(timedelta(0))
    await storage.close()

    assert await texts(folder) == (TEXTS, False)
    assert sorted(path.relative_to(elsewhere).as_posix() for path in elsewhere.rglob("*")) == [
        ".0123456789ab", ".0123456789ab/photo", "000000000004-0badc0de", "000000000004-0badc0de/photo",
        "holiday", "holiday/photo", "memory", "memory/photo",
    ]  # fmt: skip


async def test_segments_that_are_merged_while_they_are_opened_are_opened_again(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(folder, "tea number4")
    before: list[Path] = []

    def merged_meanwhile(place: Path, kind: str) -> Chain:
        if not before:
            before.append(place)
            seal(folder)
            raise StorageError("They were there a moment ago.")
        return open_chain(place, kind)

    with monkeypatch.context() as patched:
        patched.setattr("agent_memory.store.segment_opener.open_chain", merged_meanwhile)
        assert await texts(folder) == ([*TEXTS, "tea number4"], True)
    assert before


async def test_the_next_sealing_removes_what_a_killed_one_left(folder: AgentFolder) -> None:
    place = folder.segments("memory")
    (segment,) = [path for path in place.iterdir() if path.is_dir()]
    (place / ".segments.json.0badc0de.tmp").touch()
    os.utime(place / ".segments.json.0badc0de.tmp", (time.time() - 10,) * 2)
    for left in (place / ".0123456789ab", place / "000000000009-0badc0de", segment / ".vectors-0123456789ab"):
        left.mkdir()
        (left / "halves.npy").touch()

    seal(folder)

    assert sorted(path.name for path in place.iterdir()) == sorted([".lock", "segments.json", segment.name])
    assert [path for path in segment.iterdir() if path.name.startswith(".")] == []


async def test_texts_that_were_purged_go_from_segments_at_the_next_start_if_the_compaction_was_killed(
    folder: AgentFolder, tmp_path: Path
) -> None:
    before = tmp_path / "before"
    shutil.copytree(folder.path / "derived", before)
    storage = opened(folder)
    gone = next(iter([memory async for memory in storage.iter_all() if memory.content == TEXTS[2]]))
    await storage.delete(gone.id)
    await storage.compact(timedelta(0))
    await storage.close()
    shutil.rmtree(folder.path / "derived")
    shutil.copytree(before, folder.path / "derived")  # killed before it came to them

    assert await texts(folder) == ([TEXTS[0], TEXTS[1], TEXTS[3]], False)

    assert not [path for path, content in read_files(folder.path) if b"number2" in content]


async def test_texts_that_are_purged_while_others_are_sealed_do_not_stay(
    folder: AgentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(folder, "tea number4")
    copy = folder_of("bob", tmp_path / "copy")
    shutil.copytree(folder.path, copy.path)
    storage = opened(copy)
    gone = next(iter([memory async for memory in storage.iter_all() if memory.content == TEXTS[2]]))
    await storage.delete(gone.id)
    await storage.compact(timedelta(0))
    await storage.close()
    real = list_segments

    def purged_meanwhile(*arguments: object) -> None:
        shutil.copyfile(copy.journal, folder.journal)
        real(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr("agent_memory.store.segment_builder.list_segments", purged_meanwhile)
        seal(folder)

    assert not [path for path in folder.path.rglob("*.npy") if b"number2" in path.read_bytes()]


async def test_texts_are_purged_from_segments_where_there_is_no_room_to_write(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = opened(folder)
    gone = next(iter([memory async for memory in storage.iter_all() if memory.content == TEXTS[2]]))
    await storage.delete(gone.id)

    def full(path: Path, content: bytes, **options: Any) -> None:
        if path.name == SEGMENTS:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace_file(path, content, **options)

    monkeypatch.setattr(segment, "replace_file", full)
    await storage.compact(timedelta(0))
    await storage.close()

    assert not [path for path, content in read_files(folder.path) if b"number2" in content]
    with raises(StorageError, "disk_full"):
        seal(folder)
    assert not list(folder.segments("memory").rglob("*.npy")), "what could not be taken into use keeps no room"
    assert await texts(folder) == ([TEXTS[0], TEXTS[1], TEXTS[3]], False)


async def test_a_sealed_record_that_was_purged_leaves_no_vector_behind(folder: AgentFolder) -> None:
    for vectors in folder.segments("memory").glob("0*/vectors-*"):
        shutil.rmtree(vectors)  # not made yet: a session embeds what is sealed without
    settings = ServiceSettings(embedder="none")
    storage = FileStorage("bob", folder.path.parent, settings=settings, embedder=EMBEDDER)
    assert await storage.prepare(None)
    await storage.store(memory_of("tea number4"))  # what follows a write embeds what is sealed
    assert await storage.prepare(None)
    vectors = storage.opened.index.vectors
    assert vectors is not None
    assert len(vectors.texts) == 5
    other = opened(folder)
    gone = next(iter([memory async for memory in other.iter_all() if memory.content == TEXTS[2]]))
    await other.delete(gone.id)
    await other.compact(timedelta(0))
    await other.close()

    found = await storage.search(TEXTS[2], 50)

    assert sorted([each.memory.content for each in found]) == [TEXTS[0], TEXTS[1], TEXTS[3], "tea number4"]
    assert gone.id not in vectors.texts
    await storage.close()


async def test_segments_that_a_session_does_not_take_into_use_tell_nothing_of_its_vectors(folder: AgentFolder) -> None:
    settings = ServiceSettings(embedder="none")
    storage = FileStorage("bob", folder.path.parent, settings=settings, embedder=EMBEDDER)
    await storage.count()
    replica, upkeep = storage.opened, storage.opened.upkeep
    vectors = replica.index.vectors
    assert vectors is not None
    before = vectors.elsewhere
    await stored(folder, "of another session")
    seal(folder)

    assert isinstance(upkeep, SegmentUpkeep)
    assert not await storage.worker.run(upkeep.opening().adopt, replica)  # it has not read as far

    assert vectors.elsewhere is before
    await storage.close()


async def test_a_segment_that_lost_an_array_while_it_was_written_is_not_used(folder: AgentFolder) -> None:
    segment = next(folder.segments("memory").glob("0*"))
    (segment / "expires.npy").unlink()
    finish_columns(segment)  # as its writer does, which does not know that another process removed some

    found, was_sealed = await texts(folder)

    assert (found, was_sealed) == (sorted(TEXTS), False)


def test_who_removes_what_is_not_listed_leaves_what_is_being_written(folder: AgentFolder) -> None:
    place = folder.segments("memory")
    unfinished = place / ".0123456789ab"
    unfinished.mkdir()
    remove_unused(place)
    assert unfinished.is_dir()
    remove_unused(place, unfinished=True)
    assert not unfinished.exists()
