"""Rights of a person: purge, encryption, inbox of unconfirmed notes.

Each name loads what it needs when it is first asked for.
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
    from agent_memory.care.privacy.stored_secrets import RecordWithSecrets, find_stored_secrets
    from agent_memory.care.privacy.text_search import FileWithWords
    from agent_memory.memory.inbox import HeldCandidates, Inbox
    from agent_memory.memory.inbox_access import count_waiting, drop_stored, inbox_exists, keep_inbox, opened_inbox

__all__ = [
    "BEYOND_ENCRYPTION",
    "EncryptionResult",
    "FileWithWords",
    "HeldCandidates",
    "Inbox",
    "PurgePlan",
    "PurgeReceipt",
    "Purging",
    "RecordWithSecrets",
    "change_key",
    "count_waiting",
    "decrypt",
    "drop_stored",
    "encrypt",
    "find_stored_secrets",
    "inbox_exists",
    "keep_inbox",
    "opened_inbox",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
