"""Adapter to Amplifier: session, identity, conversation.

The other packages import no host; the modules call this package.
"""

from agent_memory.integrations.amplifier.conversation import TurnState
from agent_memory.integrations.amplifier.identity import (
    MEMORY_ASSISTANT,
    SessionIdentity,
    is_memory_assistant,
    withdraw_assistant,
)
from agent_memory.integrations.amplifier.session import MemorySession
from agent_memory.integrations.taint import Taint

__all__ = [
    "MEMORY_ASSISTANT",
    "MemorySession",
    "SessionIdentity",
    "Taint",
    "TurnState",
    "is_memory_assistant",
    "withdraw_assistant",
]
