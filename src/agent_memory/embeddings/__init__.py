"""Vectors for text: embedders behind one protocol, and a cache so that no text is embedded twice.

Importing this loads no model and no numpy.
"""

from agent_memory.embeddings.cache import VectorCache, text_hash
from agent_memory.embeddings.generator import EmbeddingGenerator
from agent_memory.embeddings.local import LocalEmbedder
from agent_memory.embeddings.openai_api import OpenAIEmbedder
from agent_memory.embeddings.protocol import Embedder, EmbedderIdentity
from agent_memory.embeddings.worker import EmbeddingWorker, WorkerStatus

__all__ = [
    "Embedder",
    "EmbedderIdentity",
    "EmbeddingGenerator",
    "EmbeddingWorker",
    "LocalEmbedder",
    "OpenAIEmbedder",
    "VectorCache",
    "WorkerStatus",
    "text_hash",
]
