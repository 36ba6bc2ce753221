"""Workspaces: tables that agents share, with declared steps and snapshots.

Each name is loaded at its first use: SQLAlchemy takes a quarter of a second.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.workspace.core import URL_VARIABLE as URL_VARIABLE
    from agent_memory.workspace.core import found_from as found_from
    from agent_memory.workspace.declaration.model import Declaration as Declaration
    from agent_memory.workspace.declaration.parser import parse_declaration as parse_declaration
    from agent_memory.workspace.declaration.parser import read_declaration as read_declaration
    from agent_memory.workspace.rows.claims import Caller as Caller
    from agent_memory.workspace.rows.claims import Claim as Claim
    from agent_memory.workspace.rows.row_reader import RowPage as RowPage
    from agent_memory.workspace.rows.row_writer import SavedRow as SavedRow
    from agent_memory.workspace.snapshots.contents import DECLARATION as DECLARATION
    from agent_memory.workspace.snapshots.marks import Snapshot as Snapshot
    from agent_memory.workspace.snapshots.marks import SnapshotDifference as SnapshotDifference
    from agent_memory.workspace.snapshots.snapshot_restoration import ResumeResult as ResumeResult
    from agent_memory.workspace.snapshots.snapshot_store import SnapshotStore as SnapshotStore
    from agent_memory.workspace.step_plan import Step as Step
    from agent_memory.workspace.toolset.session_toolset import SessionToolset as SessionToolset
    from agent_memory.workspace.toolset.toolset import Offer as Offer
    from agent_memory.workspace.toolset.toolset import Toolset as Toolset
    from agent_memory.workspace.workspace import StepWork as StepWork
    from agent_memory.workspace.workspace import Workspace as Workspace


if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
