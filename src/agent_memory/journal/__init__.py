"""The journal: an append-only file that is the truth, everything else being derived from it."""

from agent_memory.journal.format import Change, Entry
from agent_memory.journal.journal import GRACE, Journal
from agent_memory.journal.reader import Problem, Update
from agent_memory.journal.replay import Records, apply_change
from agent_memory.journal.writer import JournalWriter

__all__ = ["GRACE", "Change", "Entry", "Journal", "JournalWriter", "Problem", "Records", "Update", "apply_change"]
