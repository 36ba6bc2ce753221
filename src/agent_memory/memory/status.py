"""What `memory_status` answers: counts, health, the last write, and what could be done better."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from agent_memory.encryption import is_encrypted, of_encryption
from agent_memory.errors import StorageError
from agent_memory.files.concerns import of_lock, of_place
from agent_memory.journal import of_purges, of_rejected
from agent_memory.memory.results import Status
from agent_memory.memory.scratchpad_saves import of_kept
from agent_memory.models import PROJECT
from agent_memory.settings import ENGINE_PAYS
from agent_memory.store.index_facts import of_metadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.files.concerns import Concern
    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory.scratchpad_manager import ScratchpadManager
    from agent_memory.models import Memory
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.record_storage import RecordStorage
    from agent_memory.store.trouble import Trouble


ATTENTION: Final = (
    *("not_writable", "disk_full", "locks_fail", "rejected_unusable", "lock_unusable"),
    *("purges_unusable", "encryption_key", "purge_unfinished", "encryption_unfinished"),
    *("permissions_open", "foreign_owner", "disk_low", "synced_folder", "scratchpad_kept", "metadata_broken"),
)
"""Codes, the most severe first. Notes are left to the doctor."""


async def describe_status(  # noqa: PLR0913 - each by its name
    storage: RecordStorage[Memory],
    manager: ScratchpadManager,
    settings: ServiceSettings,
    now: datetime,
    troubles: Sequence[Trouble] = (),
    *,
    is_moving: bool = False,
    suspects: Callable[[], Awaitable[int]] | None = None,
    group: str | None = None,
    alerts: Sequence[Mapping[str, str]] = (),
) -> Status:
    """Return the state of one agent's memory; what cannot be read is reported in `health`.

    Args:
        storage: The memories.
        manager: Their scratchpad.
        settings: Thresholds.
        now: The present.
        troubles: What else does not work as it could.
        is_moving: Whether an index is being built, which is not suggested then.
        suspects: Returns how many conflicts wait for a decision.
        group: Whose items are counted, with those of none; None for all.
        alerts: What turned bad in this session: check, level, message and advice of each.
    """
    folder = getattr(storage, "folder", None)  # where the memories lie, if they lie in files here
    answer = partial(
        Status,
        storage.agent_id,
        storage.backend,
        embedder={"kind": settings.embedder, **storage.embedding_status()},
        folder=None if folder is None else str(folder.path),
        encrypted=folder is not None and _is_encrypted(folder),
    )
    try:
        tally, last = await storage.tally(), await storage.last_change()
        pad, waiting = await manager.load(), await suspects() if suspects is not None else 0
        health = await _health(storage, folder, now, troubles, alerts)
    except StorageError as error:
        unreadable = {"status": "unreadable", "message": error.message, "recovery": error.recovery}
        return answer(counts={}, health=unreadable, last_write=None, suggestions=[error.recovery])
    counts = {
        "memories": tally.records,
        **({"items": items} if (items := tally.count_items(group)) else {}),
        **({"suspects": waiting} if waiting else {}),
        "superseded": tally.superseded,
        "expired": tally.expired,
        "scratchpad": len(pad),
        "pinned": tally.pinned,
        "by_category": dict(tally.by_facet.get("category", Counter()).most_common()),
        "by_trust": dict(tally.by_trust.most_common()),
        **({"by_project": dict(projects)} if (projects := tally.by_facet.get(PROJECT)) else {}),
    }
    backend = "vector" if is_moving else storage.backend  # what is being done is not suggested
    advice = [
        *_suggestions(tally.records, health, settings, backend),
        *_to_decide(waiting),
        *(each.sentence.strip() for each in troubles),
    ]
    return answer(counts=counts, health=health, last_write=last, suggestions=advice)


async def _health(
    storage: RecordStorage[Memory],
    folder: AgentFolder | None,
    now: datetime,
    troubles: Sequence[Trouble],
    alerts: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    """Return the storage's health with what else wants a person's attention; `ok` if all parts work."""
    health, more = await storage.health(), dict[str, Any]()
    found = await asyncio.to_thread(_attention, folder, now) if folder is not None else []
    if found:
        others = f" And {len(found) - 1} more:" if len(found) > 1 else ""
        more["message"] = f"{found[0].sentence}{others} `agent-memory doctor` tells what to do."
    if troubles:
        more["degraded"] = {trouble.component: trouble.message for trouble in troubles}
    if alerts:
        more["alerts"] = list(alerts)
    status = "attention" if more and health.get("status") == "ok" else health.get("status")
    return {**health, "status": status, **more}


def _is_encrypted(folder: AgentFolder) -> bool:
    try:
        return is_encrypted(folder.path)
    except StorageError:  # the file with the key is there, and cannot be used
        return True


def _suggestions(memories: int, health: dict[str, object], settings: ServiceSettings, backend: str) -> list[str]:
    found = []
    if health.get("problems"):
        found.append(
            "Some lines of the journal are damaged; they are kept, and everything else works. `agent-memory doctor` "
            "explains them."
        )
    if backend == "file" and memories >= settings.migration_threshold and settings.backend == "auto":
        found.append(f"There are {memories:,} memories, and {ENGINE_PAYS}: `agent-memory migrate` builds its index.")
    return found


def _to_decide(suspects: int) -> list[str]:
    if not suspects:
        return []
    pairs = "A pair of memories conflicts" if suspects == 1 else f"{suspects:,} pairs of memories conflict"
    return [f"{pairs}: `agent-memory conflicts` shows what to decide."]


def _attention(folder: AgentFolder, now: datetime) -> list[Concern]:
    """Return what wants attention, the most severe first; takes a few milliseconds.

    The journal and its copies are checked by the code that reads it anyway (`MemoryStorage.health`).
    """
    if not folder.path.is_dir():
        return []
    found = [
        *of_place(folder),
        *of_rejected(folder.journal),
        *of_purges(folder.path),
        *of_encryption(folder.path),
        *of_lock(folder),
        *of_metadata(folder),
    ]
    found += of_kept(folder.scratchpad, now)
    return sorted(
        (concern for concern in found if concern.code in ATTENTION), key=lambda concern: ATTENTION.index(concern.code)
    )
