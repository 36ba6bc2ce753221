"""The memory service: one write path, one way to ask, and the events that tell about both."""

from agent_memory.service.audit import AuditLog
from agent_memory.service.caller import NOBODY, Caller
from agent_memory.service.categories import known_category
from agent_memory.service.events import EVENTS, EventSpec
from agent_memory.service.opening import open_service
from agent_memory.service.results import CaptureOutcome, Forgotten, Found, Promoted, Status, Stored, Updated
from agent_memory.service.service import MemoryService

__all__ = [
    "EVENTS",
    "NOBODY",
    "AuditLog",
    "Caller",
    "CaptureOutcome",
    "EventSpec",
    "Forgotten",
    "Found",
    "MemoryService",
    "Promoted",
    "Status",
    "Stored",
    "Updated",
    "known_category",
    "open_service",
]
