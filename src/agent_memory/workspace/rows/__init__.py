"""Rows: values checked, read as an agent may see them, written under leases, each change written down."""

from agent_memory.workspace.rows.claim import Caller, Claim
from agent_memory.workspace.rows.duplicates import settle
from agent_memory.workspace.rows.flagging import Flagging
from agent_memory.workspace.rows.leases import Lease, Leases
from agent_memory.workspace.rows.naming import cleaned_name, cleaned_saying
from agent_memory.workspace.rows.reading import Page, RowReading
from agent_memory.workspace.rows.sight import pending_in
from agent_memory.workspace.rows.values import Values
from agent_memory.workspace.rows.writing import Saved, Writing

__all__ = [
    "Caller",
    "Claim",
    "Flagging",
    "Lease",
    "Leases",
    "Page",
    "RowReading",
    "Saved",
    "Values",
    "Writing",
    "cleaned_name",
    "cleaned_saying",
    "pending_in",
    "settle",
]
