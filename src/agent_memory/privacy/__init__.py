"""What a person may ask of a memory about themselves: that something is gone for good, or is not kept without a yes."""

from agent_memory.privacy.encrypting import BEYOND_ENCRYPTION, Encrypted, change_key, decrypt, encrypt
from agent_memory.privacy.inbox import Held, Inbox, count_waiting, drop_stored, inbox_exists, keep_inbox, opened_inbox
from agent_memory.privacy.purging import Plan, Purging, Receipt
from agent_memory.privacy.searching import Found

__all__ = [
    "BEYOND_ENCRYPTION",
    "Encrypted",
    "Found",
    "Held",
    "Inbox",
    "Plan",
    "Purging",
    "Receipt",
    "change_key",
    "count_waiting",
    "decrypt",
    "drop_stored",
    "encrypt",
    "inbox_exists",
    "keep_inbox",
    "opened_inbox",
]
