"""How the encryption of an agent's files stands, for the doctor, health and status. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.encryption.keys import data_key, key_file_of
from agent_memory.errors import AgentMemoryError
from agent_memory.files.concerns import Concern

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def of_encryption(folder: Path) -> Iterator[Concern]:
    """Report whether an agent's files are encrypted, to the end, and whether this process has the key."""
    try:
        file = key_file_of(folder)
        if file is None:
            return
        data_key(folder)
    except AgentMemoryError as error:
        yield Concern("encryption_key", error.message, error.recovery)
        file = None
    if file is not None and file.state == "encrypted":
        yield Concern("encryption", "The files are encrypted (AES-256-GCM), and the key is here.")
    elif file is not None:
        yield Concern(
            "encryption_unfinished",
            f"The files are being {'encrypted' if file.state == 'encrypting' else 'decrypted'}, or that was "
            "interrupted: some are encrypted, and some may be plain.",
            f"Run `agent-memory {'encrypt' if file.state == 'encrypting' else 'decrypt'}` again: it goes on.",
        )
