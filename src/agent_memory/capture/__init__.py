"""Capture from a conversation: statements to keep, user requests, session bookkeeping.

Stores nothing. Each name is loaded at its first use.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.capture.extractor import CaptureLedger as CaptureLedger
    from agent_memory.capture.extractor import Extractor as Extractor
    from agent_memory.capture.extractor import TurnBuffer as TurnBuffer
    from agent_memory.capture.statements import asks_to_keep as asks_to_keep
    from agent_memory.capture.statements import find_quote as find_quote
    from agent_memory.capture.statements import names_memory as names_memory
    from agent_memory.capture.statements import says as says
    from agent_memory.capture.statements import share_topic as share_topic
    from agent_memory.capture.user_requests import is_wished as is_wished
    from agent_memory.language.similarity import is_near_duplicate as is_near_duplicate


if not TYPE_CHECKING:  # a type checker would accept every name
    __getattr__, __dir__ = _offer(__name__)
