"""Calls of delegates, matched with the sub-sessions that they start."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Final

_NO_LETTER: Final = re.compile(r"[^a-z0-9]+")


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
