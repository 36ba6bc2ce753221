"""What about an agent's files wants a person's attention and is seen at a glance, without reading the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.files.concerns import of_lock, of_place
from agent_memory.journal import of_rejected
from agent_memory.scratchpad.saves import of_kept
from agent_memory.storage.vector.inspection import of_metadata

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.files.concerns import Concern
    from agent_memory.files.layout import AgentFolder

ATTENTION: Final = (
    *("not_writable", "disk_full", "locks_fail", "rejected_unusable", "lock_unusable"),
    *("permissions_open", "foreign_owner", "disk_low", "synced_folder", "scratchpad_kept", "metadata_broken"),
)
"""Codes, the gravest first. Notes are left to the doctor."""


def attention(folder: AgentFolder, now: datetime) -> list[Concern]:
    """Return what wants attention, the gravest first; takes a few milliseconds.

    The journal and its copies are checked by the code that reads it anyway (`MemoryStorage.health`).
    """
    if not folder.path.is_dir():
        return []
    found = [*of_place(folder), *of_rejected(folder.journal), *of_lock(folder), *of_metadata(folder)]
    found += of_kept(folder.scratchpad, now)
    return sorted(
        (concern for concern in found if concern.code in ATTENTION), key=lambda concern: ATTENTION.index(concern.code)
    )
