"""What a session is told of while it lasts: the checks that take some milliseconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from agent_memory.lifecycle.health.looks import look_at_speed
from agent_memory.lifecycle.health.on_disk import of_activity, of_files

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.files.layout import AgentFolder
    from agent_memory.lifecycle.health.table import Check
    from agent_memory.models import Clock
    from agent_memory.service import Caller, MemoryService
    from agent_memory.settings import HealthSettings


def watch(service: MemoryService, clock: Clock) -> None:
    """Have sessions told, once each time, of what turns bad while they last (`memory:alert`).

    One that is bound to a group is not told how much was forgotten or changed: others may have done that.

    Args:
        service: The memory of the session; its settings have the limits.
        clock: Source of the present.
    """
    folder, settings = service.admin.folder, service.settings.health

    async def look(caller: Caller) -> list[Check]:
        speed = look_at_speed(service.alerts.times(), settings)
        if folder is None or not folder.path.is_dir():
            return [speed]
        found = await asyncio.to_thread(_look, folder, settings, clock(), is_alone=caller.group is None)
        return [*found, speed]

    service.alerts.look_by(look)


def _look(folder: AgentFolder, settings: HealthSettings, now: datetime, *, is_alone: bool) -> list[Check]:
    found = of_files(folder, settings, now)
    return [*found, of_activity(folder, None, settings, now)] if is_alone else found
