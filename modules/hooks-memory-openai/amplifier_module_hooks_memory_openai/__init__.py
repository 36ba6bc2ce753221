"""hooks-memory-openai: brings the client of OpenAI's API into the host's environment.

The host installs what a module depends on, and no extras of the library. There is no behaviour here: the library
uses the client when the setting `embedder: openai` asks for it.
"""

from typing import Any

__amplifier_module_type__ = "hook"

MODULE_ID = "hooks-memory-openai"

__all__ = ["MODULE_ID", "mount"]


async def mount(_coordinator: Any, _config: dict[str, Any] | None = None) -> None:
    """Listen to nothing: to be installed is all."""
