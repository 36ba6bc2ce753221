"""Permanent installation of this program, for hosts that start it later."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.settings.installation import DISTRIBUTION, build_requirement, installed_version, is_temporary

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROGRAM: Final = "agent-memory"
_VENV: Final = "~/.local/share/agent-memory/venv"


@dataclass(frozen=True, slots=True)
class ProgramPlan:
    """Program that hosts start, and the commands that install it first.

    Attributes:
        program: Path of the program, after the installation.
        commands: Commands of the installation; none if the program is installed.
    """

    program: Path
    commands: tuple[tuple[str, ...], ...] = ()

    @property
    def shown(self) -> str:
        """The commands as a line of a shell."""
        return " && ".join(map(shlex.join, self.commands))

    def install(self) -> None:
        """Run the commands; what they print goes to stderr.

        Raises:
            ConfigurationError: One failed, or the installed program does not start.
        """
        for command in (*self.commands, (str(self.program), "--version")):
            try:
                code: int | str = subprocess.run(command, stdout=2, check=False).returncode  # noqa: S603 - shown
            except OSError as error:
                code = error.strerror or 1
            if code:
                raise ConfigurationError(
                    f"The installation failed: {shlex.join(command)} ended with {code}. No host was changed.",
                    code="not_installed",
                    recovery="Run the command yourself to see why, then connect again.",
                )


def plan_program() -> ProgramPlan:
    """Return the program for hosts, and how to install it.

    Raises:
        ValidationError: It was not started as a program.
    """
    path = shutil.which(_PROGRAM, path=str(Path(sys.executable).parent)) or shutil.which(_PROGRAM)
    if path is None:
        raise ValidationError("The program agent-memory is not on the PATH.", code="not_installed")
    program = Path(path).absolute()
    if not is_temporary(program.resolve().parent.parent):
        return ProgramPlan(program)
    if (uv := find_uv()) is None:
        folder = Path(_VENV).expanduser()
        pip = str(folder / "bin" / "python"), "-m", "pip", "install", "--upgrade", build_requirement()
        return ProgramPlan(folder / "bin" / _PROGRAM, ((sys.executable, "-m", "venv", str(folder)), pip))
    place = subprocess.run([uv, "tool", "dir"], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    # Without bytecode, the first start takes two seconds, and a host asks its model before it has our tools.
    command = uv, "tool", "install", "--force", "--compile-bytecode", "--python", version, build_requirement()
    return ProgramPlan(Path(place) / DISTRIBUTION / "bin" / _PROGRAM, (command,))


def find_uv() -> str | None:
    """Return the path of uv, or None."""
    return os.environ.get("UV") or shutil.which("uv")


def restart_with_extras(arguments: Sequence[str]) -> int | None:
    """Run the command line again with its extras, by `uvx`.

    Returns:
        Exit code of that run; None if this environment is not one of `uvx`.
    """
    if (uv := find_uv()) is None or not is_temporary(Path(sys.prefix)) or "UV_WITH_EXTRAS" in os.environ:
        return None
    requirement = build_requirement()
    if "@" not in requirement:
        requirement += f"=={installed_version()}"
    command = [uv, "tool", "run", "--from", requirement, _PROGRAM, *arguments]
    return subprocess.run(command, env={**os.environ, "UV_WITH_EXTRAS": "1"}, check=False).returncode  # noqa: S603
