"""Tidying of a memory: propose, apply within a budget, undo. Only on request."""

from agent_memory.care.tidying.cleanup_rules import Cleanup, LifecycleSettings, Retention
from agent_memory.care.tidying.suggestions import Budget, Suggestion, TidyingPlan
from agent_memory.care.tidying.tidy_runs import Applied, LeftOut, RestoredRun, Tidying

__all__ = [
    "Applied",
    "Budget",
    "Cleanup",
    "LeftOut",
    "LifecycleSettings",
    "RestoredRun",
    "Retention",
    "Suggestion",
    "Tidying",
    "TidyingPlan",
]
