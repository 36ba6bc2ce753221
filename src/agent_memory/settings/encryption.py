"""Where the key of encrypted memories comes from."""

from __future__ import annotations

from typing import Self

import pydantic
from pydantic import Field

from agent_memory.settings.base import Settings

_OTHERS = ("key_file", "key_command", "key_keyring")


class EncryptionSettings(Settings):
    """The person's key for memories that are encrypted; of plain ones nothing is asked."""

    new_agents: bool = Field(
        default=False,
        description="Encrypt agents that have stored nothing yet, from their first line on; others stay as they are.",
    )
    key_variable: str = Field(
        default="AGENT_MEMORY_KEY",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="The environment variable that holds the key, unless one of the others is set.",
    )
    key_file: str | None = Field(default=None, min_length=1, description="A file that holds it.")
    key_command: str | None = Field(
        default=None, min_length=1, description="A command that prints it, such as `pass show agent-memory`; no shell."
    )
    key_keyring: str | None = Field(
        default=None,
        min_length=1,
        description="The service under which the system's keyring has it, for the user `agent-memory`; needs the "
        "package keyring.",
    )

    @pydantic.model_validator(mode="after")
    def _from_one_place(self) -> Self:
        given = [key for key in _OTHERS if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"'{given[0]}' and '{given[1]}' both say where the key is; remove one of the two")
        return self
