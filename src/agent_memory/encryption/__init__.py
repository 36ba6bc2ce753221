"""Encryption of an agent's files: cipher, key file, person's key, long texts.

Knows files by their bytes and fields of records as JSON, and nothing of journals.
"""

from agent_memory.late import offer as _offer

__getattr__, __dir__ = _offer(__name__)
