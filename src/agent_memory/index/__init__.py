"""Ranked retrieval over the documents of one agent.

Knows neither files nor processes nor the journal. Each name is loaded at its first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
