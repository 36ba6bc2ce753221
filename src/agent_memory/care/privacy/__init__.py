"""Privacy: purge, encryption and stored secrets.

A name is imported on first use. The two names of the inbox are from `agent_memory.memory`.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.privacy.file_encryption import (
        BEYOND_ENCRYPTION,
        EncryptionResult,
        change_key,
        decrypt,
        encrypt,
    )
    from agent_memory.care.privacy.purge import PurgePlan, PurgeReceipt, Purging
    from agent_memory.care.privacy.purge_survey import RecordWithSecrets, find_stored_secrets
    from agent_memory.care.privacy.text_search import FileWithWords
    from agent_memory.memory.inbox import Inbox
    from agent_memory.memory.inbox_access import opened_inbox

__all__ = [
    "BEYOND_ENCRYPTION",
    "EncryptionResult",
    "FileWithWords",
    "Inbox",
    "PurgePlan",
    "PurgeReceipt",
    "Purging",
    "RecordWithSecrets",
    "change_key",
    "decrypt",
    "encrypt",
    "find_stored_secrets",
    "opened_inbox",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
