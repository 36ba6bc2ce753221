"""`agent-memory archive`: list, search, add and restore archived memories."""

import contextlib
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.command_groups import QUIET, CommandGroup
from agent_memory.cli.exit_codes import NOT_FOUND
from agent_memory.cli.filters import build_filters
from agent_memory.cli.options import (
    FilterOptions,
    MemoryIds,
    OfferedFilters,
    build_ambiguous,
    check_beginning,
    resolve_ids,
)
from agent_memory.cli.render import show_hit, show_memories
from agent_memory.cli.runtime import AgentCommand, AgentContext, command
from agent_memory.cli.text import day
from agent_memory.errors import StorageError, UnknownIdError
from agent_memory.files.wording import counted, format_size
from agent_memory.memory.views import view_whole_hit, view_whole_memory
from agent_memory.models import ARCHIVED, SearchFilters, is_memory_id, to_text
from agent_memory.models.record import view_fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.care.archive import Archive
    from agent_memory.cli.screen import OutputScreen
    from agent_memory.models import ArchivedMemory, MemorySearchResult

_COLUMNS: Final = ("id", "archived_at", "rule", "content")
_HIT_COLUMNS: Final = ("id", "relevance_score", "category", "timestamp", "content")
_LIMIT: Final = 10
_HITS: Final = 5
_ArchivedId = Annotated[
    list[str], typer.Argument(metavar="ID", help="IDs of archived memories, or the first characters of them.")
]


def open_archive(run: AgentContext) -> "Archive":
    """Return the archive of the agent, open for a block."""
    from agent_memory.care import archive

    return archive.Archive(run.service)


def view_archived(memory: "ArchivedMemory") -> dict[str, Any]:
    """Return all fields of an archived memory with reason and time."""
    return {
        **view_whole_memory(memory.memory),
        **view_fields(memory, "archived_at", "rule", "why", "run", "merged_into"),
    }


async def archived_ids(archive: "Archive", words: list[str]) -> list[str]:
    """Return full IDs of archived memories for IDs or their beginnings.

    Raises:
        ValidationError: Several begin with one of them, or it is too short.
    """
    archived: dict[str, None] = {}
    for word in words:
        check_beginning(word)
        matches = [word] if is_memory_id(word) else await archive.beginning_with(f"mem-{word.removeprefix('mem-')}")
        if len(matches) > 1:
            raise build_ambiguous(word, len(matches), f" {', '.join(matches[:_LIMIT])}.")
        archived[matches[0] if matches else word] = None
    return list(archived)


async def in_archive(run: AgentContext, word: str) -> str | None:
    """Return the ID of the named archived memory, or None.

    Raises:
        ValidationError: Several begin with it.
    """
    if not has_archive(run):
        return None
    if not is_memory_id(word):
        try:
            await resolve_ids(run.service, [word], forgotten=True)
        except UnknownIdError:
            pass
        else:
            return None
    async with open_archive(run) as opened:
        (archived_id,) = await archived_ids(opened, [word])
        return archived_id if is_memory_id(archived_id) and await opened.get(archived_id) is not None else None


def has_archive(run: AgentContext) -> bool:
    """Return True if the agent has an archive."""
    from agent_memory.memory.inbox_access import has_journal

    return has_journal(run.service.agent_id, run.service.settings, ARCHIVED)


async def find_archived(
    run: AgentContext, query: str, limit: int | None, filters: SearchFilters
) -> "list[MemorySearchResult]":
    """Return archived hits, best first; empty without an archive."""
    if not has_archive(run):
        return []
    async with open_archive(run) as opened:
        return list(await opened.search(query, limit or _HITS, filters, run.caller))


def as_document(hits: "Sequence[MemorySearchResult] | None") -> dict[str, Any]:
    """Return archived hits as part of a JSON answer."""
    if hits is None:
        return {}
    return {"archived": [view_whole_hit(hit, explain=False, superseded_by=None) for hit in hits]}


def show_archived(screen: "OutputScreen", hits: "Sequence[MemorySearchResult]") -> None:
    """Print what was found in the archive."""
    for rank, hit in enumerate(hits, start=1):
        if rank == 1:
            screen.show("In the archive:", style="bold")
        show_hit(screen, rank, hit, explain=False, superseded_by=None)


async def write_archived(run: AgentContext, write: Callable[[dict[str, Any]], object]) -> int:
    """Write archived memories as part of an export; return their number."""
    if not has_archive(run):
        return 0
    async with open_archive(run) as opened:
        archived = await opened.everything()
    for record in archived:
        write({"kind": ARCHIVED.name, "id": record.id, **record.to_record()})
    return len(archived)


async def import_archived(
    run: AgentContext, records: "Sequence[ArchivedMemory]", *, trusted: bool, dry_run: bool
) -> int:
    """Store the archived memories of a trusted export; return their number."""
    if not records:
        return 0
    if not trusted:
        run.screen.note(
            f"Skipped {counted(len(records), 'archived memory', 'archived memories')}: only with --trusted."
        )
        return 0
    async with open_archive(run) as opened:
        return await opened.take_in(records, dry_run=dry_run)


async def count_archived(run: AgentContext) -> int:
    """Return the number of archived memories, 0 if it cannot be read."""
    if not has_archive(run):
        return 0
    async with open_archive(run) as opened:
        with contextlib.suppress(StorageError):
            return len(await opened.everything())
    return 0


