"""Matching of descriptions: normal forms, comparison, and search among known ones."""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
