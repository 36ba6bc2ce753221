"""The adapter to Amplifier: session, identity, turn. Packages below import no host; the modules above are thin."""

from agent_memory.host.identity import (
    MEMORY_ASSISTANT,
    Configured,
    is_memory_assistant,
    withdraw_assistant,
)
from agent_memory.host.session import MemorySession
from agent_memory.host.strangers import Taint
from agent_memory.host.turn import TurnState

__all__ = [
    "MEMORY_ASSISTANT",
    "Configured",
    "MemorySession",
    "Taint",
    "TurnState",
    "is_memory_assistant",
    "withdraw_assistant",
]
