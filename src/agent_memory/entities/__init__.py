"""Names in texts, and descriptions of entities that are compared. No storage, no network."""

from __future__ import annotations

from agent_memory.entities.mention import Gazetteer, Kind, Mention
from agent_memory.entities.name_reader import find_mentions
from agent_memory.entities.record import Decision, Described, Match, Matching, Stage, described

mentions_in = find_mentions
"""Earlier name of `find_mentions`."""

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
    "mentions_in",
]
