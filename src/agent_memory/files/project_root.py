"""The root folder of the project that a person works on."""

from __future__ import annotations

from pathlib import Path


def find_project_root(folder: Path) -> Path | None:
    """Return the repository around a folder, else the folder itself.

    None for the home of a person, for the folders around it, and for a path that is a loop of links.
    """
    try:
        place, home = folder.expanduser().resolve(), Path.home().resolve()
        around = {home, *home.parents}
        for parent in (place, *place.parents):
            if parent not in around and (parent / ".git").exists():
                return parent
    except (OSError, RuntimeError):
        return None
    return None if place in around else place
