"""Checks of agents' files: doctor and health. Never loaded at import.

Each name loads what it needs when it is first asked for: a session checks without what the doctor loads.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
