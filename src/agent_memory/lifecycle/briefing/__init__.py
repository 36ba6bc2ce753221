"""What an agent should know before it begins to work.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.lifecycle.briefing.briefing import MARKER, TOKENS, Briefer
    from agent_memory.lifecycle.briefing.opening import SessionBriefing
    from agent_memory.lifecycle.briefing.result import Briefing

__all__ = ["MARKER", "TOKENS", "Briefer", "Briefing", "SessionBriefing"]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
