"""Programs that read files of the project."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from agent_memory.integrations.outputs.git_reads import is_local_git
from agent_memory.integrations.outputs.shell_words import list_operands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_memory.integrations.outputs.project_paths import ProjectPaths
    from agent_memory.integrations.outputs.shell_words import ShellWord

_READERS: Final[Mapping[str, tuple[str, str]]] = {
    "awk": ("", "F"), "basename": ("", ""), "cat": ("AETbensv", ""), "chmod": ("Rv", ""), "cmp": ("bls", ""),
    "comm": ("", ""), "cp": ("afiprRuv", ""), "cut": ("s", "bcdf"), "date": ("u", ""), "diff": ("BNabiqrtuwy", "U"),
    "dirname": ("", ""), "du": ("abchkms", "d"), "false": ("", ""), "file": ("bi", ""),
    "grep": ("EFGHILPabchilnoqrsvwxz", "ABCm"), "head": ("qv", "cn"), "jq": ("cr", ""), "ldd": ("v", ""),
    "ls": ("AFGRSXacdfghilmnopqrstux", ""), "mkdir": ("pv", ""), "mv": ("finuv", ""), "nl": ("", "bnsvw"),
    "pwd": ("", ""), "realpath": ("", ""), "rg": ("FHINPSUcilnoqsvwx", "ABCgmt"), "rm": ("fiRrv", ""),
    "sed": ("Einr", ""), "sha256sum": ("", ""), "sleep": ("", ""), "sort": ("Rbdfghinruv", "kt"), "stat": ("", "c"),
    "tail": ("qv", "cn"), "tee": ("a", ""), "test": ("bcdefghkLnprsuwxz", ""), "touch": ("", ""), "tr": ("cds", ""),
    "tree": ("Dadfhis", "LI"), "true": ("", ""), "uniq": ("cdiu", "fsw"), "wc": ("Lclmw", ""), "which": ("a", ""),
}  # fmt: skip
"""Programs by their options without a value and with one; none of them names a file or follows links."""
_LONG_OPTION: Final = re.compile(r"--(version|help|colou?r(=\w+)?|(exclude|exclude-dir|glob|include|type)=.+)")
_SEARCHES: Final = frozenset({"grep", "rg"})
_SCRIPTS: Final[Mapping[str, re.Pattern[str]]] = {
    "awk": re.compile(r"(/[^/]*/ ?)?\{ ?print( \$\w+(, ?\$\w+)*)? ?\}"),
    "jq": re.compile(r"\.[.\w\[\]-]*"),
    "sed": re.compile(r"[\d,$]{0,40}[dp]|s([/|#,])(?:(?!\1)[^\n;])*\1(?:(?!\1)[^\n;])*\1[gip\d]*"),
}
"""Scripts that print, delete or substitute: others can read files, run commands or show the environment."""
_READS_FOLDERS: Final = frozenset({"cp", "diff", "grep", "mv", "rg"})
_FIND_OPTION: Final = re.compile(
    r"-(i?name|i?path|type|m(ax|in)depth|size|m(time|min)|newer|not|o|or|a|and|print0?|prune|empty|\d+\w?)"
)


def reads_project(program: str, arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    """Return True if a program reads files of the project alone."""
    if program in _OTHER_READERS:
        return _OTHER_READERS[program](arguments, paths)
    operands = list_operands(arguments, *_READERS[program], _LONG_OPTION) if program in _READERS else None
    if operands is None:
        return False
    if operands and (program in _SEARCHES or program in _SCRIPTS):
        script = operands.pop(0)
        if script.is_pattern or (program in _SCRIPTS and not _SCRIPTS[program].fullmatch(script.text)):
            return False
    return all(map(paths.is_argument_inside, operands)) and _reads_folders_inside(program, arguments, operands, paths)


def _reads_folders_inside(
    program: str, arguments: list[ShellWord], operands: list[ShellWord], paths: ProjectPaths
) -> bool:
    """Return True if all folders that are read whole are inside."""
    if program not in _READS_FOLDERS:
        return True
    is_search = program == "rg"
    is_recursive = is_search or any(word.text.startswith("-") and "r" in word.text for word in arguments)
    sources = operands[:-1] if program in {"cp", "mv"} else operands
    folders = [word.text for word in sources] or ["."] * is_recursive
    return all(paths.is_tree_inside(folder, is_search=is_search) for folder in folders)


def _prints_arguments(arguments: list[ShellWord], _paths: ProjectPaths) -> bool:
    return not any(word.is_pattern for word in arguments)


def _finds_inside(arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    places = list(takewhile(lambda word: not word.text.startswith("-"), arguments))
    options = [word.text for word in arguments[len(places) :] if word.text.startswith("-")]
    return all(map(_FIND_OPTION.fullmatch, options)) and all(map(paths.is_argument_inside, places))


def _shows_schema(arguments: list[ShellWord], paths: ProjectPaths) -> bool:
    is_schema = [word.text for word in arguments[1:]] in ([".schema"], [".tables"])
    return is_schema and paths.is_argument_inside(arguments[0])


_OTHER_READERS: Final[Mapping[str, Callable[[list[ShellWord], ProjectPaths], bool]]] = {
    "echo": _prints_arguments,
    "find": _finds_inside,
    "git": is_local_git,
    "printf": _prints_arguments,
    "sqlite3": _shows_schema,
}
