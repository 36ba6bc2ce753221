"""When the model itself may have written scratchpad.yaml: a file tool's words must not pass for a person's."""

from __future__ import annotations

import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

_NAME: Final = "agent-memory-model-writes"
_EARLY: Final = -1000
"""Hook priority: before whatever may look at the scratchpad."""
_MARGIN: Final = 0.05
"""Seconds: a file system's clock may be some milliseconds behind."""
_REMEMBERED: Final = 50
_FILE: Final = "scratchpad"
_MOST_LOOKED_AT: Final = 1000
_MAX_TEXT: Final = 100_000
"""Characters of one text that are looked at for the folder of the agents."""
_DAP: Final = re.compile(r"lmay\.daphctarcs[^\s\"'`|;&<>]*")
"""A path to the scratchpad, read from its end: to look for its beginning takes the square of a long word's time."""


@dataclass(slots=True)
class _Call:
    """A tool's work on the file; without `until` it is under way, and only what `is_ended` was ended by its own end."""

    session_id: str
    key: str
    since: float
    until: float | None = None
    is_ended: bool = False


class ModelWrites:
    """The moments at which tools of the model worked on the scratchpad's file, in one root session and its children.

    Args:
        now: Seconds since 1970, as files are dated.
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._turn_since: float | None = None
        self._turns: list[tuple[float, float]] = []
        self._calls: list[_Call] = []
        self._places: frozenset[str] = frozenset({_FILE})

    def watch(self, storage_root: str) -> None:
        """Take what names this folder for a name of the file, too."""
        self._places |= names_of(storage_root)

    def listen(
        self,
        register: Callable[..., Callable[[], None]],
        session_id: str,
        look: Callable[[], Awaitable[None]],
        *,
        is_child: bool,
    ) -> list[Callable[[], None]]:
        """Follow a session's turns and tools by its hooks; of a sub-session only its tools. Returns how to end that.

        `look` has the file looked at, at the end of each turn: what is found later may be a person's.
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
        """Note that the model is at work from now on."""
        self.end_calls(session_id)
        self._turn_since = self._now()

    def end_turn(self, session_id: str = "") -> None:
        """Note that it is the user's turn; a sub-session may still be at work."""
        self.end_calls(session_id)
        if self._turn_since is not None:
            self._turns = [*self._turns, (self._turn_since, self._now())][-_REMEMBERED:]
        self._turn_since = None

    def end_calls(self, session_id: str = "") -> None:
        """Note that a session's tools work no longer: the host does not report the end of one that raised."""
        for call in self._calls:
            if call.until is None and call.session_id == session_id:
                call.until = self._now()

    def begin_call(self, event: dict[str, Any], session_id: str = "") -> None:
        """Note that a tool begins to work.

        Args:
            event: What the host reports of it: `tool_input` and, by some loops, `tool_call_id`.
            session_id: Whose tool it is.
        """
        if self._is_meant(event):
            self._add(_Call(session_id, _key(event), self._now()))

    def end_call(self, event: dict[str, Any], session_id: str = "") -> bool:
        """Note that a tool has ended; return whether it may have written the file.

        One whose beginning was not reported may have begun with the turn, or with the first that is under way.
        """
        if not self._is_meant(event):
            return False
        key, now = _key(event), self._now()
        begun = [call for call in self._calls if (call.session_id, call.key, call.is_ended) == (session_id, key, False)]
        if not begun:
            under_way = (call.since for call in self._calls if call.until is None)
            since = min((moment for moment in (self._turn_since, *under_way) if moment is not None), default=now)
            begun = [_Call(session_id, key, since)]
            self._add(begun[0])
        begun[0].until, begun[0].is_ended = now, True
        return True

    def wrote_at(self, moment: float, *, is_tainted: bool) -> bool:
        """Return True if what was saved at a moment may be the model's.

        A tool was at work that named the file or its folder; or, with a stranger's text in the conversation, any time
        within a turn.
        """
        now = self._now()
        windows = [(call.since, now if call.until is None else call.until) for call in self._calls]
        if is_tainted:
            windows += self._turns
            windows += [(self._turn_since, now)] if self._turn_since is not None else []
        return any(since - _MARGIN <= moment <= until + _MARGIN for since, until in windows)

    def _add(self, call: _Call) -> None:
        """Remember a call; those under way are all kept, of the others the latest."""
        ended = [each for each in self._calls if each.until is not None][:-_REMEMBERED]
        self._calls = [*(each for each in self._calls if each not in ended), call]

    def names_records(self, tool_input: Any) -> bool:
        """Return True if what a tool was given names the folder of the agents, for more than scratchpad.yaml."""
        folders = self._places - {_FILE}
        bare = (_DAP.sub("", text[:_MAX_TEXT][::-1])[::-1] for text in _texts_in(tool_input))
        return any(place in text for text in bare for place in folders)

    def _is_meant(self, event: dict[str, Any]) -> bool:
        """Return True if what a tool was given names the file or where it lies."""
        return any(place in text for text in _texts_in(event.get("tool_input")) for place in self._places)


def _texts_in(value: Any) -> Iterator[str]:
    """Yield the texts in what a tool was given, however deep; of a large one those that come first."""
    pending, looked_at = [value], 0
    while pending and looked_at < _MOST_LOOKED_AT:
        value = pending.pop()
        looked_at += 1
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list | tuple):
            pending.extend(value)


def names_of(storage_root: str) -> frozenset[str]:
    """Return the ways in which a tool's arguments may name a folder: as it was given, whole, from home, from here.

    From home or from here by two parts of a path at least: one alone, such as `memory`, is in every other text.
    """
    given = storage_root.rstrip("/\\") or storage_root
    names = {given}
    with contextlib.suppress(OSError, RuntimeError, ValueError):  # no home, no folder to be in; no path
        whole = Path(given).expanduser().absolute()
        names |= {str(whole), os.path.realpath(whole)}
        for base, prefixes in ((Path.cwd(), ("./",)), (Path.home(), ("~/", "$HOME/", "${HOME}/"))):
            if whole.is_relative_to(base) and (parts := whole.relative_to(base).parts):
                names.update(prefix + "/".join(parts) for prefix in prefixes)
                names.update({"/".join(parts), "\\".join(parts)} if len(parts) > 1 else ())
    return frozenset(name for name in names if "/" in name or "\\" in name)


def _key(event: dict[str, Any]) -> str:
    """Return what distinguishes a call from others that are under way: its id where the host gives one."""
    call_id = event.get("tool_call_id")
    return call_id if isinstance(call_id, str) and call_id else repr(event.get("tool_input"))
