"""Untrusted text in a conversation, and the tools that bring it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MAX_INPUT: Final = 100_000
"""Characters of a command that are checked."""

_SHELL: Final = re.compile(
    r"bash|shell|terminal|command|exec|interpreter|repl(?:_|$)|(?:^|_)(?:sh|zsh|cmd|run|process)(?:_|$)|^python$"
)
_NETWORK: Final = re.compile(
    r"https?:|\b(?:curl|wget|aria2c|httpie|https?|xh|lynx|w3m|links|ftp|sftp|scp|ssh|rsync|telnet|nc|ncat|gh|glab|"
    r"requests|httpx|urllib|aiohttp|Invoke-(?:WebRequest|RestMethod)|iwr|irm|DownloadString|"
    r"git\s+(?:pull|fetch|clone|ls-remote)|(?:npm|pnpm|yarn)\s+(?:view|info|show|audit)|pip\s+(?:index|download)|"
    r"kubectl|(?:docker|podman)\s+(?:logs|pull|search))\b|\bfetch\(",
    re.IGNORECASE,
)
_REACHES_OUT: Final = re.compile(r"web|http|url|fetch|mail|online|internet|brows|curl|wget|remote|download|crawl|scrap")
"""Part of a name that no pattern for local tools excuses: the name may come from an untrusted source."""
_SHOWS_OURS: Final = re.compile(
    r"\b(?:agent-memory|agent_memory\.cli)(?:\s+-\S+(?:\s+[^\s-]\S*)?){0,4}?\s+(?:search|list|ls|show|why|history|"
    r"restore|undo|briefing|conflicts|suspects|resources|topics?|entity|entities|episodes|summaries|export|archive|"
    r"workspace\s+(?:table|row|next|status|diff|export))\b"
)
"""Commands of our own that also show untrusted text, with a mark that a model may overlook."""


class Taint:
    """Untrusted text in the conversation of a root session and its children.

    The text that a child read comes back to the root in its answer, and that of the root goes to a child in its task.

    Attributes:
        by: Name of the first tool that brought it, or None.
        has_foreign_results: True if a tool that is not ours answered.
        on_change: Called after each change.
    """

    def __init__(self) -> None:
        self.by: str | None = None
        self.has_foreign_results = False
        self.on_change: Callable[[], None] = lambda: None

    def note(self, by: str) -> None:
        """Note that untrusted text came in."""
        if self.by is None:
            self.by = by
            self.on_change()

    def note_foreign_result(self) -> None:
        """Note that a tool that is not ours answered."""
        if not self.has_foreign_results:
            self.has_foreign_results = True
            self.on_change()

    def clear(self) -> None:
        """Clear the marks after the conversation was emptied.

        A compaction does not empty it: its summary may repeat untrusted text.
        """
        if self.by is not None or self.has_foreign_results:
            self.by, self.has_foreign_results = None, False
            self.on_change()


class UntrustedTools:
    """Tools with untrusted output, by name and by a shell's commands.

    Args:
        patterns: Patterns (`fnmatch`, case ignored) of names of untrusted tools.
        trusted: Patterns of names of trusted tools. They do not excuse a name that is spelled out in `patterns`, nor,
            as patterns, a name such as `grep_web` that says that the tool reaches out.
    """

    def __init__(self, patterns: Iterable[str], trusted: Iterable[str]) -> None:
        self._patterns = tuple(pattern.lower() for pattern in patterns)
        self._trusted = tuple(pattern.lower() for pattern in trusted)

    def has_name(self, tool_name: str) -> bool:
        """Return True if a pattern is exactly the name of a tool."""
        return tool_name.lower() in self._patterns

    def matches(self, tool_name: str, tool_input: Any) -> bool:
        """Return True if the answer of a tool call is untrusted text.

        Args:
            tool_name: Name of the tool.
            tool_input: Input of the call; checked for shells alone.
        """
        name = tool_name.lower()
        if self.has_name(name):
            return True
        if name in self._trusted:
            return False
        if _REACHES_OUT.search(name) is None and any(fnmatchcase(name, pattern) for pattern in self._trusted):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self._patterns):
            return True
        if _SHELL.search(name) is None:
            return False
        command = str(tool_input)[:_MAX_INPUT]
        return _NETWORK.search(command) is not None or _SHOWS_OURS.search(command) is not None
