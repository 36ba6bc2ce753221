"""The memory service: one write path, one way to ask, and the events that tell about both.

Each name loads what it needs when it is first asked for: the views alone are of use without the layers below.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.service.audit import AuditLog
    from agent_memory.service.caller import NOBODY, Caller
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
    "open_service",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is

    def __getattr__(name: str) -> object:
        """Load a public name (PEP 562)."""
        for module, names in _OF.items():
            if name in names:
                value = globals()[name] = getattr(import_module(f"agent_memory.service.{module}"), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted([*globals(), *__all__])

    _OF = {
        "audit": {"AuditLog"},
        "caller": {"NOBODY", "Caller"},
        "events": {"EVENTS", "EventSpec"},
        "opening": {"open_service"},
        "results": {"CaptureOutcome", "Forgotten", "Found", "Promoted", "Status", "Stored", "Updated"},
        "service": {"MemoryService"},
    }
