"""Status of one agent's memory: counts, health, last write and suggestions."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agent_memory.encryption import check_encryption, is_encrypted
from agent_memory.errors import StorageError
from agent_memory.files.concerns import Concern, check_agent_folder, check_lock
from agent_memory.journal import check_purges, check_rejected
from agent_memory.memory.results import Status
from agent_memory.memory.scratchpad_file import check_refused_edits
from agent_memory.models import PROJECT
from agent_memory.registry import load_handler
from agent_memory.settings import ENGINE_PAYS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory.caller import Caller
    from agent_memory.memory.service_parts import ServiceParts
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.protocols import Trouble


ATTENTION: Final[Mapping[str, str]] = {
    "not_writable": "files",
    "disk_full": "disk",
    "locks_fail": "files",
    "rejected_unusable": "journal",
    "lock_unusable": "files",
    "purges_unusable": "journal",
    "encryption_key": "journal",
    "purge_unfinished": "journal",
    "encryption_unfinished": "journal",
    "permissions_open": "files",
    "foreign_owner": "files",
    "disk_low": "disk",
    "synced_folder": "files",
    "scratchpad_kept": "edits",
    "metadata_broken": "journal",
}
"""Health check of each cheap code, the most severe first. Notes are left to the doctor."""
_INDEX_FACTS: Final = "agent_memory.store.shards:report_metadata"


async def describe_status(parts: ServiceParts, caller: Caller, count_suspects: Callable[[], Awaitable[int]]) -> Status:
    """Return the status of one agent's memory; `health` reports unreadable parts.

    Args:
        parts: Parts of the agent's service.
        caller: Session that asks; the items of its group and of none are counted.
        count_suspects: Returns the number of conflicts that wait for a decision.
    """
    storage, settings = parts.storage, parts.settings
    alerts, troubles = await parts.monitor.list_alerts(caller), parts.monitor.list_troubles()
    answer = partial(
        Status,
        storage.agent_id,
        storage.backend,
        embedder={"kind": settings.embedder, **storage.embedding_status()},
        folder=None if parts.folder is None else str(parts.folder.path),
        encrypted=parts.folder is not None and _is_encrypted(parts.folder),
    )
    try:
        tally, last = await storage.tally(), await storage.last_change()
        pad, waiting = await parts.scratchpad.manager.load(), await count_suspects()
        health = await _check_health(parts, troubles, alerts)
    except StorageError as error:
        unreadable = {"status": "unreadable", "message": error.message, "recovery": error.recovery}
        return answer(counts={}, health=unreadable, last_write=None, suggestions=[error.recovery])
    counts = {
        "memories": tally.records,
        **({"items": items} if (items := tally.count_items(caller.group)) else {}),
        **({"suspects": waiting} if waiting else {}),
        "superseded": tally.superseded,
        "expired": tally.expired,
        "scratchpad": len(pad),
        "pinned": tally.pinned,
        "by_category": dict(tally.by_facet.get("category", Counter()).most_common()),
        "by_trust": dict(tally.by_trust.most_common()),
        **({"by_project": dict(projects)} if (projects := tally.by_facet.get(PROJECT)) else {}),
    }
    backend = "vector" if parts.monitor.is_migrating else storage.backend
    advice = [
        *_list_advice(tally.records, health, settings, backend, waiting),
        *(trouble.sentence.strip() for trouble in troubles),
    ]
    return answer(counts=counts, health=health, last_write=last, suggestions=advice)


async def _check_health(
    parts: ServiceParts, troubles: Sequence[Trouble], alerts: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """Return the storage's health with everything that needs a person's attention."""
    health, more = await parts.storage.health(), dict[str, Any]()
    concerns: list[Concern] = []
    if parts.folder is not None:
        concerns = await asyncio.to_thread(find_concerns, parts.folder, parts.clock())
    if concerns:
        rest = f" And {len(concerns) - 1} more:" if len(concerns) > 1 else ""
        more["message"] = f"{concerns[0].sentence}{rest} `agent-memory doctor` tells what to do."
    if troubles:
        more["degraded"] = {trouble.component: trouble.message for trouble in troubles}
    if alerts:
        more["alerts"] = list(alerts)
    status = "attention" if more and health.get("status") == "ok" else health.get("status")
    return {**health, "status": status, **more}


def _is_encrypted(folder: AgentFolder) -> bool:
    try:
        return is_encrypted(folder.path)
    except StorageError:  # the file with the key cannot be used
        return True


def _list_advice(
    memories: int, health: dict[str, object], settings: ServiceSettings, backend: str, suspects: int
) -> list[str]:
    advice = []
    if health.get("problems"):
        advice.append(
            "Some lines of the journal are damaged; they are kept, and everything else works. `agent-memory doctor` "
            "explains them."
        )
    if backend == "file" and memories >= settings.migration_threshold and settings.backend == "auto":
        advice.append(
            f"There are {memories:,} memories, and {ENGINE_PAYS}: `agent-memory index migrate` builds its index."
        )
    if suspects:
        pairs = "A pair of memories conflicts" if suspects == 1 else f"{suspects:,} pairs of memories conflict"
        advice.append(f"{pairs}: `agent-memory conflicts` shows what to decide.")
    return advice


class FolderCase(NamedTuple):
    """An agent's folder under examination; `path` is a journal of it."""

    folder: AgentFolder
    path: Path
    now: datetime


CHEAP_CHECKS: Final[dict[str, Callable[[Any], Iterable[Concern]]]] = {
    "place": lambda case: check_agent_folder(case.folder),
    "rejected": lambda case: check_rejected(case.path),
    "lock": lambda case: check_lock(case.folder),
    "metadata": lambda case: load_handler(_INDEX_FACTS)(case.folder),
    "purges": lambda case: check_purges(case.folder.path),
    "encryption": lambda case: check_encryption(case.folder.path),
    "edits": lambda case: check_refused_edits(case.folder.scratchpad, case.now),
}
"""Checks of milliseconds by name: `status` and `health` run these, `doctor` runs more."""


def find_concerns(folder: AgentFolder, now: datetime) -> list[Concern]:
    """Return the concerns in `ATTENTION`, the most severe first.

    The journal and its copies are checked by the code that reads it anyway (`MemoryStorage.health`).
    """
    if not folder.path.is_dir():
        return []
    case, codes = FolderCase(folder, folder.journal, now), list(ATTENTION)
    concerns = [concern for check in CHEAP_CHECKS.values() for concern in check(case) if concern.code in ATTENTION]
    return sorted(concerns, key=lambda concern: codes.index(concern.code))
