"""Building a shard: what it holds, what it refuses, and that nothing changes before it is whole."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.embeddings import VectorCache, text_hash
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines.index_builder import build
from agent_memory.engines.shard import Shard
from agent_memory.errors import BusyError, MigrationError, StorageError
from agent_memory.files.lock import index_lock
from agent_memory.files.processes import child_environment
from agent_memory.index import embedded_texts
from agent_memory.journal import Change, Journal
from agent_memory.models import MEMORY
from agent_memory.storage import AgentFolder, folder_of
from agent_memory.store.shards import Shards
from tests.support import memory_of

if TYPE_CHECKING:
    from agent_memory.models import Memory

EMBEDDER = HashEmbedder()


@pytest.fixture
def folder(root: Path) -> AgentFolder:
    return folder_of("bob", root)


def filled(folder: AgentFolder, memories: list[Memory]) -> list[Memory]:
    """Write memories and the vectors of all their pieces."""
    with Journal(folder.journal, {"memory"}).locked() as writer:
        writer.append([Change("put", "memory", memory.id, memory.to_record()) for memory in memories])
    texts = [text for memory in memories for text in embedded_texts(memory.content)]
    cache = VectorCache(folder.vectors)
    rows = EMBEDDER.embed_documents(texts)
    cache.put_many(EMBEDDER.identity, {text_hash(text): row for text, row in zip(texts, rows, strict=True)})
    cache.close()
    return memories


def built(folder: AgentFolder, *, activate: bool = True) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    build(folder, MEMORY, EMBEDDER.identity, activate=activate, report=lambda **fields: said.append(fields))
    return said


def folders(folder: AgentFolder) -> list[str]:
    return sorted(each.name for each in folder.index.iterdir() if each.is_dir())


def owners(folder: AgentFolder, name: str) -> list[str]:
    shard = Shard.open(Shards(folder).get_path(name))
    found = sorted(memory_id for _, memory_id in shard.owners())
    shard.close()
    return found


def test_a_build_holds_every_piece_of_every_memory_and_is_in_use(folder: AgentFolder) -> None:
    memories = filled(folder, [memory_of("tea"), memory_of("A long story. " * 60), memory_of("tea")])
    said = built(folder)
    backend, shard = Shards(folder).active()
    assert (backend, said[-1]["shard"]) == ("vector", shard)
    assert shard is not None
    expected = [memory.id for memory in memories for _ in dict.fromkeys(embedded_texts(memory.content))]
    assert owners(folder, shard) == sorted(expected)
    assert [each["stage"] for each in said if each["stage"] != "load"] == ["index", "check", "switch", "done"]
    state = Shards(folder).state(shard)
    assert (state.seq, state.embedder) == (1, str(EMBEDDER.identity))


def test_a_memory_without_a_vector_is_left_for_who_opens_the_index(folder: AgentFolder) -> None:
    (known,) = filled(folder, [memory_of("tea")])
    with Journal(folder.journal, {"memory"}).locked() as writer:
        new = memory_of("coffee")
        writer.append([Change("put", "memory", new.id, new.to_record())])
    assert owners(folder, built(folder)[-1]["shard"]) == [known.id]


def test_no_memories_make_an_empty_index(folder: AgentFolder) -> None:
    folder.path.mkdir(parents=True)
    assert owners(folder, built(folder)[-1]["shard"]) == []


def test_a_new_shard_takes_the_place_of_the_old_one(folder: AgentFolder) -> None:
    filled(folder, [memory_of("tea")])
    first, second = built(folder)[-1]["shard"], built(folder)[-1]["shard"]
    assert first != second
    assert folders(folder) == [second]


def test_a_rebuild_does_not_undo_a_rollback(folder: AgentFolder) -> None:
    filled(folder, [memory_of("tea")])
    Shards(folder).switch("file", None)
    built(folder, activate=False)
    assert Shards(folder).active() == ("file", None)
    assert folders(folder) == []


def test_two_builds_at_once_are_one_too_many(folder: AgentFolder) -> None:
    filled(folder, [memory_of("tea")])
    with Shards(folder).building(), pytest.raises(BusyError):
        built(folder)


def test_leftovers_of_a_killed_build_are_swept(folder: AgentFolder) -> None:
    filled(folder, [memory_of("tea")])
    (folder.index / ".new-abc" / "shard").mkdir(parents=True)
    (folder.index / "abcdef012345").mkdir()
    shard = built(folder)[-1]["shard"]
    assert folders(folder) == [shard]
    assert not list(folder.index.glob(".new-*"))


def test_a_killed_build_is_swept_also_before_any_build_was_switched_to(root: Path) -> None:
    folder = folder_of("bob", root)
    for name in (".new-abc", "abcdef012345"):
        (folder.index / name).mkdir(parents=True)
    shards = Shards(folder)
    with shards.building() as (_, unfinished):
        assert list(folder.index.glob(".new-*")) == [unfinished]
    assert (folder.index / "abcdef012345").is_dir()  # which shard is in use is not known


@pytest.mark.parametrize("flaw", ["count", "search", "graph"])
def test_an_index_that_fails_the_check_changes_nothing(
    folder: AgentFolder, monkeypatch: pytest.MonkeyPatch, flaw: str
) -> None:
    filled(folder, [memory_of(f"tea number {n}") for n in range(30)])
    before = built(folder)[-1]["shard"]
    real = Shard.nearest
    if flaw == "count":
        monkeypatch.setattr(Shard, "count", lambda _self: 29)
    elif flaw == "search":
        monkeypatch.setattr(Shard, "nearest", lambda *_args, **_options: [])
    else:
        monkeypatch.setattr(
            Shard,
            "nearest",
            lambda self, vector, limit, *, exact=False: real(self, vector, limit if exact else 1, exact=exact),
        )
    with pytest.raises(MigrationError):
        built(folder)
    assert Shards(folder).active() == ("vector", before)
    assert folders(folder) == [before]


def test_trouble_with_the_engine_changes_nothing(folder: AgentFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(folder, [memory_of("tea")])

    def full(*_args: object) -> None:
        raise StorageError("No space left on device.", code="engine")

    monkeypatch.setattr(Shard, "upsert", full)
    with pytest.raises(StorageError):
        built(folder)
    assert Shards(folder).active() == ("file", None)
    assert folders(folder) == []


# -- the switch -------------------------------------------------------------------------------------------------------


def test_the_switch_keeps_what_others_wrote_into_it(folder: AgentFolder) -> None:
    folder.path.mkdir(parents=True)
    folder.metadata.write_text('{"schema": 1, "note": "of a later version"}')
    Shards(folder).switch("vector", "0123456789ab", "test:hash:64")
    assert '"note": "of a later version"' in folder.metadata.read_text()
    assert Shards(folder).active() == ("vector", "0123456789ab")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"backend": "vector", "generation": "../../etc"}',
        '{"backend": "vector", "generation": 5}',
        "\x00",
    ],
)
def test_a_switch_that_cannot_be_read_names_no_shard(folder: AgentFolder, content: str) -> None:
    folder.path.mkdir(parents=True)
    folder.metadata.write_text(content)
    assert Shards(folder).active()[1] is None


def test_a_shard_that_a_process_holds_is_not_swept(folder: AgentFolder) -> None:
    filled(folder, [memory_of("tea")])
    first = built(folder)[-1]["shard"]
    shards = Shards(folder)
    with index_lock(folder.index / first / "holder.lock", "hold"):
        built(folder)
        assert first in folders(folder)
    shards.sweep()
    assert first not in folders(folder)


@pytest.mark.parametrize("name", ["elsewhere", "0123456789ab"])
def test_what_lies_behind_a_link_in_place_of_the_indexes_is_not_swept(root: Path, tmp_path: Path, name: str) -> None:
    folder = folder_of("bob", root)
    shards = Shards(folder)
    shards.switch("file", None)
    precious = tmp_path / "precious"
    (precious / name).mkdir(parents=True)
    folder.path.joinpath("memories.db").symlink_to(precious)
    shards.sweep()
    assert (precious / name).is_dir()


def test_only_what_is_named_like_a_shard_is_swept_and_a_pipe_is_not_opened(root: Path) -> None:
    folder = folder_of("bob", root)
    shards = Shards(folder)
    shards.switch("file", None)
    indexes = folder.path / "memories.db"
    for name in ("notes", "0123456789ab", ".new-0123456789ab"):
        (indexes / name).mkdir(parents=True)
    os.mkfifo(indexes / ".new-pipe")
    shards.sweep()
    assert sorted(each.name for each in indexes.iterdir() if each.is_dir() or each.is_fifo()) == ["notes"]


_PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline(), flush=True)
sys.stdin.read()
"""
_SILENT_CHILD = """
import os, time
from agent_memory.engines.index_builder import _end_with_parent
_end_with_parent()
print(os.getpid(), flush=True)
time.sleep(300)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere its next report fails")
def test_a_builder_that_says_nothing_ends_with_whom_it_builds_for() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, _SILENT_CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    with parent:
        child = Path(f"/proc/{int(parent.stdout.readline())}/stat")
        assert child.exists()
        parent.kill()
    deadline = time.monotonic() + 30
    while child.exists() and child.read_text().split()[2] != "Z":  # its new parent may not have looked yet
        assert time.monotonic() < deadline, "it goes on though its parent has ended"
        time.sleep(0.01)
