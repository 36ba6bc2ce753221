"""The memory service: one write path, one way to ask, and the events of both.

Each name loads what it needs when it is first asked for: the views alone are of use without the layers below.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.memory.audit import AuditLog
    from agent_memory.memory.caller import NOBODY, Caller
    from agent_memory.memory.events import EVENTS, EventSpec
    from agent_memory.memory.factory import open_service
    from agent_memory.memory.requests import ForgetCandidate, ForgetCandidates, ForgottenMany, Preview
    from agent_memory.memory.results import CaptureOutcome, Forgotten, Found, Promoted, Status, Stored, Suspect, Updated
    from agent_memory.memory.service import MemoryService

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
    "MemoryService",
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
