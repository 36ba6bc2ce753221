"""Entities: names in texts, descriptions, merges and relations."""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.knowledge.entities.matching.matcher import Decision as Decision
    from agent_memory.knowledge.entities.matching.matcher import Match as Match
    from agent_memory.knowledge.entities.matching.matcher import Matching as Matching
    from agent_memory.knowledge.entities.matching.matcher import Stage as Stage
    from agent_memory.knowledge.entities.matching.profiles import Described as Described
    from agent_memory.knowledge.entities.matching.profiles import describe_entity as describe_entity
    from agent_memory.knowledge.entities.name_finder import Gazetteer as Gazetteer
    from agent_memory.knowledge.entities.name_finder import Kind as Kind
    from agent_memory.knowledge.entities.name_finder import Mention as Mention
    from agent_memory.knowledge.entities.name_finder import find_mentions as find_mentions


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
