"""The journal: the append-only file from which everything else is derived."""

from agent_memory.journal.codec import AS_IT_STANDS, IDENTITY, Codec, Where
from agent_memory.journal.compaction import refused
from agent_memory.journal.format import Change, Entry, Records, apply_change
from agent_memory.journal.inspection import FoldedSize, Inspection, Line, deleted_in, inspect_journal
from agent_memory.journal.journal import GRACE, Journal, rewrite_returned
from agent_memory.journal.purge_list import Purge, PurgeList, of_purges, texts_in
from agent_memory.journal.reader import Problem, Update
from agent_memory.journal.salvage import keep_lost, lost_in, of_rejected, rejected_items, rejected_path
from agent_memory.journal.writer import JournalWriter, Receipt

__all__ = [
    "AS_IT_STANDS",
    "GRACE",
    "IDENTITY",
    "Change",
    "Codec",
    "Entry",
    "FoldedSize",
    "Inspection",
    "Journal",
    "JournalWriter",
    "Line",
    "Problem",
    "Purge",
    "PurgeList",
    "Receipt",
    "Records",
    "Update",
    "Where",
    "apply_change",
    "deleted_in",
    "inspect_journal",
    "keep_lost",
    "lost_in",
    "of_purges",
    "of_rejected",
    "refused",
    "rejected_items",
    "rejected_path",
    "rewrite_returned",
    "texts_in",
]
