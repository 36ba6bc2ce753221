"""hooks-memory-server: installs the client of Qdrant servers in the host's environment.

The host installs the dependencies of a module, but no extras of the library. The library uses the client when the
setting `backend: server` asks for it.
"""

from typing import Any

__amplifier_module_type__ = "hook"

MODULE_ID = "hooks-memory-server"

__all__ = ["MODULE_ID", "mount"]


async def mount(_coordinator: Any, _config: dict[str, Any] | None = None) -> None:
    """Do nothing; the module only has to be installed."""
