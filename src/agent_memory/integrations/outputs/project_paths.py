"""Paths that are certain to be in a project, links resolved."""

from __future__ import annotations

import os
import re
import stat
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agent_memory.integrations.outputs.shell_words import ShellWord

_NULL: Final = "/dev/null"
_SEPARATORS: Final = re.compile(r"[=:,@]")
"""Characters after which a word may name another path."""
_MAX_ENTRIES: Final = 5_000
"""Entries of a folder that is read as a whole; a larger one is not certain."""
_MAX_MATCHES: Final = 500
_SKIPPED: Final = frozenset({".git", ".venv"})
"""Folders that search tools leave out."""
_FOREIGN: Final = (".git/FETCH_HEAD", ".git/packed-refs", ".git/logs", ".git/modules", ".git/refs/remotes")
"""Files of the project's folder with names and messages of others."""


class ProjectPaths:
    """Paths of a call, relative to a folder of the project.

    Args:
        project: Root of the project.
        folder: Folder that paths are relative to.
    """

    def __init__(self, project: Path, folder: Path) -> None:
        self.project, self.folder = project, folder
        self._root = os.path.realpath(project)
        self._foreign = tuple(Path(self._root, name) for name in _FOREIGN)

    def is_inside(self, path: str) -> bool:
        """Return True if a path is in the project, or missing there.

        A file with a second name (hard link), a pipe and a device are not.
        """
        try:
            places = {os.path.realpath(self.folder / name) for name in (path, os.path.normpath(path))}
            if (
                path.startswith(("~", "@"))
                or "$" in path
                or not all(Path(place).is_relative_to(self._root) for place in places)
                or any(Path(place).is_relative_to(foreign) for place in places for foreign in self._foreign)
            ):
                return False
            return all(_is_ordinary(Path(place).stat()) for place in places)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except (OSError, ValueError):
            return False

    def is_word_inside(self, text: str) -> bool:
        """Return True if every path in a text is in the project."""
        return all(map(self.is_inside, {text, *filter(None, _SEPARATORS.split(text))} - {_NULL}))

    def is_argument_inside(self, word: ShellWord) -> bool:
        """Return True if a command's word and its matches are inside."""
        if not self.is_word_inside(word.text):
            return False
        if not word.is_pattern:
            return True
        matches = list(islice(iglob(word.text, root_dir=self.folder), _MAX_MATCHES))  # noqa: PTH207 - as a shell does
        return "[" not in word.text and len(matches) < _MAX_MATCHES and all(map(self.is_word_inside, matches))

    def is_tree_inside(self, path: str, *, is_search: bool = False) -> bool:
        """Return True if a path and its whole tree are inside.

        Args:
            path: File or folder.
            is_search: True for a tool that leaves out folders such as `.git`.
        """
        if not self.is_inside(path):
            return False
        skipped = self._list_skipped() if is_search else frozenset()
        pending, entries = [os.path.realpath(self.folder / path)], 0
        while pending:
            try:
                with os.scandir(pending.pop()) as listing:
                    children = list(islice(listing, _MAX_ENTRIES))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                return False
            entries += len(children)
            if entries >= _MAX_ENTRIES or not all(map(self._is_entry_inside, children)):
                return False
            pending += [
                child.path for child in children if child.is_dir(follow_symlinks=False) and child.name not in skipped
            ]
        return True

    def _is_entry_inside(self, entry: os.DirEntry[str]) -> bool:
        try:
            return self.is_inside(entry.path) if entry.is_symlink() else _is_ordinary(entry.stat(follow_symlinks=False))
        except OSError:
            return False

    def _list_skipped(self) -> frozenset[str]:
        try:
            ignored = (self.project / ".gitignore").read_text("utf-8", "replace").split()
        except OSError:
            return _SKIPPED
        return _SKIPPED | ({"node_modules"} if {"node_modules", "node_modules/"} & {*ignored} else set())


def _is_ordinary(status: os.stat_result) -> bool:
    return stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
