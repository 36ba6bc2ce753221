"""`agent-memory connect`: give MCP hosts an agent's memory."""

import shutil
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from agent_memory.cli.options import AgentOption, Yes, choose_served_agent, open_service
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.errors import ConfigurationError, ValidationError
from agent_memory.files.layout import agents_under, folder_of, resolve_root
from agent_memory.files.wording import counted
from agent_memory.registry import load_handler
from agent_memory.settings import DEFAULT_ROOT

_PLACE: Final = "agent_memory.integrations.mcp"
_COLUMNS: Final = ("host", "state", "agent", "file")


@command(AgentOption, rows=True)
async def connect(
    run: CommandContext,
    host: Annotated[str | None, typer.Argument(metavar="HOST", help="Name of the host; none lists all.")] = None,
    *,
    only_print: Annotated[bool, typer.Option("--print", help="Print what would be written; change nothing.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the entry from the host's configuration.")] = False,
    yes: Yes = False,
) -> None:
    """Give an MCP host such as claude-code an agent's memory."""
    if host is None:
        _list(run)
        return
    agent, program = choose_served_agent(run.get_options(AgentOption).agent, run.root), _find_program()
    if undo:
        change = load_handler(f"{_PLACE}.host_connection:plan_disconnection")(host)
    else:
        root = "" if run.root == resolve_root(DEFAULT_ROOT) else str(run.root)
        change = load_handler(f"{_PLACE}.host_connection:plan_connection")(host, str(program), agent, root)
    run.screen.document({"host": host, "agent": agent, "file": change.host.path, "diff": change.diff})
    if change.diff:
        run.screen.show(change.diff)
    if only_print:
        return
    if not change.diff:
        run.screen.show(f"{host} is {'not connected' if undo else 'connected already'}.")
        return
    if not undo and not load_handler(f"{_PLACE}.host_files:is_lasting")(program):
        raise ConfigurationError(
            f"{program} may be deleted later; nothing was changed.",
            code="not_installed",
            recovery="Install it first: uv tool install 'amplifier-bundle-agent-memory[cli,local,mcp] @ SOURCE'",
        )
    if not yes:
        run.confirm(f"Write that to {change.host.path}?", "Nothing was changed.")
    backup = change.apply()
    if backup is not None:
        run.screen.note(f"The file before is {backup}.", style="dim")
    await _report(run, host, agent, is_undo=undo)


def _find_program() -> Path:
    """Return the path of this program, as hosts start it.

    Raises:
        ValidationError: It was not started as a program.
    """
    found = shutil.which("agent-memory", path=str(Path(sys.executable).parent)) or shutil.which("agent-memory")
    if found is None:
        raise ValidationError("The program agent-memory is not on the PATH.", code="not_installed")
    return Path(found).absolute()


async def _report(run: CommandContext, host: str, agent: str, *, is_undo: bool) -> None:
    if is_undo:
        run.screen.show(f"Disconnected {host}. The memory of {agent} stays.")
        return
    count = 0
    if agent in agents_under(run.root):
        async with open_service(agent, run.root) as service:
            count = await service.storage.count()
    rows: list[dict[str, Any]] = load_handler(f"{_PLACE}.host_connection:list_connections")()
    others = [row["host"] for row in rows if row["agent"] == agent and row["host"] != host]
    folder = folder_of(agent, run.root).path
    run.screen.show(f'Connected {host} to memory "{agent}" ({counted(count, "memory", "memories")}, {folder}).')
    if others:
        run.screen.show(f"Shared with: {', '.join(others)}.")
    run.screen.note(run.screen.complete(f"Restart {host}. `agent-memory connect {host} --undo` removes the entry."))


def _list(run: CommandContext) -> None:
    rows: list[dict[str, Any]] = load_handler(f"{_PLACE}.host_connection:list_connections")()
    run.screen.rows({"hosts": rows}, "hosts", _COLUMNS)
    for row in rows:
        agent = f' to "{row["agent"]}"' if row["agent"] else ""
        run.screen.show(f"{row['host']:<12} {row['state']}{agent}  {row['file']}")
    run.screen.note(run.screen.complete("`agent-memory connect HOST` connects one; --print shows what it would write."))
