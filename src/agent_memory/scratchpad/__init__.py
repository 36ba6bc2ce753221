"""Scratchpad: the few memories that an agent sees without asking.

Each name is loaded at its first use.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
