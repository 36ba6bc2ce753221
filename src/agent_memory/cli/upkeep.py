"""Commands about agents and the vector engine."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.care.agents import (
    AgentSummary,
    delete_agent,
    find_reset_files,
    new_folder,
    rename_agent,
    reset_agent,
    summary_of,
    sweep_agents,
)
from agent_memory.care.backups.restoration import copy_agent
from agent_memory.cli.backup import lacks_journal
from agent_memory.cli.command_groups import QUIET, complete_agent
from agent_memory.cli.options import Yes, choose_agent
from agent_memory.cli.render import describe_others, show_agents
from agent_memory.cli.runtime import (
    AgentContext,
    CommandContext,
    ListingGroup,
    PlaceCommand,
    build_callback,
    command,
    show_none,
)
from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.atomic import replace_file
from agent_memory.files.layout import AgentFolder, agents_under, folder_of, read_used_agent
from agent_memory.files.names import USED_AGENT
from agent_memory.files.wording import counted
from agent_memory.models import utc_now
from agent_memory.models.record import view_fields

if TYPE_CHECKING:
    from agent_memory.store.protocols import Built


_COLUMNS = ("agent_id", "memories", "bytes", "last_used", "folder")
_SESSIONS = "Running sessions of {name} could no longer write: end them first."

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the agent.", autocompletion=complete_agent)]
NewName = Annotated[str, typer.Argument(metavar="NEW", help="Name that no agent has yet.")]


@command(rows=True)
async def list_agents(place: CommandContext) -> None:
    """List all agents with their memories, size and last use."""
    _sweep(place)
    summaries = [summary_of(name, place.root) for name in agents_under(place.root)]
    rows = [_to_document(summary) for summary in summaries]
    place.screen.rows({"root": str(place.root), "agents": rows}, "agents", _COLUMNS)
    show_agents(place.screen, summaries)
    if not summaries:
        show_none(place)


async def rename(place: CommandContext, old: Name, new: NewName, *, yes: Yes = False) -> None:
    """Give an agent another name."""
    folder = _existing(place, old)
    new_folder(new, place.root, folder.agent_id)
    _ask(place, f"Rename {folder.agent_id} to {new}?", "Nothing was renamed.", folder.agent_id, yes=yes)
    renamed = rename_agent(folder, new, place.root)
    place.screen.document({"agent_id": renamed.agent_id, "was": folder.agent_id, "folder": str(renamed.path)})
    place.screen.show(f"{folder.agent_id} is {renamed.agent_id} now.")


async def copy(place: CommandContext, old: Name, new: NewName) -> None:
    """Copy an agent with all its memories to a new name."""
    folder = _existing(place, old)
    copied = copy_agent(folder, new, place.root)
    place.screen.document({"agent_id": copied.agent_id, "from": folder.agent_id, "folder": str(copied.path)})
    place.screen.show(f"Copied the memories of {folder.agent_id} to {copied.agent_id}. From now on they are separate.")


async def delete(place: CommandContext, name: Name, *, yes: Yes = False) -> None:
    """Delete an agent with everything it remembers. Cannot be undone."""
    folder = _existing(place, name)
    summary = summary_of(folder.agent_id, place.root)
    memories, other_records = summary.memories, describe_others(summary)
    what = (
        f"{folder.agent_id} and {counted(memories, 'memory', 'memories')}{other_records}"
        if memories is not None
        else name
    )
    question = f"Delete {what} for good? `agent-memory export -a {folder.agent_id} FILE` would keep a copy."
    _ask(place, place.screen.complete(question), "Nothing was deleted.", folder.agent_id, yes=yes)
    delete_agent(folder)
    place.screen.document({"agent_id": folder.agent_id, "deleted": True, "memories": memories})
    place.screen.show(f"Deleted {what}.")


async def reset(place: CommandContext, name: Name, *, yes: Yes = False) -> None:
    """Reset an agent; its old files move to the backups."""
    folder = _existing(place, name)
    find_reset_files(folder)
    if not lacks_journal(folder):
        _ask(place, f"Reset {folder.agent_id}?", "Nothing was changed.", folder.agent_id, yes=yes)
    moved = reset_agent(folder, utc_now())
    place.screen.document({"agent_id": folder.agent_id, "moved_to": str(moved)})
    place.screen.show(f"Reset {folder.agent_id}. Its old files are in {moved}.")


def _existing(place: CommandContext, name: str) -> AgentFolder:
    _sweep(place)
    return folder_of(choose_agent(name, place.root, may_be_new=False), place.root)


def _sweep(place: CommandContext) -> None:
    """Delete leftovers of interrupted commands; ignore what cannot be deleted."""
    try:
        swept = sweep_agents(place.root)
    except StorageError as error:
        place.screen.note(f"{error.message} {error.recovery}")
    else:
        if swept:
            place.screen.note(
                f"Removed leftovers of an interrupted deletion or copy: {', '.join(path.name for path in swept)}."
            )


def _ask(place: CommandContext, question: str, otherwise: str, name: str, *, yes: bool) -> None:
    if not yes:
        place.confirm(f"{_SESSIONS.format(name=name)}\n{question}", otherwise)


def _to_document(summary: AgentSummary) -> dict[str, Any]:
    counts = view_fields(summary, "agent_id", "memories", "items", "others", bytes="size")
    return {**counts, **view_fields(summary, "last_used", "folder", "problem")}


async def use(
    place: CommandContext,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The agent; without it, the choice is shown.", autocompletion=complete_agent
        ),
    ] = None,
    *,
    clear: Annotated[bool, typer.Option("--clear", help="Clear the choice.")] = False,
) -> None:
    """Choose the agent that commands without --agent work on."""
    path = place.root / USED_AGENT
    if clear:
        path.unlink(missing_ok=True)
    elif name is not None:
        chosen = choose_agent(name, place.root, may_be_new=False)
        replace_file(path, f"{chosen}\n".encode(), durable=False)
    used = read_used_agent(place.root)
    place.screen.document({"root": str(place.root), "agent_id": used or None})
    if used:
        place.screen.show(f"Commands without --agent work on {used}.")
    else:
        place.screen.hint("No agent is chosen. Choose one with `agent-memory agents use NAME`.")


_HELP: Final = "List agents; rename, copy, reset or delete one; statistics."
agents = typer.Typer(cls=ListingGroup, help=_HELP, invoke_without_command=True, add_completion=False, **QUIET)
agents.callback()(build_callback(list_agents))
agents.command("list", cls=PlaceCommand)(list_agents)
for body in (rename, copy, delete, reset):
    agents.command(cls=PlaceCommand)(body)


_STAGES: Final = {
    "embed": "Reading memories by meaning",
    "load": "Loading the index",
    "index": "Building the graph",
    "check": "Checking what was built",
    "switch": "Taking it into use",
}


async def migrate(run: AgentContext) -> None:
    """Search with the vector engine, faster for many memories; files stay the source."""
    if run.service.storage.backend == "vector":
        run.screen.document({"backend": "vector", "changed": False})
        hint = "This memory uses the vector engine already; `agent-memory index rebuild` rebuilds its index."
        run.screen.show(run.screen.complete(hint))
        return
    await _build(run)


async def reindex(run: AgentContext) -> None:
    """Rebuild the vector engine's index from the files."""
    if run.service.storage.backend != "vector":
        raise ValidationError(
            "This agent searches its files and has no index.",
            code="usage",
            recovery="Run `agent-memory index migrate` to create one.",
        )
    await _build(run)


