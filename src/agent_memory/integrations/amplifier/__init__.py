"""The adapter to Amplifier: session, identity, turn. Packages below import no host; the modules above are thin."""

from agent_memory.integrations.amplifier.identity import (
    MEMORY_ASSISTANT,
    Configured,
    is_memory_assistant,
    withdraw_assistant,
)
from agent_memory.integrations.amplifier.session import MemorySession
from agent_memory.integrations.amplifier.strangers import Taint
from agent_memory.integrations.amplifier.turn import TurnState

__all__ = [
    "MEMORY_ASSISTANT",
    "Configured",
    "MemorySession",
    "Taint",
    "TurnState",
    "is_memory_assistant",
    "withdraw_assistant",
]
