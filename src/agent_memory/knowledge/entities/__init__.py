"""Entities: names in texts, descriptions, merges and relations."""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
