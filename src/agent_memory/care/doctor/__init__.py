"""The doctor: looks at every file of every agent, says what is wrong, and repairs what is derived. Never at import."""

from agent_memory.care.doctor.context import salvaged
from agent_memory.care.doctor.examine import examine, examine_agent
from agent_memory.care.doctor.findings import CODES, Action, AgentReport, Finding, HomeReport, Severity
from agent_memory.care.doctor.repair import repair_all

__all__ = [
    "CODES",
    "Action",
    "AgentReport",
    "Finding",
    "HomeReport",
    "Severity",
    "examine",
    "examine_agent",
    "repair_all",
    "salvaged",
]
