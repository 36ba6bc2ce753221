"""Checks of agents' files: doctor and health. Never loaded at import.

Each name loads what it needs when it is first asked for: a session checks without what the doctor loads.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.checks.codes import CHECKS as CHECKS
    from agent_memory.care.checks.codes import CODES as CODES
    from agent_memory.care.checks.codes import AgentHealth as AgentHealth
    from agent_memory.care.checks.codes import AgentReport as AgentReport
    from agent_memory.care.checks.codes import Check as Check
    from agent_memory.care.checks.codes import Finding as Finding
    from agent_memory.care.checks.codes import HomeReport as HomeReport
    from agent_memory.care.checks.codes import Level as Level
    from agent_memory.care.checks.codes import RepairAction as RepairAction
    from agent_memory.care.checks.codes import Severity as Severity
    from agent_memory.care.checks.codes import by_gravity as by_gravity
    from agent_memory.care.checks.codes import worst as worst
    from agent_memory.care.checks.examination import examine as examine
    from agent_memory.care.checks.examination import examine_agent as examine_agent
    from agent_memory.care.checks.health_checks import watch as watch
    from agent_memory.care.checks.health_report import health_of as health_of
    from agent_memory.care.checks.journal_survey import find_salvageable as find_salvageable
    from agent_memory.care.checks.repairs import repair_all as repair_all


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
