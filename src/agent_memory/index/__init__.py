"""Ranked retrieval over the documents of one agent.

Knows neither files nor processes nor the journal. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.index.dense_index import DenseIndex, ExactCosines, QueryCosines, VectorSource
    from agent_memory.index.facets import SearchScope
    from agent_memory.index.results import Hit, Question, Ranking, RankingSettings, RejectedHit, SearchLimits
    from agent_memory.index.search_index import SearchIndex
    from agent_memory.index.terms import read_question
    from agent_memory.language.text_forms import GAP, embedded_texts, excerpt
    from agent_memory.language.words import query_terms

__all__ = [
    "GAP",
    "DenseIndex",
    "ExactCosines",
    "Hit",
    "QueryCosines",
    "Question",
    "Ranking",
    "RankingSettings",
    "RejectedHit",
    "SearchIndex",
    "SearchLimits",
    "SearchScope",
    "VectorSource",
    "embedded_texts",
    "excerpt",
    "query_terms",
    "read_question",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
