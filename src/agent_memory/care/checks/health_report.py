"""All health checks of one agent; failed checks are `UNKNOWN`."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from agent_memory.care.backups.backup_reader import last_backup
from agent_memory.care.checks import health_checks
from agent_memory.care.checks.codes import AgentHealth, Check, Level, by_gravity
from agent_memory.errors import StorageError
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import EPISODE, RESOURCE, Listing

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from agent_memory.knowledge.pipeline.stages import Backlog
    from agent_memory.memory import MemoryService
    from agent_memory.settings import HealthSettings

_SEARCHES: Final = 20
"""As many as a 95th percentile needs."""
_QUERY_WORDS: Final = 6


async def health_of(
    service: MemoryService, settings: HealthSettings, now: datetime, *, timer: Callable[[], float] = time.perf_counter
) -> AgentHealth:
    """Return the health of one agent's memory.

    It changes no memory, but searches may build derived files.

    Args:
        service: Memory of the agent.
        settings: Limits of the checks.
        now: The present, UTC.
        timer: Source of seconds for the speed of searches.
    """
    folder = service.folder
    checks = [] if folder is None else await asyncio.to_thread(health_checks.check_folder, folder, settings, now)
    try:
        checks += await _run_checks(service, settings, now, timer)
    except StorageError as error:
        checks.append(health_checks.report_unreadable(error.message, error.recovery))
    return AgentHealth(service.agent_id, None if folder is None else folder.path, by_gravity(checks))


async def _run_checks(
    service: MemoryService, settings: HealthSettings, now: datetime, timer: Callable[[], float]
) -> list[Check]:
    """Run the checks that need memories.

    Raises:
        StorageError: The memories cannot be read.
    """
    folder, checks = service.folder, []
    memories = (await service.storage.tally()).records
    report, waiting = await service.storage.health(), await service.writer.conflicts.count()
    times = await _time_searches(service, timer)
    if folder is not None:
        checks.append(health_checks.check_journal(folder, report))
        checks.append(await asyncio.to_thread(health_checks.check_audit, folder, memories, settings, now))
        checks.append(await asyncio.to_thread(_check_backup, folder, settings, now))
    checks.append(health_checks.check_search(service.storage.troubles()))
    checks.append(health_checks.check_speed({"searches by words": times} if times else {}, settings))
    checks.append(health_checks.check_suspects(waiting, settings))
    try:
        checks.append(health_checks.check_backlog(await list_backlog(service), settings, now))
    except StorageError as error:
        checks.append(Check("backlog", Level.UNKNOWN, f"It cannot be seen: {error.message}", error.recovery))
    return checks


async def list_backlog(service: MemoryService) -> list[Backlog]:
    """Return stages with waiting or failed records; none without documents.

    Raises:
        StorageError: The documents cannot be read.
    """
    settings = service.settings
    if settings.backend == "server":
        return []
    folder = folder_of(service.agent_id, settings.storage_root)
    if not any((folder.path / kind.journal).exists() for kind in (RESOURCE, EPISODE)):
        return []
    async with Knowledge(service.agent_id, settings) as knowledge:
        backlogs = await runner_of(knowledge, service).backlog()
    return [backlog for backlog in backlogs if backlog.due or backlog.failed]


async def _time_searches(service: MemoryService, timer: Callable[[], float]) -> list[float]:
    """Return milliseconds of searches for beginnings of the newest memories."""
    newest = (await service.storage.browse(Listing(limit=_SEARCHES))).records
    queries = [" ".join(memory.content.split()[:_QUERY_WORDS]) for memory in newest]
    times = []
    for number in range(_SEARCHES if queries else 0):
        begin = timer()
        await service.storage.search(queries[number % len(queries)], patience=0)
        times.append((timer() - begin) * 1000)
    return times[1:]  # the first one builds what all of them use


def _check_backup(folder: AgentFolder, settings: HealthSettings, now: datetime) -> Check:
    """Check the newest backup by the names of the files."""
    try:
        last = last_backup(folder.path.parent, folder.agent_id)
    except StorageError as error:
        return Check("backup", Level.UNKNOWN, f"The backups cannot be listed: {error.message}", error.recovery)
    return health_checks.check_backup(None if last is None else last[0], settings, now)
