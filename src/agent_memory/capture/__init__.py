"""Capture from a conversation: statements to keep, user requests, session bookkeeping.

Stores nothing. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.capture.extractor import Extractor
    from agent_memory.capture.statements import asks_to_keep, find_quote, names_memory, says, share_topic
    from agent_memory.capture.turns import CaptureLedger, TurnBuffer
    from agent_memory.capture.user_requests import is_wished
    from agent_memory.language.similarity import is_near_duplicate

__all__ = [
    "CaptureLedger",
    "Extractor",
    "TurnBuffer",
    "asks_to_keep",
    "find_quote",
    "is_near_duplicate",
    "is_wished",
    "names_memory",
    "says",
    "share_topic",
]

if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
