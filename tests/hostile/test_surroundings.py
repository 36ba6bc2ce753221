"""Homes, locales and limits of a process that are not what one expects."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest

from agent_memory.embeddings import worker
from agent_memory.embeddings.schedule import EmbeddingSchedule
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import AgentMemoryError, refused_by_system
from agent_memory.memories import MigratableStorage
from agent_memory.storage import FileStorage, detect_storage
from agent_memory.tools import StatusTool
from tests.concurrency.processes import environment
from tests.hostile.trouble import OFFLINE, inside, need_root, refusal
from tests.rows import check_rows
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock

ADVICE = "Set storage_root to a folder by its whole path, or HOME to your home."


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_home_that_is_none_is_an_error_and_no_folder_somewhere(tmp_path: Path, home: str) -> None:
    found = inside("a_home", "", HOME=home)
    assert found["error"]["code"] == "storage_root"
    assert found["error"]["recovery"] == ADVICE


def test_a_user_without_a_home_is_told_so() -> None:
    need_root()
    found = inside("a_home_without_a_user", "")
    assert found["error"]["code"] == "storage_root"


@check_rows("root", ["~nobody-of-that-name/memory", "a\0b", "\ud800"])
def test_a_root_that_is_no_path_is_refused(root: str) -> None:
    with raises(AgentMemoryError, "storage_root"):
        detect_storage("bob", root, settings=OFFLINE)


async def test_a_relative_root_and_a_home_are_whole_paths_from_then_on(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    relative, at_home = (FileStorage("bob", root, settings=OFFLINE) for root in ("here", "~/there"))
    monkeypatch.chdir("/")
    for storage in (relative, at_home):
        await storage.store(memory_of("tea"))
        await storage.close()
    assert (tmp_path / "here" / "bob" / "memories.yaml").is_file()
    assert (home / "there" / "bob" / "memories.yaml").is_file()


def test_a_locale_without_letters_stores_and_shows_them(tmp_path: Path) -> None:
    how = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = inside("a_home", tmp_path / "memory", LC_ALL="C", **how)
    assert found["stored"].startswith("mem-")
    command = [sys.executable, "-m", "agent_memory.cli", "list", "--root", found["at"].removesuffix("/bob")]
    shown = subprocess.run(
        command, env={**environment(), "LC_ALL": "C", **how}, capture_output=True, check=True, timeout=60
    )
    assert b"peppermint" in shown.stdout
    assert shown.stderr == b""


def test_without_file_descriptors_an_error_says_so_and_memory_goes_on_when_there_are_some(tmp_path: Path) -> None:
    found = inside("no_descriptors", tmp_path / "memory")
    assert found["store"]["code"] in {"too_many_files", "system"}
    assert "Too many open files" in found["store"]["message"]
    assert found["after"] == "done"
    assert found["reopened"] == ["peppermint tea"]


def test_a_build_without_memory_fails_clearly_and_the_files_answer(tmp_path: Path) -> None:
    found = inside("no_memory_for_a_build", tmp_path / "memory")
    assert found["migrate"]["code"] == "migration"
    assert (found["backend"], found["mode"], found["hits"]) == ("file", "hybrid", 1)


async def test_an_embedder_that_breaks_in_any_way_costs_vectors_and_keeps_nobody_waiting(
    root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(HashEmbedder):
        def embed_documents(self, texts: list[str]) -> Any:
            raise ZeroDivisionError("inside a foreign model")

    storage = MigratableStorage("bob", root, embedder=Broken(), clock=clock)
    await storage.store(memory_of("peppermint tea"))
    assert not await storage.prepare(None)
    assert [hit.memory.content for hit in await storage.search("peppermint")] == ["peppermint tea"]
    assert "ZeroDivisionError" in storage.embedding_status()["problem"]
    assert (await refusal(storage.migrate()))["code"] == "migration"
    await storage.close()


async def test_without_a_thread_for_embedding_words_find(
    root: Path, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name == "agent-memory-embedding":
            raise RuntimeError("can't start new thread")
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    monkeypatch.setattr(worker, "SCHEDULE", EmbeddingSchedule())  # no other storage has left a thread in it
    storage = MigratableStorage("bob", root, embedder=HashEmbedder(), clock=clock)
    await storage.store(memory_of("peppermint tea"))
    assert not await storage.prepare(None)
    assert [hit.memory.content for hit in await storage.search("peppermint")] == ["peppermint tea"]
    assert "start new thread" in storage.embedding_status()["problem"]
    await storage.close()


@pytest.mark.parametrize(
    "error", [OSError(24, "Too many open files"), MemoryError(), RuntimeError("can't start new thread")]
)
async def test_what_the_system_refuses_is_a_tools_answer(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(_tool: StatusTool, _args: Any) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(StatusTool, "_run", refuse)
    answer = await StatusTool(cast("Any", None)).answer({})
    assert answer.error is not None
    assert answer.error["code"] == "system"
    assert "What was stored before is safe." in answer.error["message"]


def test_an_error_that_is_ours_to_mend_is_not_blamed_on_the_system() -> None:
    assert refused_by_system(RuntimeError("a defect")) is None
    assert refused_by_system(BrokenPipeError()) is None
    assert refused_by_system(KeyError("x")) is None
