"""The command about projects that memories belong to."""

from collections import Counter
from typing import Annotated, Final

import typer

from agent_memory.cli.options import Yes
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.models import ANY_STATE, PROJECT, Listing, SearchFilters

_COLUMNS: Final = ("project", "memories")


@command(rows=True)
async def projects(
    run: AgentContext,
    *,
    move: Annotated[
        tuple[str, str] | None,
        typer.Option("--move", metavar="OLD NEW", help="Move all memories of a project to another; '' for none."),
    ] = None,
    yes: Yes = False,
) -> None:
    """List projects, or move memories to another one."""
    if move is not None:
        await _move(run, *move, yes=yes)
        return
    tally = await run.service.storage.tally()
    counts_by_name: Counter[str] = tally.every_by_facet.get(PROJECT, Counter())
    without = tally.records + tally.items - counts_by_name.total()
    counts = sorted(counts_by_name.items(), key=lambda pair: (-pair[1], pair[0]))
    rows = [{"project": name, "memories": count} for name, count in counts]
    document = {"agent_id": run.service.agent_id, "count": len(rows), "without": without, "projects": rows}
    run.screen.rows(document, "projects", _COLUMNS)
    for name, count in counts:
        run.screen.show(f"{name}  {counted(count, 'memory', 'memories')}")
    if not rows:
        run.screen.note("No memory has a project. A session sets it to the repository it works in.")
    elif without:
        run.screen.note(f"{counted(without, 'memory has', 'memories have')} no project.")


async def _move(run: AgentContext, old: str, new: str, *, yes: bool) -> None:
    """Give what belongs to one project to another.

    Raises:
        UnknownIdError: Nothing belongs to it.
        StorageError: What was moved before is moved; doing it again does the rest.
    """
    filters = SearchFilters(project=old, include_items=True)
    memories = (await run.service.storage.browse(Listing("oldest", filters, ANY_STATE))).records
    if not old or not memories:
        names = ", ".join((await run.service.storage.tally()).every_by_facet.get(PROJECT, Counter())) or "none"
        raise UnknownIdError(f"No memory has the project {old!r}.", recovery=f"There are: {names}.")
    to = f"to {new!r}" if new.strip() else "to no project"
    if not yes:
        run.confirm(f"Move {counted(len(memories), 'memory', 'memories')} of {old!r} {to}?", "Nothing was moved.")
    for memory in memories:
        await run.service.update(memory.id, {"project": new}, run.caller, may_have_expired=True)
    run.screen.document({"agent_id": run.service.agent_id, "moved": len(memories), "from": old, "to": new.strip()})
    run.screen.show(f"{counted(len(memories), 'memory', 'memories')} moved {to}.")
    run.hint_undo()
