"""Pager of long lists: `AGENT_MEMORY_PAGER`, `PAGER` or less, as Git chooses one."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import threading
from typing import Final

_USUAL: Final = "less"
_LESS: Final = "FRX"
"""Options of less: end if all fits on one screen, keep colours, leave the text on the screen."""


def find_pager() -> list[str]:
    """Return the pager's command; empty for `cat` or an open quote."""
    try:
        words = shlex.split(os.environ.get("AGENT_MEMORY_PAGER", os.environ.get("PAGER", _USUAL)))
    except ValueError:
        return []
    return [] if not words or words == ["cat"] or shutil.which(words[0]) is None else words


def show_in_pager(text: str, pager: list[str]) -> bool:
    """Show a text in a pager until it ends, also after Ctrl-C.

    Returns False if the pager cannot be started.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if is_main else None
    try:
        content, env = text.encode("utf-8", "backslashreplace"), {"LESS": _LESS, **os.environ}
        subprocess.run(pager, input=content, env=env, check=False)  # noqa: S603 - the user's choice
    except OSError:  # a file that is not a program
        return False
    finally:
        if is_main:
            signal.signal(signal.SIGINT, before)
    return True
