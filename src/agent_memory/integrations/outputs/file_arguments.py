"""Arguments of the host's file and search tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agent_memory.integrations.outputs.project_paths import ProjectPaths

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

_TEXTS: Final = frozenset({"content", "new_string", "old_string"})
"""Arguments that are written, never read as a path."""
_LEADS_OUT: Final = re.compile(r"\.\.|~|(^|[{,=:@])/|\{[^{}]*/")
"""Part of a pattern that may lead out of its folder."""
_MAX_TEXTS: Final = 100


def is_project_file(arguments: Any, project: Path, folder: Path) -> bool:
    """Return True if a file tool's paths are certainly in the project.

    Each text may be a path, whatever its name, except what is written.
    """
    paths = ProjectPaths(project, folder)
    texts = _list_texts(arguments, _TEXTS)
    return bool(texts) and all(map(paths.is_word_inside, texts or ()))


def is_project_search(tool: str, arguments: Any, project: Path, folder: Path) -> bool:
    """Return True if a search tool certainly reads the project alone.

    Args:
        tool: Name of the tool; the pattern of `grep` is not a path.
        arguments: Arguments of the call.
        project: Root of the project.
        folder: Folder that paths are relative to.
    """
    patterns = _list_texts(arguments, {"path", "pattern"} if tool == "grep" else {"path"})
    if patterns is None or any(map(_LEADS_OUT.search, patterns)):
        return False
    place = arguments.get("path", ".")
    is_search = not arguments.get("include_ignored")
    return isinstance(place, str) and ProjectPaths(project, folder).is_tree_inside(place, is_search=is_search)


def _list_texts(arguments: Any, ignored: Collection[str]) -> list[str] | None:
    """Return the texts of a call, None if values are nested."""
    if not isinstance(arguments, dict):
        return None
    values = list(_iter_values(arguments, ignored))
    if len(values) > _MAX_TEXTS or any(isinstance(value, dict | list | tuple) for value in values):
        return None
    return [value for value in values if isinstance(value, str)]


def _iter_values(arguments: dict[str, Any], ignored: Collection[str]) -> Iterator[Any]:
    for name, value in arguments.items():
        if name not in ignored:
            yield from value if isinstance(value, list) else [value]
