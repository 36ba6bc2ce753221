"""Ranked retrieval over one agent's memories. Files, processes and the journal belong to storage, above."""

from agent_memory.retrieval.dense import Cosines, DenseIndex, VectorSource
from agent_memory.retrieval.index import SearchIndex
from agent_memory.retrieval.results import Hit, MatchKind, Ranking, RankingSettings, Rejected, RejectionReason

__all__ = [
    "Cosines",
    "DenseIndex",
    "Hit",
    "MatchKind",
    "Ranking",
    "RankingSettings",
    "Rejected",
    "RejectionReason",
    "SearchIndex",
    "VectorSource",
]
