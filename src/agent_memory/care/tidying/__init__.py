"""Tidying of a memory on request: propose, apply, undo.

A name is imported on first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
