"""Ranked retrieval over the documents of one agent.

Knows neither files nor processes nor the journal. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.index.dense_index import DenseIndex as DenseIndex
    from agent_memory.index.dense_index import ExactCosines as ExactCosines
    from agent_memory.index.dense_index import QueryCosines as QueryCosines
    from agent_memory.index.dense_index import VectorSource as VectorSource
    from agent_memory.index.facets import SearchScope as SearchScope
    from agent_memory.index.results import Hit as Hit
    from agent_memory.index.results import Question as Question
    from agent_memory.index.results import Ranking as Ranking
    from agent_memory.index.results import RankingSettings as RankingSettings
    from agent_memory.index.results import RejectedHit as RejectedHit
    from agent_memory.index.results import SearchLimits as SearchLimits
    from agent_memory.index.search_index import SearchIndex as SearchIndex
    from agent_memory.index.terms import read_question as read_question
    from agent_memory.language.text_forms import GAP as GAP
    from agent_memory.language.text_forms import embedded_texts as embedded_texts
    from agent_memory.language.text_forms import excerpt as excerpt
    from agent_memory.language.words import query_terms as query_terms


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
