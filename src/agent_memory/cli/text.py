"""Commands in messages, and dates, as people read them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.late import compile_late
from agent_memory.models import utc_now

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from datetime import datetime

_RECOVERY: Final = {
    "memory_search or memory_list_recent": "`agent-memory search` or `agent-memory list`",
    "Run memory_status": "Run `agent-memory status`",
    "with memory_status": "with `agent-memory status`",
}
_COMMAND: Final = compile_late(r"(^|`|[|:] |\b(?:[Rr]un|in|or|then) )agent-memory ([a-z]+)([^`(,;|\n]*)(`?)")
_WITHOUT_OPTIONS: Final = ("workspace", "help")
"""Commands that work on no storage root."""
_WITHOUT_AGENT: Final = ("agents", "backup restore", "backup verify")
"""Commands that name the agent otherwise, or none."""


def for_shell(recovery: str) -> str:
    """Return a recovery sentence with commands instead of tools."""
    for tools, commands in _RECOVERY.items():
        recovery = recovery.replace(tools, commands)
    return recovery


def complete_commands(text: str, options: Mapping[str, str]) -> str:
    """Add required options to the `agent-memory` commands of a text.

    Args:
        text: Sentences for a person; a command follows a backtick, a colon, `run`, `or` or `then`.
        options: Value of `-a` and of `--root`, if the command that prints the text needed them.
    """
    return _COMMAND.sub(lambda match: _complete(match, options), text) if options else text


def _complete(match: re.Match[str], options: Mapping[str, str]) -> str:
    before, command, arguments, after = match.groups()
    if command in _WITHOUT_OPTIONS:
        return match[0]
    words = set(arguments.split())
    needs_agent = words.isdisjoint({"-a", "--agent"}) and not f"{command}{arguments}".startswith(_WITHOUT_AGENT)
    needed = {"--root": "--root" not in words, "-a": needs_agent}
    named = "".join(f" {option} {shlex.quote(value)}" for option, value in options.items() if needed[option])
    if before == after == "`" or before in {"", "| "}:
        end = arguments.rstrip()  # the whole of it is the command; in a sentence words follow
        return f"{before}agent-memory {command}{end}{named}{arguments[len(end) :]}{after}"
    return f"{before}agent-memory {command}{named}{arguments}{after}"


def shorten_home(path: Path) -> str:
    """Return a path with `~` in place of the home."""
    home = Path("~").expanduser()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def day(moment: datetime) -> str:
    """Return the local date, as the date filters understand it."""
    return f"{moment.astimezone():%Y-%m-%d}"


def describe_end(moment: datetime) -> str:
    """Return the end of a memory as a day with its weekday."""
    local, today = moment.astimezone(), utc_now().astimezone().date()
    is_whole_day = f"{local:%H:%M:%S}" == "23:59:59"
    text = f"{local:%Y-%m-%d (%a)}" if is_whole_day else f"{local:%Y-%m-%d (%a) %H:%M}"
    return f"{text}, today" if local.date() == today else text


def minute(moment: datetime) -> str:
    """Return the local date and time with its offset."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M %z}"
