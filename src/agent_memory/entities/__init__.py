"""Who and what is spoken of: how entities are described and told to be the same. No storage, no network."""

from __future__ import annotations

from agent_memory.entities.lookup import stands_out
from agent_memory.entities.mention import Gazetteer, Kind, Mention
from agent_memory.entities.naming import mentions_in
from agent_memory.entities.record import Decision, Described, Match, Matching, Stage, described
from agent_memory.entities.relating import Relation, relations_in

__all__ = [
    "Decision",
    "Described",
    "Gazetteer",
    "Kind",
    "Match",
    "Matching",
    "Mention",
    "Relation",
    "Stage",
    "described",
    "mentions_in",
    "relations_in",
    "stands_out",
]
