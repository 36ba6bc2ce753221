"""Scratchpad: the few memories that an agent sees without asking.

Each name loads what it needs when it is first asked for, except those of `render`, which is also the name of a module.
"""

from typing import TYPE_CHECKING

from agent_memory.language.prompt_text import estimate_tokens
from agent_memory.late import offer as _offer
from agent_memory.memory.scratchpad_entries import MARKER, RenderedPad, render
from agent_memory.memory.scratchpad_entries import Selection as Selection

if TYPE_CHECKING:
    from agent_memory.memory.scratchpad_file import PadEdits as PadEdits
    from agent_memory.memory.scratchpad_manager import ScratchpadManager as ScratchpadManager

__all__ = ["MARKER", "PadEdits", "RenderedPad", "ScratchpadManager", "Selection", "estimate_tokens", "render"]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
