"""File of the tools that a person trusts, for all agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from agent_memory.errors import StorageError
from agent_memory.files.atomic import make_private_folder, read_file, replace_file, translated
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import SESSIONS, TRUSTED_TOOLS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
