"""Encryption of an agent's files: cipher, key file, person's key, long texts.

Knows files by their bytes and fields of records as JSON, and nothing of journals.
"""

from agent_memory.encryption.blobs import AgentBlobs
from agent_memory.encryption.cipher import DataKey
from agent_memory.encryption.keys import (
    KeyFile,
    State,
    check_encryption,
    data_key,
    get_encryption_state,
    is_encrypted,
    key_for,
    take_keys_from,
    unlock,
)
from agent_memory.encryption.person import PersonKey, person_key

__all__ = [
    "AgentBlobs",
    "DataKey",
    "KeyFile",
    "PersonKey",
    "State",
    "check_encryption",
    "data_key",
    "get_encryption_state",
    "is_encrypted",
    "key_for",
    "person_key",
    "take_keys_from",
    "unlock",
]
