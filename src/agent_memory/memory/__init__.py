"""Memory service: one write path, one search, and their events.

Each name is loaded when it is first used.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.memory.caller import NOBODY, Caller
    from agent_memory.memory.client import Memory, MemorySync
    from agent_memory.memory.events import EVENTS, AuditLog, EventSpec
    from agent_memory.memory.forget_service import ForgetCandidate, ForgetCandidates, Preview
    from agent_memory.memory.results import (
        CaptureOutcome,
        Forgotten,
        ForgottenMany,
        Found,
        Promoted,
        Status,
        Stored,
        Suspect,
        Updated,
    )
    from agent_memory.memory.service import MemoryService, open_service

__all__ = [
    "EVENTS",
    "NOBODY",
    "AuditLog",
    "Caller",
    "CaptureOutcome",
    "EventSpec",
    "ForgetCandidate",
    "ForgetCandidates",
    "Forgotten",
    "ForgottenMany",
    "Found",
    "Memory",
    "MemoryService",
    "MemorySync",
    "Preview",
    "Promoted",
    "Status",
    "Stored",
    "Suspect",
    "Updated",
    "open_service",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
