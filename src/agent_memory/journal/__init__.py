"""The journal: the append-only file from which everything else is derived."""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
