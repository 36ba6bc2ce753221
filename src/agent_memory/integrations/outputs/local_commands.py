"""Shell commands that read or run only the project, without network.

An allow-list of programs and of the forms of their arguments. What is not understood is not of the project: another
program, an option that is not listed, a link or pattern that leads out, an expansion.
"""

from __future__ import annotations

import os
import re
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.integrations.outputs.project_paths import ProjectPaths
from agent_memory.integrations.outputs.project_readers import reads_project
from agent_memory.integrations.outputs.project_runners import ASSIGNMENT, is_runner, runs_project
from agent_memory.integrations.outputs.shell_words import parse_commands

if TYPE_CHECKING:
    from agent_memory.integrations.outputs.shell_words import SimpleCommand

_MAX_COMMAND: Final = 20_000
"""Characters of a command; a longer one is not checked."""
_MACHINE: Final = re.compile(
    r"cat /etc/os-release|df( -\w+)?( [\w./-]+)?|docker compose ps|free( -\w)?|lscpu|nproc|uname( -\w+)?"
    r"|(cargo|docker|dotnet|gcc|git|go|java|npm|php|pnpm|ruby|rustc|yarn) (-v|-version|--version|version)"
)
"""Whole commands that print facts of this machine."""
_PREFIXES: Final = frozenset({"!", "do", "else", "if", "nohup", "then", "time", "until", "while"})
_LAUNCHERS: Final = (["bundle", "exec"], ["poetry", "run"], ["uv", "run"])
_RUNS_NOTHING: Final = frozenset({"done", "fi", "for"})


def is_project_command(command: object, project: Path, folder: Path) -> bool:
    """Return True if a command certainly stays in the project.

    Args:
        command: Command of the shell.
        project: Root of the project.
        folder: Folder in which the shell runs.
    """
    if not isinstance(command, str) or len(command) > _MAX_COMMAND or "agent_memory" in command:
        return False
    commands, paths = parse_commands(command), ProjectPaths(project, folder)
    if not commands or not paths.is_inside("."):
        return False
    while commands and commands[0].words[:1] == [("cd", False)]:  # later a failed command may skip it
        target = [word.text for word in commands[0].words[1:]]
        if commands[0].end not in {"&&", ";", "\n"} or commands[0].files or len(target) != 1 or target[0][:1] == "-":
            return False
        if not paths.is_inside(target[0]) or not (paths.folder / target[0]).is_dir():
            return False
        paths = ProjectPaths(project, Path(os.path.realpath(paths.folder / target[0])))
        commands = commands[1:]
    return all(_is_local(simple, paths) for simple in commands)


def _is_local(command: SimpleCommand, paths: ProjectPaths) -> bool:
    """Return True if a simple command reads or runs only the project."""
    words = list(dropwhile(lambda word: word.text in _PREFIXES, command.words))
    if not all(map(paths.is_argument_inside, command.files)):
        return False
    texts = [word.text for word in words]
    if _MACHINE.fullmatch(" ".join(texts)):
        return True
    if texts[:2] in _LAUNCHERS:
        words = words[2:]
    rest = list(dropwhile(lambda word: ASSIGNMENT.fullmatch(word.text), words))
    is_changed = len(rest) < len(words)
    if not rest or rest[0].text in _RUNS_NOTHING:
        return all(map(paths.is_argument_inside, words))
    program, arguments = _find_program(rest[0].text, paths), rest[1:]
    if is_runner(program):
        return all(map(paths.is_argument_inside, words[: -len(rest)])) and runs_project(program, arguments, paths)
    return not is_changed and reads_project(program, arguments, paths)


def _find_program(word: str, paths: ProjectPaths) -> str:
    """Return a program's name, empty for one in another folder.

    The interpreter of a virtual environment of the project is a link out of it.
    """
    folder, slash, name = word.rpartition("/")
    if not slash or (paths.is_inside(folder or "/") and paths.is_inside(word)):
        return name
    is_environment = paths.is_inside(folder or "/") and (paths.folder / folder / "../pyvenv.cfg").is_file()
    return name if is_environment else ""
