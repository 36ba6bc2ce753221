"""Matching of descriptions: normal forms, comparison, and search among known ones."""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.knowledge.entities.matching.matcher import Matcher as Matcher
    from agent_memory.knowledge.entities.matching.matcher import NearName as NearName
    from agent_memory.knowledge.entities.matching.normal_forms import full_form as full_form
    from agent_memory.knowledge.entities.matching.normal_forms import normal_form as normal_form


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
