"""`agent-memory workspace` and its commands. Registers; does nothing itself."""

from collections.abc import Callable
from typing import Any, Final

import typer

from agent_memory.cli.runtime import QUIET, CommandGroup, PlaceCommand
from agent_memory.cli.workspace.board import next_, status
from agent_memory.cli.workspace.claims import claim
from agent_memory.cli.workspace.row_input import save
from agent_memory.cli.workspace.rows import log, row, table
from agent_memory.cli.workspace.snapshots import diff, restore, resume, snapshot
from agent_memory.cli.workspace.workspace_files import check, export, import_, init

_HELP: Final = "Share tables among agents that work in turns."
_COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    "check": check,
    "init": init,
    "status": status,
    "next": next_,
    "claim": claim,
    "table": table,
    "row": row,
    "save": save,
    "log": log,
    "snapshot": snapshot,
    "diff": diff,
    "restore": restore,
    "resume": resume,
    "export": export,
    "import": import_,
}

workspace = typer.Typer(cls=CommandGroup, help=_HELP, no_args_is_help=True, add_completion=False, **QUIET)
for name, body in _COMMANDS.items():
    workspace.command(name, cls=PlaceCommand)(body)
