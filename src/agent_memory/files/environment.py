"""The environment of child processes, without our keys.

Imports nothing of the package, so that any process may use it.
"""

from __future__ import annotations

import os
from typing import Final

_key_variables: Final = {
    "AGENT_MEMORY_KEY",
    "AGENT_MEMORY_KEY_FILE",
    "AGENT_MEMORY_KEY_COMMAND",
    "AGENT_MEMORY_KEY_KEYRING",
    "QDRANT_API_KEY",
}


def add_key_variable(name: str) -> None:
    """Note that an environment variable of another name holds a key."""
    _key_variables.add(name)


def environment_without_keys() -> dict[str, str]:
    """Return this process's environment without our keys."""
    return {name: value for name, value in os.environ.items() if name not in _key_variables}
