"""On which project a session works: what the configuration names, else the repository of its working folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.models import MAX_PROJECT_CHARS, visible

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
    folder = coordinator.get_capability(WORKING_DIR)
    return name_of(Path(folder)) if isinstance(folder, str | Path) and str(folder) else ""


def name_of(folder: Path) -> str:
    """Return the name of the repository that a folder lies in, else the folder's own.

    Empty for a person's home, for what lies around it, and for the root: nobody works on these.
    """
    try:
        place, home = folder.expanduser().resolve(), Path.home().resolve()
        around = {home, *home.parents}
        for each in (place, *place.parents):
            if each not in around and (each / ".git").exists():
                return _named(each)
    except (OSError, RuntimeError):  # a loop of links, or no home
        return ""
    return "" if place in around else _named(place)


def _named(folder: Path) -> str:
    return " ".join(visible(folder.name).split())[:MAX_PROJECT_CHARS]
