"""Lists of a person for all agents: exempted guesses of secrets, and trusted tools."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.errors import StorageError
from agent_memory.files.atomic import append_lines, make_private_folder, read_file, replace_file, translated
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import NOT_SECRETS, SESSIONS, TRUSTED_TOOLS
from agent_memory.redaction.redactor import exempt, hash_guess, list_guesses

if TYPE_CHECKING:
    from collections.abc import Callable
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
    guesses = list_guesses(text)
    if guesses:
        path, hashes = root / NOT_SECRETS, [hash_guess(guess) for guess in guesses]
        make_private_folder(root)
        with translated(path, "write"):
            append_lines(path, "".join(f"{value}\n" for value in hashes).encode(), os.O_CREAT)
        exempt(hashes)
    return guesses


class TrustedTool(NamedTuple):
    """Tool that a person trusts.

    Attributes:
        package: Python package, or `PACKAGE:TOOL`.
        project: Absolute path of the project; empty for all projects.
    """

    package: str
    project: str = ""


def read_trusted_tools(root: Path) -> list[TrustedTool]:
    """Return the trusted tools, oldest first; none without the file.

    Args:
        root: Folder of all agents.

    Raises:
        StorageError: The file cannot be read.
    """
    path = root / TRUSTED_TOOLS
    if not path.exists():
        return []
    with translated(path, "read"):
        content = read_file(path)
    try:
        return [TrustedTool(str(package), str(project)) for package, project in json.loads(content)]
    except (ValueError, TypeError) as error:
        raise StorageError(
            f"{path} is not a list of tools; every tool of it is untrusted.",
            recovery="Delete the file, then run `agent-memory trust-tool PACKAGE` for each tool.",
        ) from error


def list_trusted_packages(root: Path, project: Path | None) -> list[str]:
    """Return the packages that are trusted in a project.

    Raises:
        StorageError: The file cannot be read.
    """
    return [tool.package for tool in read_trusted_tools(root) if tool.project in {"", str(project)}]


def change_trusted_tools(root: Path, change: Callable[[list[TrustedTool]], list[TrustedTool]]) -> list[TrustedTool]:
    """Replace the trusted tools under a lock, and return the new list.

    Args:
        root: Folder of all agents, created if missing.
        change: Returns the new list for the present one.

    Raises:
        BusyError: Another process is changing the list.
        StorageError: The file cannot be read or written.
    """
    make_private_folder(root)
    make_private_folder(root / SESSIONS)
    with folder_lock(root / SESSIONS):  # the folder of all agents has no lock of its own
        tools = change(read_trusted_tools(root))
        path = root / TRUSTED_TOOLS
        with translated(path, "write"):
            replace_file(path, json.dumps(tools, indent=1).encode(), durable=True)
    return tools
