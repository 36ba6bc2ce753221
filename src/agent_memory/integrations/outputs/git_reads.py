"""Forms of git that show only files and revisions of HEAD."""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import TYPE_CHECKING, Final

from agent_memory.integrations.outputs.shell_words import list_operands

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.integrations.outputs.project_paths import ProjectPaths
    from agent_memory.integrations.outputs.shell_words import ShellWord

_VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "add": ("Auv", ""), "blame": ("lsw", "L"), "branch": ("", ""), "commit": ("aqv", "m"), "diff": ("bpw", "U"),
    "log": ("pqs", "GSn"), "ls-files": ("cdmoz", ""), "mv": ("fv", ""), "restore": ("q", ""),
    "rev-parse": ("", ""), "rm": ("fqr", ""), "show": ("pqs", ""), "status": ("bsu", ""),
}  # fmt: skip
_LONG_OPTION: Final = re.compile(
    r"--(abbrev-(commit|ref)|amend|cached|graph|name-(only|status)|no-(color|edit)|numstat|oneline|patch|porcelain"
    r"|reverse|short|shortstat|show-(current|toplevel)|staged|stat"
    r"|(author|date|format|grep|max-count|pretty|since|unified|until)=.*)"
)
_HEAD: Final = re.compile(r"(HEAD[~^\d]*)(\.{2,3}(HEAD[~^\d]*)?)?")
"""Revision that is local for certain; any other name may be that of a remote."""


def is_local_git(arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    """Return True if git shows only the working tree and local revisions."""
    arguments = list(dropwhile(lambda word: word.text == "--no-pager", arguments))
    verb = arguments[0].text if arguments else ""
    if verb not in _VERBS or not paths.is_inside(str(paths.project / ".git")):
        return False
    texts = [word.text for word in arguments]
    position = texts.index("--") if "--" in texts else len(texts)
    revisions = list_operands(arguments[1:position], *_VERBS[verb], _LONG_OPTION)
    if revisions is None or not all(map(paths.is_argument_inside, [*revisions, *arguments[position + 1 :]])):
        return False
    is_file = position == len(texts)  # without `--` git refuses a name that is both a file and a revision
    if not all(_is_local_revision(word.text, paths, is_file=is_file) for word in revisions):
        return False
    return verb != "diff" or paths.is_tree_inside(str(paths.project), is_search=True)


def _is_local_revision(text: str, paths: ProjectPaths, *, is_file: bool) -> bool:
    """Return True if a word is HEAD, or a file if allowed."""
    revision = text.partition(":")[0]
    return _HEAD.fullmatch(revision) is not None or (is_file and (paths.folder / text).exists())
