"""`agent-memory archive` and its commands: what was put away, found, brought back, put away by hand."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.filtering import filters_given
from agent_memory.cli.options import Filters, MemoryIds, OfferedFilters, resolved
from agent_memory.cli.render import show_hit, show_memories
from agent_memory.cli.running import NOT_FOUND, QUIET, Command, Group, Run, command
from agent_memory.cli.text import day
from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted, human
from agent_memory.models import is_memory_id, to_text
from agent_memory.service.views import whole_hit, whole_memory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agent_memory.lifecycle.archive import Archive
    from agent_memory.models import Archived

_COLUMNS: Final = ("id", "archived_at", "rule", "content")
_HIT_COLUMNS: Final = ("id", "relevance_score", "category", "timestamp", "content")
_LIMIT: Final = 10
_ArchivedId = Annotated[
    list[str], typer.Argument(metavar="ID", help="Ids of archived memories, or the beginnings of them.")
]


@contextlib.asynccontextmanager
async def opened_archive(run: Run) -> "AsyncIterator[Archive]":
    """Open the archive of the agent for the length of the block."""
    from agent_memory.lifecycle.archive import Archive

    archive = Archive(run.service)
    try:
        yield archive
    finally:
        await archive.close()


def whole_archived(memory: "Archived") -> dict[str, Any]:
    """Return an archived memory as answers have it: all its fields, and why and when it was put away."""
    return {
        **whole_memory(memory.memory),
        "archived_at": to_text(memory.archived_at),
        "rule": memory.rule,
        "why": memory.why,
        "run": memory.run,
        "merged_into": memory.merged_into,
    }


async def archived_ids(archive: "Archive", words: list[str]) -> list[str]:
    """Return the ids of archived memories that words mean: ids, or beginnings of them.

    Raises:
        ValidationError: Several begin with one of them.
    """
    found: dict[str, None] = {}
    for word in words:
        known = [word] if is_memory_id(word) else await archive.beginning_with(f"mem-{word.removeprefix('mem-')}")
        if len(known) > 1:
            raise ValidationError(
                f"{len(known)} archived ids begin with {word!r}.",
                code="ambiguous_id",
                recovery=f"Say more of the one you mean: {', '.join(known[:_LIMIT])}.",
            )
        found[known[0] if known else word] = None
    return list(found)


@command(rows=True)
async def list_(
    run: Run,
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1_000_000, metavar="N", help="How many.")] = _LIMIT,
    offset: Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Leave out the first N.")] = 0,
) -> None:
    """List archived memories, the last put there first."""
    async with opened_archive(run) as archive:
        every = await archive.browse()
    shown = every[offset : offset + limit]
    rows = [whole_archived(each) for each in shown]
    head = {"agent_id": run.service.agent_id, "count": len(rows), "total": len(every)}
    run.screen.rows({**head, "archived": rows}, "archived", _COLUMNS)
    for each in shown:
        show_memories(run.screen, [each.memory], {})
        why = f": {each.why}" if each.why else ""
        run.screen.show(f"archived {day(each.archived_at)}{why}", indent=2, style="dim")
    if not every:
        run.screen.note("The archive is empty. `agent-memory tidy` shows what could be put there.")
    elif len(every) > offset + len(shown) and run.screen.form == "text":
        run.screen.note(f"{len(shown)} of {len(every):,}; --limit or --offset {offset + len(shown)} shows more.")


@command(Filters, OfferedFilters, rows=True)
async def search(
    run: Run,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question or keywords.", show_default=False)],
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, metavar="N", help="Most results, 1 to 100.")
    ] = 5,
) -> None:
    """Find archived memories by meaning and by words, best first."""
    filters = await filters_given(run)
    async with opened_archive(run) as archive:
        found = await archive.search(query, limit, filters, run.caller)
    rows = [whole_hit(hit, explain=False, superseded_by=None) for hit in found]
    run.screen.rows({"agent_id": run.service.agent_id, "results": rows}, "results", _HIT_COLUMNS)
    for rank, hit in enumerate(found, start=1):
        show_hit(run.screen, rank, hit, explain=False, superseded_by=None)
    if not found:
        run.screen.note("Nothing found in the archive.")
        raise typer.Exit(NOT_FOUND)


async def add(
    run: Run,
    memory_id: MemoryIds,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
) -> None:
    """Put memories away, with the older versions they replaced: no search finds them until they are brought back."""
    wanted = await resolved(run.service, memory_id)
    async with opened_archive(run) as archive:
        done = await archive.add(wanted, run.caller, why=reason)
    run.screen.document({"archived": [each.id for each in done]})
    run.screen.show(f"Archived {counted(len(done), 'memory', 'memories')}.")


async def restore(run: Run, memory_id: _ArchivedId) -> None:
    """Bring archived memories back as they were, with what replaced them or was replaced by them."""
    async with opened_archive(run) as archive:
        back = await archive.restore(await archived_ids(archive, memory_id), run.caller)
    run.screen.document({"restored": [each.id for each in back]})
    run.screen.show(f"Back as they were: {', '.join(each.id for each in back)}.")


async def stats(run: Run) -> None:
    """Show how many memories are archived, why, since when, and how much room they take."""
    async with opened_archive(run) as archive:
        found = await archive.stats()
    moments = {name: None if at is None else to_text(at) for name, at in (("first", found.first), ("last", found.last))}
    run.screen.document({"agent_id": run.service.agent_id, **asdict(found), **moments})
    since = f", the first put there {day(found.first)}" if found.first else ""
    run.screen.show(f"{counted(found.memories, 'memory', 'memories')}, {human(found.file_bytes)}{since}.")
    for name, counts in (("by rule", found.by_rule), ("by category", found.by_category)):
        if counts:
            said = ", ".join(f"{key} {number}" for key, number in sorted(counts.items()))
            run.screen.show(f"{name}: {said}", indent=2)


_HELP: Final = "Look into the archive: what was put away, and bring it back."
archive = typer.Typer(cls=Group, help=_HELP, no_args_is_help=True, add_completion=False, **QUIET)
_COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    "list": list_, "search": search, "add": add, "restore": restore, "stats": stats,
}  # fmt: skip
for name, body in _COMMANDS.items():
    archive.command(name, cls=Command)(body)
