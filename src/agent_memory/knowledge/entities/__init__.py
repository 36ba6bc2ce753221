"""Entities: names in texts, descriptions, merges and relations."""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.knowledge.entities.matching.matcher import Decision, Match, Matching, Stage
    from agent_memory.knowledge.entities.matching.profiles import Described, describe_entity
    from agent_memory.knowledge.entities.name_finder import Gazetteer, Kind, Mention, find_mentions

__all__ = [
    "Decision",
    "Described",
    "Gazetteer",
    "Kind",
    "Match",
    "Matching",
    "Mention",
    "Stage",
    "describe_entity",
    "find_mentions",
]

if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
