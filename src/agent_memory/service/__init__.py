"""The names of `agent_memory.memory` at their earlier import path."""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.memory.caller import NOBODY as NOBODY
    from agent_memory.memory.caller import Caller as Caller
    from agent_memory.memory.events import EVENTS as EVENTS
    from agent_memory.memory.events import AuditLog as AuditLog
    from agent_memory.memory.events import EventSpec as EventSpec
    from agent_memory.memory.forget_service import ForgetCandidate as ForgetCandidate
    from agent_memory.memory.forget_service import ForgetCandidates as ForgetCandidates
    from agent_memory.memory.forget_service import Preview as Preview
    from agent_memory.memory.results import CaptureOutcome as CaptureOutcome
    from agent_memory.memory.results import Forgotten as Forgotten
    from agent_memory.memory.results import ForgottenMany as ForgottenMany
    from agent_memory.memory.results import Found as Found
    from agent_memory.memory.results import Promoted as Promoted
    from agent_memory.memory.results import Status as Status
    from agent_memory.memory.results import Stored as Stored
    from agent_memory.memory.results import Suspect as Suspect
    from agent_memory.memory.results import Updated as Updated
    from agent_memory.memory.service import MemoryService as MemoryService
    from agent_memory.memory.service import open_service as open_service


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
