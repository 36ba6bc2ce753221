"""Child processes: their command, environment and rights."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from pathlib import Path
from typing import Final

from agent_memory.files.environment import environment_without_keys

_OTHERS: Final = 0o077
_NO_CORE: Final = 1 if sys.platform == "linux" else 0
"""Bytes of a core file. Linux hands one to a program that `core_pattern` names also where the limit is none, and not
where it is one byte; a file of one byte it does not begin (fs/coredump.c, "RLIMIT_CORE is set to 1, aborting core")."""


def keep_to_itself() -> None:
    """Give others no right to what this process makes, and have no memory of it written to a disk when it dies.

    Its memory has texts and vectors of an agent; a core file lies wherever the system puts it, for as long as it likes.
    """
    os.umask(_OTHERS)
    with contextlib.suppress(OSError, ValueError):  # a limit of zero, which must not be raised, does nearly the same
        resource.setrlimit(resource.RLIMIT_CORE, (_NO_CORE, _NO_CORE))


def python_module(name: str) -> list[str]:
    """Return the command that runs a module of ours in this interpreter.

    With -P: the agent's working folder may hold any `json.py`, and must not be searched for modules.
    """
    return [sys.executable, "-P", "-m", name]


def child_environment() -> dict[str, str]:
    """Return the environment of a child process.

    This package can be imported, and numeric libraries have one thread.
    """
    home = str(Path(__file__).parents[2])
    places = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**environment_without_keys(), "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
