"""What an agent should know before it begins to work."""

from agent_memory.lifecycle.briefing.briefing import MARKER, TOKENS, Briefer, Briefing
from agent_memory.lifecycle.briefing.opening import SessionBriefing

__all__ = ["MARKER", "TOKENS", "Briefer", "Briefing", "SessionBriefing"]
