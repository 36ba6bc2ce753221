"""Backups of agents, one zip file each: created, verified, restored.

A name is imported on first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
