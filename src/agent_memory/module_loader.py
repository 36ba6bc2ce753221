"""Load of a module, or the reason why it fails.

The host installs a package once, and never again while a package of that name is installed. After an update, modules
would run on the earlier library; after its cache was removed, on none. So each module puts the library of its own clone
first on the path before it imports this file. Another library may be loaded by then, and its dependencies may be
missing: this file imports nothing but the standard library.
"""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_INSTALLED: Final = (
    "amplifier-bundle-agent-memory",
    "amplifier-module-tool-memory-knowledge",
    "amplifier-module-tool-memory-semantic",
    "amplifier-module-tool-memory-workspace",
    "amplifier-module-context-memory-scratchpad",
    "amplifier-module-hooks-memory-capture",
    "amplifier-module-hooks-memory-ingestion",
)


def load_mount(package: str, version: str) -> Callable[..., Any]:
    """Return the `mount` function of a module.

    If it cannot be loaded, the function of its file `absence` is returned, which gets the reason; without such a file,
    one that leaves the session as it is.

    Args:
        package: Dotted name of the module's package.
        version: Version of the module, which the library must have, too.
    """
    library = import_module("agent_memory")
    reason = f"agent_memory {library.__version__} in {library.__file__} is loaded, and {version} is needed"
    if library.__version__ == version:
        try:
            mount: Callable[..., Any] = import_module(f"{package}.session_mount").mount
        except (ImportError, AttributeError) as error:
            reason = str(error)
        else:
            return mount
    problem = _describe_problem(reason)
    logging.getLogger(package).error("%s %s", problem["reason"], problem["what_to_do"])
    if find_spec(f"{package}.absence") is None:
        return _mount_nothing
    explanation: Callable[..., Any] = import_module(f"{package}.absence").build_mount(problem)
    return explanation


def _describe_problem(reason: str) -> dict[str, str]:
    command = [sys.executable, "-m", "pip", "uninstall", "--yes", *_INSTALLED]
    if find_spec("pip") is None and shutil.which("uv"):
        command = ["uv", "pip", "uninstall", "--python", sys.executable, *_INSTALLED]
    return {
        "reason": f"Memory is off: its library cannot be imported ({reason}).",
        "what_to_do": "Run this, then start again; the host installs the packages again, memories are not touched: "
        f"{shlex.join(command)}",
    }


async def _mount_nothing(*_: Any, **__: Any) -> None:
    """Leave the session as it is; tool-memory-semantic reports the problem."""
