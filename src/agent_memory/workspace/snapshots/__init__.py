"""Snapshots: marks in the history with the files of the moment; what differs between two; the way back, forward."""

from agent_memory.workspace.snapshots.comparing import Difference, RowDifference, compare, compare_files
from agent_memory.workspace.snapshots.contents import (
    DECLARATION,
    Contents,
    check_places,
    files_of,
    is_inside,
    manifest_of,
    put_back,
)
from agent_memory.workspace.snapshots.dumping import Dump, verify_dump
from agent_memory.workspace.snapshots.marks import Snapshot
from agent_memory.workspace.snapshots.pruning import Pruned, prune_history, prune_texts
from agent_memory.workspace.snapshots.restoring import restore_rows

__all__ = [
    "DECLARATION",
    "Contents",
    "Difference",
    "Dump",
    "Pruned",
    "RowDifference",
    "Snapshot",
    "check_places",
    "compare",
    "compare_files",
    "files_of",
    "is_inside",
    "manifest_of",
    "prune_history",
    "prune_texts",
    "put_back",
    "restore_rows",
    "verify_dump",
]
