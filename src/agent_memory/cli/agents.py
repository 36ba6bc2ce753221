"""The command agents and what it has below it: list, rename, copy, delete."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_memory.cli.app import Command, Group
from agent_memory.cli.options import Yes
from agent_memory.cli.running import FAILED, Place, complete_agent, rooted

if TYPE_CHECKING:
    from pathlib import Path

    from agent_memory.storage import AgentFolder, AgentSummary

_COLUMNS = ("agent_id", "memories", "bytes", "last_used", "folder")
_SESSIONS = "Sessions that run as {name} could write nothing any more: end them first."

Name = Annotated[str, typer.Argument(metavar="NAME", help="Which agent.", autocompletion=complete_agent)]
NewName = Annotated[str, typer.Argument(metavar="NEW", help="A name that no agent has.")]


async def list_agents(place: Place) -> None:
    """List all agents: how many memories, how much room they take, when they were last used."""
    from agent_memory.files.layout import agents_under
    from agent_memory.storage import summary_of

    _sweep(place)
    summaries = [summary_of(name, place.root) for name in agents_under(place.root)]
    rows = [_document(each) for each in summaries]
    place.screen.rows({"root": str(place.root), "agents": rows}, "agents", _COLUMNS)
    _show(place, summaries)


async def rename(place: Place, old: Name, new: NewName, *, yes: Yes = False) -> None:
    """Give an agent another name."""
    from agent_memory.storage import new_folder, rename_agent

    folder = _existing(place, old)
    new_folder(new, place.root, folder.agent_id)
    _ask(place, f"Rename {folder.agent_id} to {new}?", "Nothing was renamed.", folder.agent_id, yes=yes)
    renamed = rename_agent(folder, new, place.root)
    place.screen.document({"agent_id": renamed.agent_id, "was": folder.agent_id, "folder": str(renamed.path)})
    place.screen.show(f"{folder.agent_id} is {renamed.agent_id} now.")


async def copy(place: Place, old: Name, new: NewName) -> None:
    """Begin a second agent with all that an agent remembers."""
    from agent_memory.storage import copy_agent

    folder = _existing(place, old)
    copied = copy_agent(folder, new, place.root)
    place.screen.document({"agent_id": copied.agent_id, "from": folder.agent_id, "folder": str(copied.path)})
    place.screen.show(f"{copied.agent_id} knows what {folder.agent_id} knows. From now on each remembers for itself.")


async def delete(place: Place, name: Name, *, yes: Yes = False) -> None:
    """Delete an agent with everything it remembers. Cannot be undone."""
    from agent_memory.cli.text import counted
    from agent_memory.storage import delete_agent, summary_of

    folder = _existing(place, name)
    memories = summary_of(folder.agent_id, place.root).memories
    what = f"{folder.agent_id} and {counted(memories, 'memory', 'memories')}" if memories is not None else name
    question = f"Delete {what} for good? `agent-memory export -a {folder.agent_id} FILE` would keep a copy."
    _ask(place, question, "Nothing was deleted.", folder.agent_id, yes=yes)
    delete_agent(folder)
    place.screen.document({"agent_id": folder.agent_id, "deleted": True, "memories": memories})
    place.screen.show(f"Deleted {what}.")


def _existing(place: Place, name: str) -> "AgentFolder":
    from agent_memory.cli.choosing import choose_agent
    from agent_memory.storage import folder_of

    _sweep(place)
    return folder_of(choose_agent(name, place.root, may_be_new=False), place.root)


def _sweep(place: Place) -> None:
    """Remove what earlier commands left that were interrupted; what cannot be removed stops nothing else."""
    from agent_memory.errors import StorageError
    from agent_memory.storage import sweep_agents

    try:
        swept = sweep_agents(place.root)
    except StorageError as error:
        place.screen.note(f"{error.message} {error.recovery}")
    else:
        if swept:
            place.screen.note(f"Removed what an interrupted deletion or copying had left: {_names(swept)}.")


def _names(paths: "list[Path]") -> str:
    return ", ".join(path.name for path in paths)


def _ask(place: Place, question: str, otherwise: str, name: str, *, yes: bool) -> None:
    from agent_memory.cli.forget import check_terminal

    if yes:
        return
    check_terminal(f"This asks first, and there is no terminal to ask on. {otherwise}")
    place.screen.note(_SESSIONS.format(name=name))
    place.screen.last_words = lambda: f"Stopped. {otherwise}"
    if not place.screen.ask(question):
        place.screen.note(otherwise)
        raise typer.Exit(FAILED)


def _document(summary: "AgentSummary") -> dict[str, Any]:
    from agent_memory.models import to_text

    return {
        "agent_id": summary.agent_id,
        "memories": summary.memories,
        "bytes": summary.size,
        "last_used": None if summary.last_used is None else to_text(summary.last_used),
        "folder": str(summary.folder),
        "problem": summary.problem,
    }


def _show(place: Place, summaries: "list[AgentSummary]") -> None:
    from agent_memory.cli.render import show_agents

    if summaries:
        show_agents(place.screen, summaries)
    else:
        place.screen.note(f"There are no agents under {place.root} yet. `agent-memory store -a NAME TEXT` begins one.")


AGENTS = typer.Typer(
    cls=Group,
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
AGENTS.callback()(rooted(list_agents, rows=True))
AGENTS.command("list", cls=Command)(rooted(list_agents, rows=True))
AGENTS.command("rename", cls=Command)(rooted(rename))
AGENTS.command("copy", cls=Command)(rooted(copy))
AGENTS.command("delete", cls=Command)(rooted(delete))
