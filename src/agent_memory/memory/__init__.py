"""Memory service: one write path, one search, and their events.

Each name is loaded when it is first used.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
