"""Untrusted text, outputs of tools, and files that the model wrote."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agent_memory.files.layout import find_project_root
from agent_memory.files.names import SCRATCHPAD
from agent_memory.models.identifiers import AFTER_PROJECT, TextOrigin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator

OutputKind = Literal["trusted", "project", "untrusted"]
"""`project`: output of a command or file of the project, without network."""

OWN_PACKAGES: Final = frozenset(
    {
        "agent_memory",
        "amplifier_module_tool_memory_knowledge",
        "amplifier_module_tool_memory_semantic",
        "amplifier_module_tool_memory_workspace",
    }
)
"""Packages whose tools note untrusted text themselves, by the trust of each record."""
PASTED_TEXT: Final = "pasted text"
"""Origin of text that the user pastes or attaches."""
FILES: Final = "amplifier_module_tool_filesystem"
"""Package of the host's file tools."""
LOCAL_TOOLS: Final = ("amplifier_module_tool_todo",)
"""Packages that return only what the model gave them; always in `local_tools`."""
_WRITERS: Final = frozenset({"write_file", "edit_file"})
"""Tools of `FILES` that return what the model wrote."""
SEARCH: Final = "amplifier_module_tool_search"
SHELL: Final = "amplifier_module_tool_bash"
_SHELL_KEYS: Final = frozenset({"command", "description", "run_in_background", "timeout"})
_DELEGATES: Final = frozenset({"amplifier_module_tool_task", "amplifier_module_tool_delegate"})

_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")
_NAME: Final = "agent-memory-model-writes"
_EARLY: Final = -1000
"""Hook priority: before any hook that may read the scratchpad."""
_MARGIN: Final = 0.05
"""Seconds; a file system's clock may be some milliseconds behind."""
_MAX_SPANS: Final = 50
_FILE: Final = "scratchpad"
_MAX_VALUES: Final = 1000


class Taint:
    """Untrusted text in the conversation of a root session and its children.

    The text that a child read comes back to the root in its answer, and that of the root goes to a child in its task.

    Attributes:
        by: Name of the first tool that brought it, or None.
        is_of_project: True if all of it is output of the project, without network.
        project: Name of the project that the output is of; empty if unknown.
        origin: Printed `TextOrigin` of what the agent says now.
        on_change: Called after each change.
    """

    def __init__(self) -> None:
        self.by: str | None = None
        self.is_of_project = False
        self.project = ""
        self.origin = "model"
        self.on_change: Callable[[], None] = lambda: None

    def note(self, by: str, package: str = "", *, is_of_project: bool = False) -> None:
        """Note that untrusted text came in.

        Args:
            by: Name of the tool, or what else brought it.
            package: Package of the tool.
            is_of_project: True for output of the project, without network.
        """
        if self.by is None or (self.is_of_project and not is_of_project):
            self._set(by, package, is_of_project=is_of_project)
            self.on_change()

    def restore(self, by: str, project: str, *, is_of_project: bool) -> None:
        """Restore the origin that an earlier process noted and wrote.

        Args:
            by: What brought the text.
            project: Name of the project that the text is of.
            is_of_project: True for output of that project, without network.
        """
        if self.by is None or self.is_of_project:
            self.project = self.project if self.by else project
            self._set(self.by or by, "", is_of_project=is_of_project and project == self.project)

    def _set(self, by: str | None, package: str, *, is_of_project: bool) -> None:
        self.by, self.is_of_project = by, is_of_project
        after = AFTER_PROJECT if is_of_project else str(TextOrigin("agent after", package or by or ""))
        self.origin = after if by is not None else "model"

    def clear(self) -> None:
        """Clear the marks after the conversation was emptied.

        A compaction does not empty it: its summary may repeat untrusted text.
        """
        if self.by is not None:
            self.project = ""
            self._set(None, "", is_of_project=False)
            self.on_change()


class CalledTool(NamedTuple):
    """Tool of a call.

    Attributes:
        name: Name that the model called.
        package: Python package of the mounted object; empty if none is mounted.
        arguments: Arguments of the call.
    """

    name: str
    package: str
    arguments: Any

    @classmethod
    def of(cls, name: str, tool: object | None, arguments: Any) -> CalledTool:
        """Return the tool of a call.

        Args:
            name: Name that the model called.
            tool: Mounted object, or None.
            arguments: Arguments, or their JSON.
        """
        package = "" if tool is None else type(tool).__module__.partition(".")[0]
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except ValueError:
                arguments = {"command": arguments}
        return cls(name, package, arguments)

    @property
    def is_own(self) -> bool:
        """True for a tool of this bundle."""
        return self.package in OWN_PACKAGES

    @property
    def is_delegate(self) -> bool:
        """True for a tool that starts a sub-session."""
        return self.package in _DELEGATES

    @property
    def path(self) -> str:
        """File that a file tool works on; empty without one."""
        values = self.arguments if isinstance(self.arguments, dict) else {}
        path = values.get("file_path") or values.get("path")
        return path if isinstance(path, str) else ""


