"""Names in texts, and descriptions of entities. No storage, no network."""

from __future__ import annotations

from agent_memory.knowledge.entities.mention import Gazetteer, Kind, Mention
from agent_memory.knowledge.entities.name_reader import find_mentions
from agent_memory.knowledge.entities.record import Decision, Described, Match, Matching, Stage, described

__all__ = [
    "Decision",
    "Described",
    "Gazetteer",
    "Kind",
    "Match",
    "Matching",
    "Mention",
    "Stage",
    "described",
    "find_mentions",
]
