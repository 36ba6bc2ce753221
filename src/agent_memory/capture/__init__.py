"""What a conversation says that is worth a memory: pure extraction and the session's bookkeeping. Stores nothing."""

from agent_memory.capture.extractor import Extractor
from agent_memory.capture.own import own_words
from agent_memory.capture.sameness import is_near_duplicate
from agent_memory.capture.turns import CaptureLedger, TurnBuffer

__all__ = ["CaptureLedger", "Extractor", "TurnBuffer", "is_near_duplicate", "own_words"]
