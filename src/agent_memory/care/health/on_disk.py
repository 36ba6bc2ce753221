"""The looks at an agent's folder that need nothing opened: a session can afford them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.care.health import looks
from agent_memory.care.health.activity import DAY, look_at_activity
from agent_memory.care.health.table import UNKNOWN, Check
from agent_memory.memory.events import latest_audit, read_audit
from agent_memory.models import to_text

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.files.layout import AgentFolder
    from agent_memory.settings import HealthSettings


def of_files(folder: AgentFolder, settings: HealthSettings, now: datetime) -> list[Check]:
    """Return how the disk and the files stand; nothing where nothing was ever stored."""
    if not folder.path.is_dir():
        return []
    return [looks.look_at_disk(folder, settings), *looks.look_at_files(folder, now)]


def of_activity(folder: AgentFolder, memories: int | None, settings: HealthSettings, now: datetime) -> Check:
    """Return whether an hour of the last day was unusual; `memories` is how many there are, if that is known."""
    try:
        entries = list(latest_audit(folder.audit, to_text(now - DAY)))
        if len(entries) > settings.activity_least:  # only then all can matter: .26 s of a full log
            entries = list(read_audit(folder.audit))
        return look_at_activity(entries, memories, settings, now)
    except OSError as error:
        said = f"The log of changes cannot be read: {error.strerror or error}."
        return Check("activity", UNKNOWN, said, "`agent-memory doctor` tells more.")
