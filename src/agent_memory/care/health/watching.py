"""What a session is told of while it lasts: the checks that take some milliseconds."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from agent_memory.care.health.looks import look_at_speed
from agent_memory.care.health.on_disk import of_activity, of_files

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.care.health.table import Check
    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory import Caller, MemoryService
    from agent_memory.models import Clock
    from agent_memory.settings import HealthSettings


def watch(service: MemoryService, clock: Clock) -> None:
    """Report new problems to sessions once (`memory:alert`)."""
    service.monitor.set_checks(partial(find_checks, service, clock))


async def find_checks(service: MemoryService, clock: Clock, caller: Caller) -> list[Check]:
    """Return the checks of a session.

    A session that is bound to a group does not see how much was forgotten or changed: other people may have done that.

    Args:
        service: Memory of the session; its settings have the limits.
        clock: Source of the present.
        caller: Session that is told.
    """
    folder, settings = service.folder, service.settings.health
    speed = look_at_speed(service.monitor.list_durations(), settings)
    if folder is None or not folder.path.is_dir():
        return [speed]
    checks = await asyncio.to_thread(_look, folder, settings, clock(), is_alone=caller.group is None)
    return [*checks, speed]


def _look(folder: AgentFolder, settings: HealthSettings, now: datetime, *, is_alone: bool) -> list[Check]:
    found = of_files(folder, settings, now)
    return [*found, of_activity(folder, None, settings, now)] if is_alone else found
