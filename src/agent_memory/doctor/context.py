"""One agent under examination: its files, its journal as read, and what else the checks share. Looks, never writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_memory.doctor.reading import JournalFacts, read_journal
from agent_memory.files.entries import Lock, lock_at
from agent_memory.files.names import aside_path
from agent_memory.storage.vector.generations import Generations

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from agent_memory.settings import ServiceSettings
    from agent_memory.storage import AgentFolder


@dataclass(slots=True)
class Case:
    """What the checks of one agent work with."""

    folder: AgentFolder
    settings: ServiceSettings
    now: datetime
    journal: JournalFacts

    @property
    def path(self) -> Path:
        """The agent's folder."""
        return self.folder.path

    @property
    def lock_path(self) -> Path:
        """The lock of the folder."""
        return self.folder.lock

    @property
    def rejected(self) -> Path:
        """Where lines go that are no entries."""
        return aside_path(self.folder.journal, "rejected")

    def lock(self) -> Lock:
        """Return how the lock stands now."""
        return lock_at(self.lock_path)

    def generations(self) -> Generations:
        """Return the indexes of the agent."""
        return Generations(self.folder)

    def read_again(self) -> None:
        """Read the journal as it is now."""
        self.journal = read_journal(self.folder.journal, self.folder.agent_id)


def open_case(folder: AgentFolder, settings: ServiceSettings, now: datetime) -> Case:
    """Return an agent's case with its journal read."""
    return Case(folder, settings, now, read_journal(folder.journal, folder.agent_id))
