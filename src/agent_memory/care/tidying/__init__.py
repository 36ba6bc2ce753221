"""Tidying of a memory on request: propose, apply, undo."""

from agent_memory.care.tidying.cleanup_rules import CleanupRules, LifecycleSettings, RetentionRule
from agent_memory.care.tidying.suggestions import TidyBudget, TidyingPlan, TidySuggestion
from agent_memory.care.tidying.tidy_runs import AppliedRun, LeftOut, RestoredRun, Tidying

__all__ = [
    "AppliedRun",
    "CleanupRules",
    "LeftOut",
    "LifecycleSettings",
    "RestoredRun",
    "RetentionRule",
    "TidyBudget",
    "TidySuggestion",
    "Tidying",
    "TidyingPlan",
]
