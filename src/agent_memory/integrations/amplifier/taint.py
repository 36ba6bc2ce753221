"""Untrusted text in a conversation, and files that the model wrote."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

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

_NAME: Final = "agent-memory-model-writes"
_EARLY: Final = -1000
"""Hook priority: before any hook that may read the scratchpad."""
_MARGIN: Final = 0.05
"""Seconds; a file system's clock may be some milliseconds behind."""
_MAX_SPANS: Final = 50
_FILE: Final = "scratchpad"
_MAX_VALUES: Final = 1000
_MAX_TEXT: Final = 100_000
"""Characters of one text that are searched for the folder of the agents."""
_REVERSED_PATH: Final = re.compile(r"lmay\.daphctarcs[^\s\"'`|;&<>]*")
"""Path to the scratchpad, read from its end: a search for its beginning takes quadratic time in a long word."""


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


@dataclass(slots=True)
class _ToolCall:
    """Call of a tool that names the file.

    Attributes:
        session_id: ID of its session.
        key: Key that tells it from other running calls.
        since: Time of its beginning.
        until: Time of its end; None while it runs.
        is_ended: True if the host reported its end.
    """

    session_id: str
    key: str
    since: float
    until: float | None = None
    is_ended: bool = False


class ModelWrites:
    """Times at which tools of the model worked on scratchpad.yaml.

    One for a root session and its children.

    Args:
        now: Clock of the file system, in seconds since 1970.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._turn_since: float | None = None
        self._turns: list[tuple[float, float]] = []
        self._calls: list[_ToolCall] = []
        self._places: frozenset[str] = frozenset({_FILE})

    def watch(self, storage_root: str) -> None:
        """Treat names of this folder as names of the file, too."""
        self._places |= list_folder_names(storage_root)

    def listen(
        self,
        register: Callable[..., Callable[[], None]],
        session_id: str,
        look: Callable[[], Awaitable[None]],
        *,
        is_child: bool,
    ) -> list[Callable[[], None]]:
        """Register hooks for a session's turns and tools; return their removers.

        Args:
            register: Function of the host that registers a hook.
            session_id: ID of the session.
            look: Reads the file at the end of each turn; later edits may be a person's.
            is_child: True for a sub-session, whose turns are not the user's.
        """

        async def begin_turn(_event: str, _data: dict[str, Any]) -> None:
            self.begin_turn(session_id)

        async def end_turn(_event: str, _data: dict[str, Any]) -> None:
            await look()
            self.end_turn(session_id)

        async def begin_call(_event: str, data: dict[str, Any]) -> None:
            self.begin_call(data, session_id)

        turns = {} if is_child else {"prompt:submit": begin_turn, "orchestrator:complete": end_turn}
        handlers = {"tool:pre": begin_call, **turns}
        undo = [register(event, handler, priority=_EARLY, name=_NAME) for event, handler in handlers.items()]
        return [*undo, lambda: self.end_calls(session_id)]

    def begin_turn(self, session_id: str = "") -> None:
        """Note that the model works from now on."""
        self.end_calls(session_id)
        self._turn_since = self._now()

    def end_turn(self, session_id: str = "") -> None:
        """Note that the model's turn ended; a sub-session may still work."""
        self.end_calls(session_id)
        if self._turn_since is not None:
            self._turns = [*self._turns, (self._turn_since, self._now())][-_MAX_SPANS:]
        self._turn_since = None

    def end_calls(self, session_id: str = "") -> None:
        """Note the end of a session's running calls.

        The host does not report the end of one that raised.
        """
        for call in self._calls:
            if call.until is None and call.session_id == session_id:
                call.until = self._now()

    def begin_call(self, event: dict[str, Any], session_id: str = "") -> None:
        """Note the beginning of a tool call.

        Args:
            event: Payload of the host: `tool_input` and, by some loops, `tool_call_id`.
            session_id: ID of the session that called it.
        """
        if self._is_meant(event):
            self._add(_ToolCall(session_id, _get_key(event), self._now()))

    def end_call(self, event: dict[str, Any], session_id: str = "") -> bool:
        """Note a tool call's end; return True if it names the file.

        A call without a reported beginning may have begun with the turn, or with the first running call.
        """
        if not self._is_meant(event):
            return False
        key, now = _get_key(event), self._now()
        begun = [call for call in self._calls if (call.session_id, call.key, call.is_ended) == (session_id, key, False)]
        if not begun:
            running = (call.since for call in self._calls if call.until is None)
            since = min((moment for moment in (self._turn_since, *running) if moment is not None), default=now)
            begun = [_ToolCall(session_id, key, since)]
            self._add(begun[0])
        begun[0].until, begun[0].is_ended = now, True
        return True

    def wrote_at(self, moment: float, *, is_tainted: bool) -> bool:
        """Return True if a file saved then may be the model's.

        It is if a tool call that names the file or its folder was running, or, in a tainted session, any turn.
        """
        now = self._now()
        windows = [(call.since, now if call.until is None else call.until) for call in self._calls]
        if is_tainted:
            windows += self._turns
            windows += [(self._turn_since, now)] if self._turn_since is not None else []
        return any(since - _MARGIN <= moment <= until + _MARGIN for since, until in windows)

    def _add(self, call: _ToolCall) -> None:
        """Add a call; discard the oldest of those that ended."""
        discarded = [ended for ended in self._calls if ended.until is not None][:-_MAX_SPANS]
        self._calls = [*(earlier for earlier in self._calls if earlier not in discarded), call]

    def names_records(self, tool_input: Any) -> bool:
        """Return True if a tool's input names other files of the agents."""
        folders = self._places - {_FILE}
        bare = (_REVERSED_PATH.sub("", text[:_MAX_TEXT][::-1])[::-1] for text in _iter_texts(tool_input))
        return any(place in text for text in bare for place in folders)

    def _is_meant(self, event: dict[str, Any]) -> bool:
        """Return True if a tool's input names the file or its folder."""
        return any(place in text for text in _iter_texts(event.get("tool_input")) for place in self._places)


def _iter_texts(value: Any) -> Iterator[str]:
    """Yield the texts in a tool's input, up to a limit."""
    pending, checked = [value], 0
    while pending and checked < _MAX_VALUES:
        value = pending.pop()
        checked += 1
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)


def list_folder_names(storage_root: str) -> frozenset[str]:
    """Return paths that name a folder: as configured, absolute, relative.

    Relative to the home or the current folder they have two parts at least: one part, such as `memory`, is in many
    texts.
    """
    configured = storage_root.rstrip("/\\") or storage_root
    names = {configured}
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # no home, no current folder, or no path
        folder = Path(configured).expanduser().absolute()
        names |= {str(folder), os.path.realpath(folder)}
        for base, prefixes in ((Path.cwd(), ("./",)), (Path.home(), ("~/", "$HOME/", "${HOME}/"))):
            if folder.is_relative_to(base) and (parts := folder.relative_to(base).parts):
                names.update(prefix + "/".join(parts) for prefix in prefixes)
                names.update({"/".join(parts), "\\".join(parts)} if len(parts) > 1 else ())
    return frozenset(name for name in names if "/" in name or "\\" in name)


def _get_key(event: dict[str, Any]) -> str:
    """Return the key of a tool call: its ID, else its input."""
    call_id = event.get("tool_call_id")
    return call_id if isinstance(call_id, str) and call_id else repr(event.get("tool_input"))
