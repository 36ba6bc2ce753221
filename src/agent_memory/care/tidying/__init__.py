"""Keeping a memory small: suggest, preview, apply within a budget, undo. Nothing in the background deletes."""

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
