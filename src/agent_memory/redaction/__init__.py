"""Redaction of secrets before a text is stored, logged or emitted.

Pure: no file, no network, no verification.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
