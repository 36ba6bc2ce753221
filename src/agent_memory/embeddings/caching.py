"""`CachingEmbedder`: the order cache, embedder, cache. Deals in texts and their hashes; has no queue and no thread."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agent_memory.embeddings.cache import rounded
from agent_memory.embeddings.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from agent_memory.embeddings.cache import VectorCache
    from agent_memory.embeddings.protocol import Embedder, Vector

_REMEMBERED_QUERIES: Final = 64
_UNSAVED_AT_MOST: Final = 10_000
"""Vectors that wait to be kept, about 15 MB; what is beyond is computed once more by the next process."""


class CachingEmbedder:
    """Embeds a text unless its vector is in the cache, and puts there what it embedded. Thread-safe.

    Args:
        embedder: Turns texts into vectors; loaded at the first text that is not in the cache.
        cache: Where vectors are kept; shared with other processes.

    Attributes:
        ready: Whether the model is loaded.
        query: Returns the vector of a query, remembered if it was embedded lately; raises what the embedder raises.
    """

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self.embedder, self.cache = embedder, cache
        self.is_remote = bool(getattr(embedder, "is_remote", False))
        self.ready = False
        self._lock = threading.Lock()
        self.query = lru_cache(maxsize=_REMEMBERED_QUERIES)(embedder.embed_query)
        self._unsaved: dict[bytes, Vector] = {}

    @property
    def has_unsaved(self) -> bool:
        """Whether vectors wait to be kept."""
        return bool(self._unsaved)

    def documents(self, texts: dict[bytes, str], *, load: bool, stops: Callable[[], bool]) -> dict[bytes, Vector]:
        """Return the vectors of texts by their hashes; raises what the embedder raises.

        Args:
            texts: By their hashes; none loads the model.
            load: Load the model even if the cache has all of them.
            stops: Asked between two pieces; the rest is then left out.
        """
        cached = self.known(texts)
        fresh = [key for key in texts if key not in cached]
        if not self.ready and (fresh or not texts or load):
            self.embedder.embed_query("ready")  # loads the model; an API answers or names its trouble
            self.ready = True
        vectors = dict(cached)
        for piece in self._pieces([texts[key] for key in fresh]):
            if stops():
                break
            keys = [fresh[index] for index in piece]
            exact = dict(zip(keys, self.embedder.embed_documents([texts[key] for key in keys]), strict=True))
            self.save(exact)
            vectors |= {key: rounded(row) for key, row in exact.items()}  # as the cache gives them back later
        return vectors

    def known(self, texts: Collection[bytes]) -> dict[bytes, Vector]:
        """Return cached vectors by text hash; raises what the embedder raises."""
        return self.cache.get_many(self.embedder.identity, texts)

    def save(self, vectors: dict[bytes, Vector]) -> None:
        """Keep vectors, with those that could not be kept before: a full disk may have room again."""
        with self._lock:
            vectors, self._unsaved = {**self._unsaved, **vectors}, {}
        if vectors and not self.cache.put_many(self.embedder.identity, vectors):
            with self._lock:
                room = max(0, _UNSAVED_AT_MOST - len(self._unsaved))
                self._unsaved |= dict(list(vectors.items())[:room])

    def _pieces(self, texts: list[str]) -> Iterable[list[int]]:
        """Return the positions of texts that are embedded between two questions whether to stop."""
        if self.is_remote:
            return [list(range(len(texts)))] if texts else []
        count_tokens = getattr(self.embedder, "count_tokens", None)
        return pieces(texts, count_tokens(texts) if count_tokens and texts else ())
