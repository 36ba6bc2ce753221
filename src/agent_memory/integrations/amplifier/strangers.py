"""Which tools bring a stranger's words into a conversation, by name or a shell's orders; and whether they did."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LOW_TRUST: Final = "a memory of low trust"
"""What brings a stranger's words back that one of our own tools shows."""
_MAX_INPUT: Final = 100_000
"""Characters of a command that are looked at."""

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
"""A part of a name that a pattern for local tools does not excuse: who names a tool may be a stranger."""
_SHOWS_OURS: Final = re.compile(
    r"\b(?:agent-memory|agent_memory\.cli)(?:\s+-\S+(?:\s+[^\s-]\S*)?){0,4}?\s+(?:search|list|ls|show|why|history|"
    r"restore|undo|briefing|conflicts|suspects|resources|topics?|entity|entities|episodes|summaries|export|archive|"
    r"workspace\s+(?:table|row|next|status|diff|export))\b"
)
"""Commands of our own that show what strangers said, too, with a mark that a model may overlook."""


class Taint:
    """Whether a stranger's text is in a conversation: one for a root session and all its children.

    What a child read comes back to its root in the child's answer, and what a root read goes to a child in its orders.

    Attributes:
        by: The tool that brought it first, or None.
        has_foreign_results: True if a tool that is not ours answered.
    """

    def __init__(self) -> None:
        self.by: str | None = None
        self.has_foreign_results = False
        self.on_change: Callable[[], None] = lambda: None

    def note(self, by: str) -> None:
        """Note that a stranger's text came in."""
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


class Strangers:
    """Tells a tool whose output is a stranger's words from one that reads what is here.

    Args:
        patterns: Names of tools (`fnmatch`, case ignored) whose output is strangers' words.
        trusted: Names of tools that are not, although a pattern fits; a name that `patterns` spells out is not among
            them, nor one that says that it reaches out, such as `grep_web`, unless it is spelled out here.
    """

    def __init__(self, patterns: Iterable[str], trusted: Iterable[str]) -> None:
        self._patterns = tuple(pattern.lower() for pattern in patterns)
        self._trusted = tuple(pattern.lower() for pattern in trusted)

    def are_spelled_out(self, tool_name: str) -> bool:
        """Return True if a pattern is exactly the name of a tool."""
        return tool_name.lower() in self._patterns

    def speak_by(self, tool_name: str, tool_input: Any) -> bool:
        """Return True if what this tool answered holds a stranger's words.

        Args:
            tool_name: The tool's.
            tool_input: What it was called with; only a shell's is looked at.
        """
        name = tool_name.lower()
        if self.are_spelled_out(name):
            return True
        if name in self._trusted:
            return False
        if _REACHES_OUT.search(name) is None and any(fnmatchcase(name, pattern) for pattern in self._trusted):
            return False
        if any(fnmatchcase(name, pattern) for pattern in self._patterns):
            return True
        if _SHELL.search(name) is None:
            return False
        ordered = str(tool_input)[:_MAX_INPUT]
        return _NETWORK.search(ordered) is not None or _SHOWS_OURS.search(ordered) is not None


def calls_in(messages: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and input of each tool call in a conversation, in any of the forms that hosts keep it."""
    for message in messages:
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        for call in (*(message.get("tool_calls") or ()), *(content if isinstance(content, list) else ())):
            if not isinstance(call, dict):
                continue
            inner = call["function"] if isinstance(call.get("function"), dict) else call
            name = inner.get("name") or inner.get("tool")
            if isinstance(name, str):
                yield name, inner.get("arguments") or inner.get("input")