class ToolList:
    """Tools that the user trusts, and those that they do not.

    Args:
        local: Packages, or `PACKAGE:TOOL`, whose output is trusted.
        untrusted: Packages or names, also as patterns (`fnmatch`, case ignored), whose output is untrusted.
        named: Patterns of names of tools whose output is trusted.
    """

    def __init__(self, local: Iterable[str] = (), untrusted: Iterable[str] = (), named: Iterable[str] = ()) -> None:
        self._local = {*LOCAL_TOOLS, *local}
        self._untrusted = tuple(pattern.lower() for pattern in untrusted)
        self._named = tuple(pattern.lower() for pattern in named)

    def classify(self, tool: CalledTool, folder: Path, listed: Collection[str] = ()) -> OutputKind:
        """Return the kind of a call's output.

        Args:
            tool: Tool of the call.
            folder: Working folder of the session.
            listed: Packages, or `PACKAGE:TOOL`, that the user trusts by command.
        """
        if _matches(self._untrusted, tool):
            return "untrusted"
        if tool.is_own or {tool.package, f"{tool.package}:{tool.name}"} & {*self._local, *listed}:
            return "trusted"
        if any(fnmatchcase(tool.name.lower(), pattern) for pattern in self._named):
            return "trusted"
        if not _is_of_project(tool, folder):
            return "untrusted"
        return "trusted" if tool.package == FILES and tool.name in _WRITERS else "project"


def _is_of_project(tool: CalledTool, folder: Path) -> bool:
    """Return True if a call certainly reads the project alone."""
    from agent_memory.integrations.project_calls import is_project_command, is_project_file, is_project_search

    project, arguments = find_project_root(folder), tool.arguments
    if project is None or not isinstance(arguments, dict):
        return False
    if tool.package == FILES:
        return is_project_file(arguments, project, folder)
    if tool.package == SEARCH:
        return is_project_search(tool.name, arguments, project, folder)
    is_plain = tool.package == SHELL and arguments.keys() <= _SHELL_KEYS  # no other folder or environment
    return is_plain and is_project_command(arguments.get("command"), project, folder)


def _matches(patterns: Iterable[str], tool: CalledTool) -> bool:
    return any(fnmatchcase(name.lower(), pattern) for pattern in patterns for name in (tool.name, tool.package))


class DelegateCalls:
    """Running calls of delegates, and sub-sessions that began during them."""

    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._joined: dict[str, list[tuple[str, str]]] = {}  # ID and agent, by ID of the parent

    def begin(self, session_id: str) -> None:
        """Note that a session calls a delegate."""
        if not self._running[session_id]:
            self._joined[session_id] = []  # what joined before belongs to no call
        self._running[session_id] += 1

    def end_all(self, session_id: str) -> None:
        """Note that no call of a session runs any more."""
        self._running[session_id] = 0

    def join(self, parent_id: str, session_id: str, agent: str) -> None:
        """Note a sub-session with our modules, which notes what it reads."""
        self._joined.setdefault(parent_id, []).append((session_id, agent))

    def end(self, session_id: str, arguments: Any) -> bool:
        """Note the end of a call; return True if its sub-session joined.

        A call that names neither agent nor session has a sub-session if it runs alone.
        """
        running, joined = self._running[session_id], self._joined.get(session_id, [])
        self._running[session_id] = max(0, running - 1)
        names = arguments if isinstance(arguments, dict) else {}
        agent, resumed = (str(names.get(key) or "") for key in ("agent", "session_id"))
        for child in joined if running else ():
            is_only = not agent and not resumed and running == len(joined) == 1
            if is_only or (resumed == child[0] if resumed else agent and _is_of_agent(child, agent)):
                joined.remove(child)
                return True
        return False


def _is_of_agent(child: tuple[str, str], agent: str) -> bool:
    """Return True if ID or name of a sub-session is the agent's."""
    session_id, name = child
    return session_id.endswith(f"_{agent}") or _NO_LETTER.sub("-", agent.lower()) in {
        _NO_LETTER.sub("-", text.lower()) for text in (name, session_id.rpartition("_")[2])
    }


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
            self._add(_ToolCall(session_id, get_call_key(event), self._now()))

    def end_call(self, event: dict[str, Any], session_id: str = "") -> bool:
        """Note a tool call's end; return True if it names the file.

        A call without a reported beginning may have begun with the turn, or with the first running call.
        """
        if not self._is_meant(event):
            return False
        key, now = get_call_key(event), self._now()
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

    def is_scratchpad(self, path: str) -> bool:
        """Return True if a path names a scratchpad of the agents."""
        real = os.path.realpath(Path(path).expanduser())
        inside = any(real.startswith(f"{place}/") for place in self._places - {_FILE})
        return inside and Path(real).name == SCRATCHPAD

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


def get_call_key(event: dict[str, Any]) -> str:
    """Return the key of a tool call: its ID, else its input."""
    call_id = event.get("tool_call_id")
    return call_id if isinstance(call_id, str) and call_id else repr(event.get("tool_input"))
