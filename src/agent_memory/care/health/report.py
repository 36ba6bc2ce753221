"""All checks of one agent; what cannot be looked at is a check of its own level."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups import last_backup
from agent_memory.care.health import looks
from agent_memory.care.health.backlog import backlog_of
from agent_memory.care.health.on_disk import of_activity, of_files
from agent_memory.care.health.table import UNKNOWN, AgentHealth, Check, by_gravity
from agent_memory.errors import StorageError
from agent_memory.models import Listing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory import MemoryService
    from agent_memory.settings import HealthSettings

_SEARCHES: Final = 20
"""As many as the share of 19 of 20 needs."""
_QUERY_WORDS: Final = 6


async def health_of(
    service: MemoryService,
    settings: HealthSettings,
    now: datetime,
    *,
    timer: Callable[[], float] = time.perf_counter,
) -> AgentHealth:
    """Return how one agent's memory is; changes no memory, but its searches may make what is derived.

    Args:
        service: Its memory.
        settings: The limits.
        now: The present, UTC.
        timer: Seconds, for the speed of searches.
    """
    folder = service.folder
    checks = [] if folder is None else await asyncio.to_thread(of_files, folder, settings, now)
    path = None if folder is None else folder.path
    try:
        memories = (await service.storage.tally()).records
        report, waiting = await service.storage.health(), await service.writer.conflicts.count()
        times = await _timed(service, timer)
    except StorageError as error:
        checks.append(looks.unreadable(error.message, error.recovery))
        return _health(service, path, checks)
    if folder is not None:
        checks.append(looks.look_at_journal(folder, report))
        checks.append(await asyncio.to_thread(of_activity, folder, memories, settings, now))
        checks.append(await asyncio.to_thread(_of_backup, folder, settings, now))
    checks.append(looks.look_at_search(service.storage.troubles()))
    checks.append(looks.look_at_speed({"searches by words": times} if times else {}, settings))
    checks.append(looks.look_at_suspects(waiting, settings))
    try:
        checks.append(looks.look_at_backlog(await backlog_of(service), settings, now))
    except StorageError as error:
        checks.append(Check("backlog", UNKNOWN, f"It cannot be seen: {error.message}", error.recovery))
    return _health(service, path, checks)


def _health(service: MemoryService, folder: Path | None, checks: Sequence[Check]) -> AgentHealth:
    return AgentHealth(service.agent_id, folder, by_gravity(checks))


async def _timed(service: MemoryService, timer: Callable[[], float]) -> list[float]:
    """Return the milliseconds that searches by words take now: for the beginnings of what was stored last."""
    newest = (await service.storage.browse(Listing(limit=_SEARCHES))).records
    queries = [" ".join(memory.content.split()[:_QUERY_WORDS]) for memory in newest]
    times = []
    for place in range(_SEARCHES if queries else 0):
        begun = timer()
        await service.storage.search(queries[place % len(queries)], patience=0)
        times.append((timer() - begun) * 1000)
    return times[1:]  # the first one makes what all of them use


def _of_backup(folder: AgentFolder, settings: HealthSettings, now: datetime) -> Check:
    """Return how old the newest backup is, by the names of the files."""
    try:
        last = last_backup(folder.path.parent, folder.agent_id)
    except StorageError as error:
        return Check("backup", UNKNOWN, f"The backups cannot be listed: {error.message}", error.recovery)
    return looks.look_at_backup(None if last is None else last[0], settings, now)
