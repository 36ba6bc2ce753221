"""hooks-memory-server: brings the client of Qdrant servers into the host's environment.

The host installs what a module depends on, and no extras of the library. There is no behaviour here: the library
uses the client when the setting `backend: server` asks for it.
"""

from typing import Any

__amplifier_module_type__ = "hook"

MODULE_ID = "hooks-memory-server"

__all__ = ["MODULE_ID", "mount"]


async def mount(_coordinator: Any, _config: dict[str, Any] | None = None) -> None:
    """Listen to nothing: to be installed is all."""
