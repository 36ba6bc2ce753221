"""The journal: an append-only file that is the truth, everything else being derived from it."""

from agent_memory.journal.format import Change, Entry
from agent_memory.journal.journal import GRACE, Journal, JournalWriter
from agent_memory.journal.reader import Problem, Update
from agent_memory.journal.replay import Records, apply_change

__all__ = ["GRACE", "Change", "Entry", "Journal", "JournalWriter", "Problem", "Records", "Update", "apply_change"]
