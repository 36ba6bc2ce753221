"""Workspaces: tables that agents share, with declared steps and snapshots.

Each name is loaded at its first use: SQLAlchemy takes a quarter of a second.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.workspace.core import URL_VARIABLE, found_from
    from agent_memory.workspace.declaration.model import Declaration
    from agent_memory.workspace.declaration.parser import parse_declaration, read_declaration
    from agent_memory.workspace.rows.claims import Caller, Claim
    from agent_memory.workspace.rows.row_reader import RowPage
    from agent_memory.workspace.rows.row_writer import SavedRow
    from agent_memory.workspace.snapshots.contents import DECLARATION
    from agent_memory.workspace.snapshots.marks import Snapshot, SnapshotDifference
    from agent_memory.workspace.snapshots.restoration import ResumeResult
    from agent_memory.workspace.snapshots.snapshot_store import SnapshotStore
    from agent_memory.workspace.step_plan import Step
    from agent_memory.workspace.toolset.session_toolset import SessionToolset
    from agent_memory.workspace.toolset.toolset import Offer, Toolset
    from agent_memory.workspace.workspace import StepWork, Workspace

__all__ = [
    "DECLARATION",
    "URL_VARIABLE",
    "Caller",
    "Claim",
    "Declaration",
    "Offer",
    "ResumeResult",
    "RowPage",
    "SavedRow",
    "SessionToolset",
    "Snapshot",
    "SnapshotDifference",
    "SnapshotStore",
    "Step",
    "StepWork",
    "Toolset",
    "Workspace",
    "found_from",
    "parse_declaration",
    "read_declaration",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