async def forget_archived(run: AgentContext, named: list[str], *, reason: str, yes: bool, now: bool) -> list[str]:
    """Forget named archived memories after a question; return the other names."""
    archived = {word: archived_id for word in named if (archived_id := await in_archive(run, word)) is not None}
    if not archived:
        return named
    async with open_archive(run) as opened:
        if not yes:
            run.need_terminal("Nothing was forgotten.", "Forgetting")
            for archived_id in archived.values():
                memory = await opened.get(archived_id)
                run.screen.note("" if memory is None else memory.content, style="")
            what = "this archived memory" if len(archived) == 1 else f"these {len(archived)} archived memories"
            run.confirm(f"Forget {what}{' for good' if now else ''}?", "Nothing was forgotten.")
        for archived_id in dict.fromkeys(archived.values()):
            if await opened.get(archived_id) is None:
                continue  # an older version of one before it
            done = await opened.forget(archived_id, run.caller, reason=reason)
            run.screen.document(
                {"memory_id": archived_id, "forgotten": True, "older_versions": list(done.older_versions)}
            )
            run.screen.show(f"Forgot {archived_id}, which was archived.")
            if not now:
                run.hint_undo(archived_id)
    return [word for word in named if word not in archived]


async def compact_archive(run: AgentContext, grace: timedelta | None = None) -> None:
    """Delete restored and deleted records from the archive's file."""
    if has_archive(run):
        async with open_archive(run) as opened:
            await opened.compact(grace)


@command(rows=True)
async def list_(
    run: AgentContext,
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=1_000_000, metavar="N", help="Most memories.")
    ] = _LIMIT,
    offset: Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Leave out the first N.")] = 0,
) -> None:
    """List archived memories, newest first."""
    async with open_archive(run) as archive:
        archived = await archive.browse()
    shown = archived[offset : offset + limit]
    rows = [view_archived(record) for record in shown]
    head = {"agent_id": run.service.agent_id, "count": len(rows), "total": len(archived)}
    run.screen.rows({**head, "archived": rows}, "archived", _COLUMNS)
    for record in shown:
        show_memories(run.screen, [record.memory], {})
        why = f": {record.why}" if record.why else ""
        run.screen.show(f"archived {day(record.archived_at)}{why}", indent=2, style="dim")
    if not archived:
        run.screen.hint("The archive is empty. Run `agent-memory archive tidy` to see what could be archived.")
    elif len(archived) > offset + len(shown) and run.screen.form == "text":
        run.screen.note(
            f"{len(shown)} of {len(archived):,}; use --limit or --offset {offset + len(shown)} to see more."
        )


@command(FilterOptions, OfferedFilters, rows=True)
async def search(
    run: AgentContext,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A question or keywords.", show_default=False)],
    *,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=100, metavar="N", help="Most results, 1 to 100.")
    ] = 5,
) -> None:
    """Find archived memories by meaning and by words, best first."""
    filters = await build_filters(run)
    async with open_archive(run) as archive:
        hits = await archive.search(query, limit, filters, run.caller)
    rows = as_document(hits)["archived"]
    run.screen.rows({"agent_id": run.service.agent_id, "results": rows}, "results", _HIT_COLUMNS)
    for rank, hit in enumerate(hits, start=1):
        show_hit(run.screen, rank, hit, explain=False, superseded_by=None)
    if not hits:
        run.screen.note("Nothing found in the archive.")
        raise typer.Exit(NOT_FOUND)


async def add(
    run: AgentContext,
    memory_id: MemoryIds,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
) -> None:
    """Archive memories with their older versions; searches no longer find them."""
    wanted = await resolve_ids(run.service, memory_id)
    async with open_archive(run) as archive:
        done = await archive.add(wanted, run.caller, why=reason)
    run.screen.document({"archived": [record.id for record in done]})
    run.screen.show(f"Archived {counted(len(done), 'memory', 'memories')}.")


async def restore(run: AgentContext, memory_id: _ArchivedId) -> None:
    """Restore archived memories with the versions linked to them."""
    await restore_archived(run, memory_id)


async def restore_archived(run: AgentContext, named: list[str]) -> None:
    """Bring archived memories back, and say so."""
    async with open_archive(run) as opened:
        back = await opened.restore(await archived_ids(opened, named), run.caller)
    run.screen.document({"was": "archived", "restored": [record.id for record in back]})
    run.screen.show(f"Restored from the archive: {', '.join(record.id for record in back)}.")


async def stats(run: AgentContext) -> None:
    """Show number, reasons, dates and size of archived memories."""
    async with open_archive(run) as archive:
        statistics = await archive.stats()
    moments = {
        name: None if moment is None else to_text(moment)
        for name, moment in (("first", statistics.first), ("last", statistics.last))
    }
    run.screen.document({"agent_id": run.service.agent_id, **asdict(statistics), **moments})
    since = f", the first put there {day(statistics.first)}" if statistics.first else ""
    size = format_size(statistics.file_bytes)
    run.screen.show(f"{counted(statistics.memories, 'memory', 'memories')}, {size}{since}.")
    for name, counts in (("by rule", statistics.by_rule), ("by category", statistics.by_category)):
        if counts:
            figures = ", ".join(f"{key} {number}" for key, number in sorted(counts.items()))
            run.screen.show(f"{name}: {figures}", indent=2)


_HELP: Final = "List, search and restore archived memories; tidy and compact."
archive = typer.Typer(cls=CommandGroup, help=_HELP, no_args_is_help=True, add_completion=False, **QUIET)
_COMMANDS: Final[dict[str, Callable[..., Any]]] = {
    "list": list_, "search": search, "add": add, "restore": restore, "stats": stats,
}  # fmt: skip
for name, body in _COMMANDS.items():
    archive.command(name, cls=AgentCommand)(body)
