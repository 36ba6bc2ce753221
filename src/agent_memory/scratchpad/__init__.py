"""The scratchpad: the few memories an agent sees without asking, as a model reads them and as a person edits them."""

from agent_memory.scratchpad.file import PadEdits
from agent_memory.scratchpad.manager import ScratchpadManager
from agent_memory.scratchpad.render import MARKER, RenderedPad, estimate_tokens, render
from agent_memory.scratchpad.selection import Selection

__all__ = ["MARKER", "PadEdits", "RenderedPad", "ScratchpadManager", "Selection", "estimate_tokens", "render"]
