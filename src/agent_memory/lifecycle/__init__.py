"""What happens to memories with time: how important they are, what is archived, backups, what a session begins with.

Each name loads what it needs when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.lifecycle.briefing import Briefer, Briefing, SessionBriefing
    from agent_memory.lifecycle.entry_types import ImportanceLevel, MemoryEntryType
    from agent_memory.lifecycle.importance import ImportanceCalculator, importance_of

__all__ = [
    "Briefer",
    "Briefing",
    "ImportanceCalculator",
    "ImportanceLevel",
    "MemoryEntryType",
    "SessionBriefing",
    "importance_of",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(
        __name__,
        {
            "lifecycle.briefing": "Briefer Briefing SessionBriefing",
            "lifecycle.entry_types": "ImportanceLevel MemoryEntryType",
            "lifecycle.importance": "ImportanceCalculator importance_of",
        },
    )
