"""Pairs of memories that look as if they cannot both be right now. Pure functions over two texts."""

from agent_memory.suspects.comparing import NEAR, compare, subjects_of
from agent_memory.suspects.meeting import Suspicion
from agent_memory.suspects.wording import is_said_plainly

__all__ = ["NEAR", "Suspicion", "compare", "is_said_plainly", "subjects_of"]
