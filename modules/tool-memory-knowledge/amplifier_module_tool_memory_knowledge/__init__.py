"""tool-memory-knowledge: an agent's documents and talks, by topic, as tools."""

import logging
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

__amplifier_module_type__ = "tool"

VERSION = "0.1.0"
"""Version of this module and of the library that it needs."""
_SOURCES = Path(__file__).resolve().parents[3] / "src"

if (_SOURCES / "agent_memory").is_dir() and "agent_memory" not in sys.modules:
    sys.path.insert(0, str(_SOURCES))  # else an earlier library that is installed would be used

try:
    from agent_memory.module_loader import load_mount

    mount = load_mount(__name__, VERSION)
except ImportError as error:  # no library, or an earlier one that has no loader
    problem = {
        "reason": f"Memory is off: its library cannot be imported ({error}).",
        "what_to_do": "Run this, then start again; the host installs the library again, memories are not touched: "
        f"{sys.executable} -m pip uninstall --yes amplifier-bundle-agent-memory",
    }
    logging.getLogger(__name__).error("%s %s", *problem.values())  # noqa: TRY400 - without a traceback
    if find_spec(f"{__name__}.absence"):
        mount = import_module(f"{__name__}.absence").build_mount(problem)
    else:

        async def mount(*_: Any, **__: Any) -> None:
            """Leave the session as it is; tool-memory-semantic reports the problem."""


__all__ = ["VERSION", "mount"]
