"""The doctor: looks at every file of every agent, says what is wrong, and repairs what is derived. Never at import."""

from agent_memory.doctor.examining import examine, examine_agent, glance
from agent_memory.doctor.findings import CODES, Action, AgentReport, Finding, Report, Severity, human
from agent_memory.doctor.reading import salvaged
from agent_memory.doctor.repairing import repair_all

__all__ = [
    "CODES",
    "Action",
    "AgentReport",
    "Finding",
    "Report",
    "Severity",
    "examine",
    "examine_agent",
    "glance",
    "human",
    "repair_all",
    "salvaged",
]
