"""Hashes of guessed secrets that a person exempted for all agents."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from agent_memory.files.atomic import append_lines, make_private_folder, read_file, translated
from agent_memory.files.names import NOT_SECRETS
from agent_memory.redaction.exemptions import exempt, hash_guess

if TYPE_CHECKING:
    from pathlib import Path


def load_exemptions(root: Path) -> None:
    """Load the exemptions of a root folder; a missing file is empty.

    Raises:
        StorageError: The file cannot be read.
    """
    path = root / NOT_SECRETS
    if path.exists():
        with translated(path, "read"):
            exempt(re.findall(r"(?m)^[0-9a-f]{64}$", read_file(path).decode("ascii", "replace")))


def exempt_guesses(root: Path, text: str) -> list[str]:
    """Exempt the guessed secrets of a text and return them.

    Raises:
        StorageError: It could not be recorded; nothing is exempt.
    """
    from agent_memory.redaction.redactor import list_guesses

    guesses = list_guesses(text)
    if guesses:
        path, hashes = root / NOT_SECRETS, [hash_guess(guess) for guess in guesses]
        make_private_folder(root)
        with translated(path, "write"):
            append_lines(path, "".join(f"{value}\n" for value in hashes).encode(), os.O_CREAT)
        exempt(hashes)
    return guesses
