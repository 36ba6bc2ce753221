"""Embedders behind one protocol, and a cache of vectors.

Importing this loads no model and no numpy.
"""

from agent_memory.embeddings.cache import VectorCache, text_hash
from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.embeddings.openai_api import OpenAIEmbedder
from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity, Provider
from agent_memory.embeddings.registry import (
    PROVIDERS,
    EmbeddingGenerator,
    estimate_embedding,
    get_provider,
    make_embedder,
    reason_without,
)
from agent_memory.embeddings.service import WORTH_WAITING, EmbeddingService, warm_up, without_embedder
from agent_memory.embeddings.worker import EmbeddingWorker, WorkerLimits, WorkerStatus

__all__ = [
    "PROVIDERS",
    "WORTH_WAITING",
    "Embedder",
    "EmbedderIdentity",
    "EmbeddingGenerator",
    "EmbeddingService",
    "EmbeddingWorker",
    "LocalEmbedder",
    "OpenAIEmbedder",
    "Provider",
    "VectorCache",
    "WorkerLimits",
    "WorkerStatus",
    "estimate_embedding",
    "get_provider",
    "make_embedder",
    "reason_without",
    "text_hash",
    "warm_up",
    "without_embedder",
]
