from agent_memory.language.prompt_text import estimate_tokens as estimate_tokens
from agent_memory.memory.scratchpad_entries import MARKER as MARKER
from agent_memory.memory.scratchpad_entries import RenderedPad as RenderedPad
from agent_memory.memory.scratchpad_entries import Selection as Selection
from agent_memory.memory.scratchpad_entries import render as render
from agent_memory.memory.scratchpad_file import PadEdits as PadEdits
from agent_memory.memory.scratchpad_manager import ScratchpadManager as ScratchpadManager
