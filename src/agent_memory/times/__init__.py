"""Times in texts, seen from the moment of saying or asking."""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
