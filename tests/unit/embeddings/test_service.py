"""What is told of search by meaning before anything has asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory import FileStorage, MemoryService
from agent_memory.embeddings import EmbeddingService, LocalEmbedder, OpenAIEmbedder
from agent_memory.index import DenseIndex
from agent_memory.settings import ServiceSettings
from tests.support import memory_of

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.embeddings import Embedder


def _service(tmp_path: Path, embedder: Embedder) -> EmbeddingService[DenseIndex]:
    return EmbeddingService(ServiceSettings(), tmp_path / "v.sqlite3", DenseIndex, embedder)


def unusable(folder: Path) -> LocalEmbedder:
    """Return an embedder whose files are there and fail when they are loaded."""
    for name in ("model.onnx", "tokenizer.json"):
        (folder / name).touch()
    return LocalEmbedder(folder)


def test_a_model_that_nobody_asked_for_is_found_and_not_loaded(tmp_path: Path) -> None:
    assert _service(tmp_path, unusable(tmp_path)).describe() == {"status": "found"}


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_file_that_is_not_there_is_told_without_loading(tmp_path: Path, missing: str) -> None:
    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        (tmp_path / name).touch()
    state = _service(tmp_path, LocalEmbedder(tmp_path)).describe()
    assert state["status"] == "failing"
    assert missing in state["problem"]


def test_an_api_without_a_key_is_told_without_connecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "no API key" in _service(tmp_path, OpenAIEmbedder()).describe()["problem"]
    monkeypatch.setenv("OPENAI_API_KEY", "not a real one")
    assert _service(tmp_path, OpenAIEmbedder()).describe() == {"status": "found"}


async def test_looking_at_the_state_of_a_memory_loads_no_model(root: Path, tmp_path: Path) -> None:
    storage = FileStorage("bob", root)
    await storage.store_many([memory_of("Use PostgreSQL for the ledger")])
    await storage.close()
    embedder = unusable(tmp_path)
    service = MemoryService(FileStorage("bob", root, embedder=embedder))
    assert (await service.status()).embedder == {"kind": "local", "status": "found"}
    await service.close()
