"""Chooses the library this module works on. Every module has this same file: each is a package of its own.

The host installs a package once and never again while one of that name is installed. After an update, modules would
run on the library of before, and after its cache was removed on none. So the library that lies beside the module goes
first.
"""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

VERSION: Final = "0.1.0"
"""Version of this module, and so of the library it needs."""
_BESIDE: Final = Path(__file__).resolve().parents[3] / "src"
_INSTALLED: Final = (
    "amplifier-bundle-agent-memory",
    "amplifier-module-tool-memory-knowledge",
    "amplifier-module-tool-memory-semantic",
    "amplifier-module-tool-memory-workspace",
    "amplifier-module-context-memory-scratchpad",
    "amplifier-module-hooks-memory-capture",
    "amplifier-module-hooks-memory-ingestion",
)


def choose(beside: Path = _BESIDE) -> None:
    """Put the library in the folder `beside` first on the path; leave what there is if none is there or one is loaded.

    Raises:
        ImportError: There is no library, or it is of another version.
    """
    if (beside / "agent_memory" / "__init__.py").is_file() and "agent_memory" not in sys.modules:
        sys.path.insert(0, str(beside))
    library = import_module("agent_memory")  # only now is it clear which
    found = getattr(library, "__version__", "without a version")
    if found != VERSION:
        raise ImportError(f"agent_memory {found} in {library.__file__} is loaded, and {VERSION} is needed")


def problem(error: Exception) -> dict[str, str]:
    """Return what to tell when the library cannot be imported, and log it."""
    reason = f"Memory is off: its library cannot be imported ({error})."
    recovery = f"Run this, then start again; memories are not touched, the host installs it anew: {_uninstall()}"
    logging.getLogger(__name__).error("%s %s", reason, recovery)
    return {"reason": reason, "what_to_do": recovery}


async def mount_nothing(*_: Any, **__: Any) -> Any:
    """Leave the session as it is: a `mount` for when there is a problem, of which tool-memory-semantic tells it."""


def _uninstall() -> str:
    if find_spec("pip") is None and shutil.which("uv"):
        return shlex.join(["uv", "pip", "uninstall", "--python", sys.executable, *_INSTALLED])
    return shlex.join([sys.executable, "-m", "pip", "uninstall", "--yes", *_INSTALLED])
