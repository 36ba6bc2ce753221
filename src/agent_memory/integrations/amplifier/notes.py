"""What is kept of sessions for their resume: one small file each under `_sessions`.

A note has the same protection as the memories next to it: a program that can write one can write the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.files.names import SESSIONS
from agent_memory.files.temporary import remove_leftovers
from agent_memory.logs import get_logger
from agent_memory.memory.background import Background
from agent_memory.models import check_agent_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

log = get_logger(__name__)

_REMEMBERED_SESSIONS: Final = 1000
_FLAGS: Final = ("is_tainted", "is_stopped", "has_foreign_results")


@dataclass(frozen=True, slots=True)
class Note:
    """State of a session that is kept for its resume.

    Attributes:
        agent_id: The agent it was activated with, or None.
        is_tainted: Whether an untrusted text came in.
        is_stopped: Whether the user asked that nothing of the conversation is stored.
        has_foreign_results: True if a tool that is not ours answered.
        proposals: Open proposals, each with the time when it was shown.
        replaced: IDs of memories that the model replaced.
    """

    agent_id: str | None = None
    is_tainted: bool = False
    is_stopped: bool = False
    has_foreign_results: bool = False
    proposals: Mapping[str, float] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()


class SessionMemory:
    """What is kept of sessions for their resume: one small file each under `_sessions`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / SESSIONS

    def remember(self, session_id: str, note: Note) -> None:
        """Keep a session's note in place of the one before.

        Raises:
            StorageError: It could not be written.
        """
        make_private_folder(self._folder)
        path = self._path(session_id)
        content = {"session_id": session_id, **asdict(note)}
        with translated(path, "write"):
            replace_file(path, json.dumps(content).encode(), durable=True)
            self._forget_oldest()
            remove_leftovers(self._folder)

    def recall(self, session_id: str) -> Note:
        """Return what was kept of this session; an unreadable note counts as none."""
        try:
            content = json.loads(self._path(session_id).read_text(encoding="utf-8"))
            name = content["agent_id"]
            flags = {flag: content.get(flag, False) is not False for flag in _FLAGS}
            shown = {str(proposal): float(moment) for proposal, moment in content.get("proposals", {}).items()}
            replaced = tuple(map(str, content.get("replaced", ())))
            return Note(check_agent_id(name) if name is not None else None, **flags, proposals=shown, replaced=replaced)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, AgentMemoryError):
            return Note()

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:24]}.json"

    def _forget_oldest(self) -> None:
        notes = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for note in notes[_REMEMBERED_SESSIONS:]:
            note.unlink(missing_ok=True)


class Resume:
    """Keeps the note of one session up to date, behind its conversation.

    Args:
        session_id: The session.
        root: Returns the folder of all agents, as it is configured by now.
        note: Returns what is to be kept.

    Attributes:
        settle: Waits for what is being kept.
    """

    def __init__(self, session_id: str, root: Callable[[], Path], note: Callable[[], Note]) -> None:
        self._session_id, self._root, self._note = session_id, root, note
        self._noting = asyncio.Lock()
        self._background = Background()
        self.settle = self._background.settle

    def recall(self, session_id: str = "") -> Note:
        """Return the note of this session, or of another session."""
        return SessionMemory(self._root()).recall(session_id or self._session_id)

    async def remember(self) -> None:
        """Keep the note as it is now."""
        try:
            async with self._noting:  # the note is made when it is its turn: none is written after a newer one
                await asyncio.to_thread(SessionMemory(self._root()).remember, self._session_id, self._note())
        except AgentMemoryError as error:  # what can only be read is read: no more is lost than the note at a resume
            log.warning("session_not_remembered", code=error.code, error=error.message)

    def remember_soon(self) -> None:
        """Keep the note as it is then, without waiting for it."""
        self._background.run(self.remember())
