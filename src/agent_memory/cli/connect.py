"""`agent-memory connect`: give MCP hosts an agent's memory."""

from typing import Annotated, Any, Final

import typer

from agent_memory.care.agents import create_agent, summary_of
from agent_memory.cli.options import AgentOption, Yes, choose_served_agent
from agent_memory.cli.permanent_program import ProgramPlan, plan_program
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.text import shorten_home
from agent_memory.files.layout import folder_of, resolve_root
from agent_memory.files.wording import counted
from agent_memory.registry import load_handler
from agent_memory.settings import DEFAULT_ROOT
from agent_memory.settings.installation import check_installed

_PLACE: Final = "agent_memory.integrations.host_files"
_LIMIT: Final = "agent_memory.integrations.mcp.turn_files:limit_host"
_NEEDED: Final = ("mcp", "tomlkit", "ruamel")
_AMPLIFIER_SETTINGS: Final = "settings.yaml"
_COLUMNS: Final = ("host", "state", "agent", "file")


@command(AgentOption, rows=True)
async def connect(
    run: CommandContext,
    host: Annotated[str | None, typer.Argument(metavar="HOST", help="Name of the host; none lists all.")] = None,
    *,
    only_list: Annotated[bool, typer.Option("--list", help="List all hosts; connect none.")] = False,
    only_print: Annotated[bool, typer.Option("--print", help="Print what would be written; change nothing.")] = False,
    project_only: Annotated[
        bool, typer.Option("--project-only", help="Let the host see and write its own project alone.")
    ] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Remove the entry from the host's configuration.")] = False,
    yes: Yes = False,
) -> None:
    """Give an MCP host such as claude-code an agent's memory."""
    if host is None or only_list:
        _list(run)
        return
    plan = plan_program()
    if undo:
        agent: str = next((row["agent"] or "" for row in _read_connections() if row["host"] == host), "")
        change = load_handler(f"{_PLACE}:plan_disconnection")(host)
    else:
        if not plan.commands:  # else they install them
            check_installed("The server for hosts needs packages that are not installed.", "mcp", *_NEEDED)
        agent = choose_served_agent(run.get_options(AgentOption).agent, run.root)
        root = "" if run.root == resolve_root(DEFAULT_ROOT) else str(run.root)
        change = load_handler(f"{_PLACE}:plan_connection")(
            host, str(plan.program), agent, root, is_project_only=project_only
        )
    run.screen.document({"host": host, "agent": agent, "file": change.path, "diff": change.diff})
    plan = ProgramPlan(plan.program) if undo else plan
    if plan.commands:
        run.screen.show(f"This program runs from a temporary folder. To install it: {plan.shown}")
    if change.diff:
        run.screen.show(change.diff)
    if only_print:
        return
    if not (change.diff or plan.commands):
        run.screen.show(f"{host} is {'not connected' if undo else 'connected already'}.")
        return
    _apply(run, plan, change, yes=yes)
    load_handler(_LIMIT)(run.root, host, is_project_only=project_only and not undo)
    if undo:
        run.screen.show(f"Disconnected {host}. The memory{f' of {agent}' if agent else ''} stays.")
    else:
        create_agent(folder_of(agent, run.root))
        _report(run, host, agent)
        if change.advice:
            run.screen.note(change.advice)


def _apply(run: CommandContext, plan: ProgramPlan, change: Any, *, yes: bool) -> None:
    """Install the program and write the host's file, after a question."""
    if not yes:
        paths = [file.host.path for file in change.files] or [change.path]
        install = "Install agent-memory with that command and write" if plan.commands else "Write"
        run.confirm(f"{install} the change to {' and '.join(paths)}?", "Nothing was changed.")
    if plan.commands:
        plan.install()
    for backup in change.apply():
        run.screen.note(f"The file before is {backup}.", style="dim")


def _report(run: CommandContext, host: str, agent: str) -> None:
    summary = summary_of(agent, run.root)
    sharing = [row["host"] for row in _read_connections() if row["agent"] == agent and row["host"] != host]
    if run.root == resolve_root(DEFAULT_ROOT) and (run.root.parent / _AMPLIFIER_SETTINGS).exists():
        sharing.append("amplifier")  # the bundle uses the same folder
    count = "" if summary.memories is None else f"{counted(summary.memories, 'memory', 'memories')}, "
    sentences = [f'Connected {host} to memory "{agent}" ({count}{shorten_home(summary.folder)}).']
    sentences += [f"Shared with: {', '.join(sharing)}."] if sharing else []
    sentences.append(f"Undo: agent-memory connect {host} --undo.")  # needs no root: the host's file names it
    run.screen.show(" ".join(sentences))
    run.screen.note(f"Restart {host}.")


def _read_connections() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = load_handler(f"{_PLACE}:list_connections")()
    return rows


def _list(run: CommandContext) -> None:
    rows = _read_connections()
    run.screen.rows({"hosts": rows}, "hosts", _COLUMNS)
    for row in rows:
        agent = f' to "{row["agent"]}"' if row["agent"] else ""
        run.screen.show(f"{row['host']:<12} {row['state']}{agent}  {row['file']}")
    run.screen.note(run.screen.complete("`agent-memory connect HOST` connects one; --print shows what it would write."))
