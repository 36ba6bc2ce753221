"""hooks-memory-openai: installs the client of OpenAI's API in the host's environment.

The host installs the dependencies of a module, but no extras of the library. The library uses the client when the
setting `embedder: openai` asks for it.
"""

from typing import Any

__amplifier_module_type__ = "hook"

MODULE_ID = "hooks-memory-openai"

__all__ = ["MODULE_ID", "mount"]


async def mount(_coordinator: Any, _config: dict[str, Any] | None = None) -> None:
    """Do nothing; the module only has to be installed."""
