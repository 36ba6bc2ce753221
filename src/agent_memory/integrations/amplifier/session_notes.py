"""Notes of sessions for their resume: one small file each under `_sessions`.

A file per agent has the IDs of the typed rules whose first use was shown.

A note has the same protection as the memories next to it: a program that can write one can write the other.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.files.atomic import make_private_folder, remove_leftovers, replace_file, translated
from agent_memory.files.lock import folder_lock
from agent_memory.files.names import SESSIONS
from agent_memory.models import check_agent_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

_MAX_NOTES: Final = 1000
_MAX_RULES: Final = 10_000
_FLAGS: Final = ("is_tainted", "is_stopped", "is_of_project")


@dataclass(frozen=True, slots=True)
class SessionNote:
    """State of a session for its resume.

    Attributes:
        agent_id: Agent that it was activated with, or None.
        is_tainted: True if untrusted text came in.
        is_stopped: True if the user asked to store nothing of the conversation.
        is_of_project: True if that text is output of the project alone.
        proposals: Open proposals, each with the time when it was shown.
        replaced: IDs of memories that the model replaced.
        project: Name of the project that the untrusted text is of.
    """

    agent_id: str | None = None
    is_tainted: bool = False
    is_stopped: bool = False
    is_of_project: bool = False
    proposals: Mapping[str, float] = field(default_factory=dict)
    replaced: tuple[str, ...] = ()
    project: str = ""


class SessionNotes:
    """Notes of all sessions in one storage root.

    Args:
        root: Folder of all agents.
    """

    def __init__(self, root: Path) -> None:
        self._folder = root / SESSIONS

    def remember(self, session_id: str, note: SessionNote) -> None:
        """Write a session's note in place of the last one.

        Raises:
            StorageError: It could not be written.
        """
        make_private_folder(self._folder)
        path = self._path(session_id)
        content = {"session_id": session_id, **asdict(note)}
        with translated(path, "write"):
            replace_file(path, json.dumps(content).encode(), durable=True)
            self._delete_oldest()
            remove_leftovers(self._folder)

    def recall(self, session_id: str) -> SessionNote:
        """Return a session's note, an empty one if it cannot be read."""
        try:
            content = json.loads(self._path(session_id).read_text(encoding="utf-8"))
            name = content["agent_id"]
            flags = {flag: content.get(flag, False) is not False for flag in _FLAGS}
            flags["is_tainted"] |= content.get("has_foreign_results", False) is not False  # of earlier versions
            shown = {str(proposal): float(moment) for proposal, moment in content.get("proposals", {}).items()}
            replaced = tuple(map(str, content.get("replaced", ())))
            return SessionNote(
                check_agent_id(name) if name is not None else None,
                **flags,
                proposals=shown,
                replaced=replaced,
                project=str(content.get("project", "")),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError, AgentMemoryError):
            return SessionNote()

    def claim_rules(self, agent_id: str, rule_ids: Collection[str]) -> set[str]:
        """Return the rules that no session claimed before, and note them.

        Raises:
            StorageError: They could not be noted.
        """
        path = self._folder / f"{agent_id.lower()}.rules"
        make_private_folder(self._folder)
        with folder_lock(self._folder), translated(path, "write"):
            claimed = path.read_text("utf-8", "replace").split() if path.exists() else []
            new = set(rule_ids) - set(claimed)
            if new:
                replace_file(path, "\n".join([*claimed, *sorted(new)][-_MAX_RULES:]).encode(), durable=True)
        return new

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:24]}.json"

    def _delete_oldest(self) -> None:
        notes = sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
        for note in notes[_MAX_NOTES:]:
            note.unlink(missing_ok=True)
