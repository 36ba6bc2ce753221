"""`ServiceParts`: what the reading and writing sides of one service share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent_memory.files.layout import AgentFolder
    from agent_memory.memory.monitor import Monitor
    from agent_memory.memory.scratchpad import AgentScratchpad, ServiceLimits
    from agent_memory.memory.trust import TrustGate
    from agent_memory.models import Clock
    from agent_memory.redaction import Redactor
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.memory_storage import MemoryStorage


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """Parts of one agent's service.

    Attributes:
        storage: Storage of the memories.
        folder: Folder of the memories; None if they are not in files on this machine.
        settings: Limits and thresholds of the service.
        gate: Decides what a caller may change.
        scratchpad: Scratchpad to render after a change; answers if the storage fails.
        monitor: Receiver of events, durations and troubles.
        redactor: Redactor for secrets in all text.
        clock: Source of the present.
        limits: Seconds to wait for vectors and other processes.
        sources: `SearchSource` objects of other texts.
    """

    storage: MemoryStorage
    folder: AgentFolder | None
    settings: ServiceSettings
    gate: TrustGate
    scratchpad: AgentScratchpad
    monitor: Monitor
    redactor: Redactor
    clock: Clock
    limits: ServiceLimits
    sources: list[Any]