async def rollback(run: AgentContext) -> None:
    """Search the files alone again.

    Nothing stored since the migration is lost.
    """
    changed = await run.service.monitor.migration.rollback(run.caller)
    run.screen.document({"backend": "file", "changed": changed})
    run.screen.show(
        "Removed the index; searches use the files alone again."
        if changed
        else "Nothing to roll back: searches use the files alone already."
    )


async def _build(run: AgentContext) -> None:
    begun = time.monotonic()
    built = await _watch_build(run)
    seconds = round(time.monotonic() - begun, 1)
    run.screen.document({"backend": "vector", "changed": True, "memories": built.memories, "seconds": seconds})
    run.screen.show(f"{counted(built.memories, 'memory', 'memories')} in the index, in {seconds} s. It is in use now.")


async def _watch_build(run: AgentContext) -> "Built":
    with run.screen.progress() as progress:
        bars: dict[str, Any] = {}
        totals: dict[Any, int] = {}

        async def show(stage: str, done: int, total: int) -> None:
            if stage not in bars:
                for bar in bars.values():  # one stage ends where the next begins
                    progress.update(bar, completed=totals[bar])
                bars[stage] = progress.add_task(_STAGES.get(stage, stage))
            totals[bars[stage]] = total
            progress.update(bars[stage], completed=done, total=total)

        built: Built = await run.service.monitor.migration.migrate(run.caller, show)
        return built
