"""Names of `store`, `files`, `care` and `engines` at their earlier import path."""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
