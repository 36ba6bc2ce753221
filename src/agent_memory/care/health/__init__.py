"""How an agent's memory is: one table of checks, each with a sentence of what is seen and one of what to do.

Each name loads what it needs when it is first asked for: a session watches without what a report of everything loads.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.care.health.report import health_of
    from agent_memory.care.health.table import CHECKS, AgentHealth, Check, Level, by_gravity, worst
    from agent_memory.care.health.watching import watch

__all__ = ["CHECKS", "AgentHealth", "Check", "Level", "by_gravity", "health_of", "watch", "worst"]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
