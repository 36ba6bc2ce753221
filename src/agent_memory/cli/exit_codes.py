"""Exit codes of commands, their meanings, and the errors with them."""

import re
from typing import Final

from agent_memory.errors import AgentMemoryError, BusyError, UnknownIdError

FAILED: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
BUSY: Final = 4
STOPPED: Final = 130
"""As shells count a process that SIGINT ends: 128 + 2."""
MEANINGS: Final = {
    0: "done",
    FAILED: "failed, or partly: stderr says what to do",
    USAGE: "usage: wrong options or arguments",
    NOT_FOUND: "not found: no memory has this ID, or a search has no result",
    BUSY: "busy: another process held the lock; nothing was written",
    STOPPED: "Ctrl-C",
}
"""Meanings by code, for the help and docs/reference/cli.md."""
UNKNOWN: Final = 3
"""Of commands that monitors call, see `MonitorCommand`: their verdict is unknown."""
_USAGE_CODES: Final = frozenset({"invalid_filter", "usage", "unknown_category", "ambiguous_id"})


def get_exit_code(error: AgentMemoryError) -> int:
    """Return the exit code of a command that fails with `error`."""
    if isinstance(error, UnknownIdError):
        return NOT_FOUND
    if isinstance(error, BusyError):
        return BUSY
    return USAGE if error.code in _USAGE_CODES else FAILED


def describe_exit_codes() -> str:
    """Return the line of the help about exit codes."""
    words = {code: re.split("[:,]", meaning)[0] for code, meaning in MEANINGS.items()}
    return f"Exit codes: {', '.join(f'{code} {word}' for code, word in words.items())}."
