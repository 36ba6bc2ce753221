"""tool-memory-semantic: an agent's memory as tools."""

import sys
from pathlib import Path

__amplifier_module_type__ = "tool"

VERSION = "0.1.0"
"""Version of this module and of the library that it needs."""
_SOURCES = Path(__file__).resolve().parents[3] / "src"

if (_SOURCES / "agent_memory").is_dir() and "agent_memory" not in sys.modules:
    sys.path.insert(0, str(_SOURCES))  # else an earlier library that is installed would be used

from agent_memory.module_loader import load_mount  # noqa: E402 - the path is set first

mount = load_mount(__name__, VERSION)

__all__ = ["VERSION", "mount"]
