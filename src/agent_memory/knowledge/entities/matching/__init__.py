"""Matching of descriptions: normal forms, comparison, and search among known ones."""

from __future__ import annotations

from agent_memory.knowledge.entities.matching.matcher import Matcher, NearName
from agent_memory.knowledge.entities.matching.normal import full_form, normal_form

__all__ = ["Matcher", "NearName", "full_form", "normal_form"]
