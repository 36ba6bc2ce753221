"""Tables that several agents share: declared in YAML, worked on in steps, with snapshots to go back to.

Each name loads what it needs when it is first asked for: SQLAlchemy takes a quarter of a second.
"""

from typing import TYPE_CHECKING

from agent_memory.late import offer as _offer

if TYPE_CHECKING:
    from agent_memory.workspace.declaration import Declaration, parse_declaration, read_declaration
    from agent_memory.workspace.keeping import Snapshots
    from agent_memory.workspace.place import URL_VARIABLE, found_from
    from agent_memory.workspace.returning import Resumed
    from agent_memory.workspace.rows import Caller, Claim, Page, Saved
    from agent_memory.workspace.snapshots import DECLARATION, Difference, Snapshot
    from agent_memory.workspace.steps import Step
    from agent_memory.workspace.toolset import Offer, SessionToolset, Toolset
    from agent_memory.workspace.workspace import Workspace

__all__ = [
    "DECLARATION",
    "URL_VARIABLE",
    "Caller",
    "Claim",
    "Declaration",
    "Difference",
    "Offer",
    "Page",
    "Resumed",
    "Saved",
    "SessionToolset",
    "Snapshot",
    "Snapshots",
    "Step",
    "Toolset",
    "Workspace",
    "found_from",
    "parse_declaration",
    "read_declaration",
]

if not TYPE_CHECKING:  # a type checker would take it for every name there is
    __getattr__, __dir__ = _offer(__name__)
