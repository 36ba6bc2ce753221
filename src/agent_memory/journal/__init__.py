"""The journal: the append-only file from which everything else is derived."""

from agent_memory.journal.codec import AS_IT_STANDS, IDENTITY, Codec, FieldLocation
from agent_memory.journal.compaction import split_refused
from agent_memory.journal.format import Change, Entry, Records, apply_change
from agent_memory.journal.journal import GRACE, Journal, rewrite_returned
from agent_memory.journal.purge_list import Purge, PurgeList, check_purges, list_texts
from agent_memory.journal.reader import JournalUpdate, LineProblem
from agent_memory.journal.salvage import check_rejected, get_rejected_path, keep_lost, read_lost, read_rejected
from agent_memory.journal.writer import JournalWriter, SyncReceipt

__all__ = [
    "AS_IT_STANDS",
    "GRACE",
    "IDENTITY",
    "Change",
    "Codec",
    "Entry",
    "FieldLocation",
    "Journal",
    "JournalUpdate",
    "JournalWriter",
    "LineProblem",
    "Purge",
    "PurgeList",
    "Records",
    "SyncReceipt",
    "apply_change",
    "check_purges",
    "check_rejected",
    "get_rejected_path",
    "keep_lost",
    "list_texts",
    "read_lost",
    "read_rejected",
    "rewrite_returned",
    "split_refused",
]
