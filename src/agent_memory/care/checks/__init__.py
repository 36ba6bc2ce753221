"""Checks of agents' files: doctor and health. Never loaded at import.

Each name loads what it needs when it is first asked for: a session checks without what the doctor loads.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.checks.codes import (
        CHECKS,
        CODES,
        AgentHealth,
        AgentReport,
        Check,
        Finding,
        HomeReport,
        Level,
        RepairAction,
        Severity,
        by_gravity,
        worst,
    )
    from agent_memory.care.checks.examination import examine, examine_agent
    from agent_memory.care.checks.health_checks import watch
    from agent_memory.care.checks.health_report import health_of
    from agent_memory.care.checks.journal_survey import find_salvageable
    from agent_memory.care.checks.repairs import repair_all

__all__ = [
    "CHECKS",
    "CODES",
    "AgentHealth",
    "AgentReport",
    "Check",
    "Finding",
    "HomeReport",
    "Level",
    "RepairAction",
    "Severity",
    "by_gravity",
    "examine",
    "examine_agent",
    "find_salvageable",
    "health_of",
    "repair_all",
    "watch",
    "worst",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
