"""On which project a session works: what the configuration names, else the repository of its working folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.project_root import find_project_root
from agent_memory.models import MAX_PROJECT_CHARS, flatten

if TYPE_CHECKING:
    from agent_memory.settings import ServiceSettings

WORKING_DIR: Final = "session.working_dir"
"""The host's capability that says where a session works."""


def project_of(settings: ServiceSettings, coordinator: Any) -> str:
    """Return the project of a session; empty for none, and where projects are switched off."""
    return working_on(settings, coordinator) if settings.projects else ""


def working_on(settings: ServiceSettings, coordinator: Any) -> str:
    """Return the project of a session, also where memories are to be noted without one; empty for none."""
    if settings.project is not None:
        return settings.project
    folder = working_folder(coordinator)
    return "" if folder is None else name_of(folder)


def working_folder(coordinator: Any) -> Path | None:
    """Return the working folder of a session, or None."""
    folder = coordinator.get_capability(WORKING_DIR)
    return Path(folder) if isinstance(folder, str | Path) and str(folder) else None


def name_of(folder: Path) -> str:
    """Return the name of the repository that a folder lies in, else the folder's own.

    Empty for a person's home, for what lies around it, and for the root: nobody works on these.
    """
    root = find_project_root(folder)
    return "" if root is None else _named(root)


def _named(folder: Path) -> str:
    return flatten(folder.name)[:MAX_PROJECT_CHARS]
