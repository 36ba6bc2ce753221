"""Who the agent of a session is. Reads the host's configuration; decides nothing else.

A root session's agent comes, in this order, from: an activation (in this session, or remembered from before a resume),
the capability `agent_identity`, `session.capabilities.agent_identity` of the configuration, a module's `agent_id`.
A child session has its root's agent and nothing else: hosts label children with the name of the *delegate*, which is
no identity.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.journal.files import make_private_folder, replace_file, translated
from agent_memory.journal.leftovers import remove_leftovers
from agent_memory.models import check_agent_id

if TYPE_CHECKING:
    from pathlib import Path

MEMORY_ASSISTANT: Final = "memory-assistant"
_ACTIVATED: Final = "agent_memory_activated"
MODES: Final = ("autonomous", "manual")
_REMEMBERED_SESSIONS: Final = 1000


@dataclass(frozen=True, slots=True)
class Configured:
    """What the host's configuration says: the agent (if any), whether memory is wanted, and in which mode.

    `mode` is `autonomous` (capture runs) or `manual` (only tools write).
    """

    agent_id: str | None = None
    enabled: bool = True
    mode: str = "autonomous"


def configured(coordinator: Any, module_agent_id: str | None) -> Configured:
    """Read the identity a session was configured with.

    Raises:
        ValidationError: The configured name cannot name an agent.
    """
    capabilities = _capabilities(coordinator)
    memory = capabilities.get("memory")
    memory = memory if isinstance(memory, dict) else {}
    name = coordinator.get_capability("agent_identity") or capabilities.get("agent_identity") or module_agent_id
    mode = memory.get("mode", "autonomous")
    return Configured(
        agent_id=check_agent_id(name) if name else None,
        enabled=memory.get("enabled", True) is not False,
        mode=mode if mode in MODES else "autonomous",
    )


def write_activation(coordinator: Any, agent_id: str | None) -> None:
    """Note this session's agent where children, in this and in other processes, inherit it from; None withdraws it.

    The host's configuration is one object for all sessions made from one prepared bundle, and children get a copy of
    it. So the note is kept under the session's own id: writing the plain `agent_identity` would hand the agent to
    every later session of the process.
    """
    session = coordinator.config.setdefault("session", {})
    capabilities = session.setdefault("capabilities", {})
    if not isinstance(capabilities, dict):
        return
    activated = {**_activations(coordinator), coordinator.session_id: agent_id}
    capabilities[_ACTIVATED] = {key: value for key, value in activated.items() if value is not None}
    if agent_id is not None:
        coordinator.register_capability("agent_identity", agent_id)


def activation(coordinator: Any) -> str | None:
    """Return the agent that this session, or the parent it was spawned from, was activated with; None if neither."""
    activated = _activations(coordinator)
    return activated.get(coordinator.session_id) or activated.get(coordinator.parent_id or "")


def delegate_name(coordinator: Any) -> str:
    """Return the name a child session runs under, e.g. `agent-memory:memory-assistant`; empty if it has none."""
    session = (coordinator.config or {}).get("session") or {}
    metadata = session.get("metadata") if isinstance(session, dict) else None
    name = metadata.get("agent_name") if isinstance(metadata, dict) else None
    return str(name or coordinator.session_id.rpartition("_")[2])


def is_memory_assistant(coordinator: Any) -> bool:
    """Tell whether this child session is the memory-assistant."""
    return bool(re.search(rf"(?:^|[:_-]){MEMORY_ASSISTANT}$", delegate_name(coordinator)))


def named_in(agent_id: str, words: str) -> bool:
    """Tell whether the agent's name stands in the user's words, as a word of its own."""
    return re.search(rf"(?<![\w-]){re.escape(agent_id)}(?![\w-])", words, re.IGNORECASE) is not None


class SessionMemory:
    """Which agent a session was activated with, kept for its resume: one small file a session under `_sessions`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "_sessions"

    def remember(self, session_id: str, agent_id: str) -> None:
        """Note the activation.

        Raises:
            StorageError: It could not be written.
        """
        make_private_folder(self._folder)
        path = self._path(session_id)
        with translated(path, "write"):
            replace_file(path, json.dumps({"session_id": session_id, "agent_id": agent_id}).encode(), durable=True)
            self._forget_oldest()
            remove_leftovers(self._folder)

    def recall(self, session_id: str) -> str | None:
        """Return the agent of an earlier activation in this session, or None; an unreadable note counts as none."""
        try:
            return check_agent_id(json.loads(self._path(session_id).read_text(encoding="utf-8"))["agent_id"])
        except (OSError, ValueError, KeyError, TypeError, AgentMemoryError):
            return None

    def _path(self, session_id: str) -> Path:
        return self._folder / f"{hashlib.sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:24]}.json"

    def _forget_oldest(self) -> None:
        notes = list(self._folder.glob("*.json"))
        if len(notes) > _REMEMBERED_SESSIONS:
            notes.sort(key=lambda path: path.stat().st_mtime)
            for note in notes[: len(notes) - _REMEMBERED_SESSIONS]:
                note.unlink(missing_ok=True)


def _capabilities(coordinator: Any) -> dict[str, Any]:
    session = (coordinator.config or {}).get("session")
    capabilities = session.get("capabilities") if isinstance(session, dict) else None
    return capabilities if isinstance(capabilities, dict) else {}


def _activations(coordinator: Any) -> dict[str, str]:
    activated = _capabilities(coordinator).get(_ACTIVATED)
    return activated if isinstance(activated, dict) else {}
