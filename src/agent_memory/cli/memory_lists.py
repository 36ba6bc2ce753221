"""Commands `list` and `show`."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import typer

from agent_memory.cli.filters import build_filters
from agent_memory.cli.options import FilterOptions, MemoryIds, OfferedFilters, resolve_ids
from agent_memory.cli.render import show_memories, show_memory, show_versions
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.errors import UnknownIdError
from agent_memory.files.wording import counted
from agent_memory.memory.views import view_links, view_versions, view_whole_memory
from agent_memory.models import Listing, ListOrder, ListPage, Memory, RecordState, utc_now
from agent_memory.store.lookups import find_current

_COLUMNS: Final = ("id", "category", "timestamp", "content")
_VERSION_COLUMNS: Final = ("seq", "at", "what", "fields", "content")
_LIMIT: Final = 10


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    """Limit and offset of a list."""

    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, max=1_000_000, metavar="N", help="Most memories; default 10."),
    ] = None
    offset: Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Leave out the first N.")] = 0
    shows_all: Annotated[bool, typer.Option("--all", help="List all.")] = False

    @property
    def most(self) -> int | None:
        """Return the largest number of results, or None for all.

        Raises:
            typer.BadParameter: Both --all and --limit are set.
        """
        if self.shows_all and self.limit is not None:
            raise typer.BadParameter("--all and --limit exclude each other", param_hint="--all")
        return None if self.shows_all else self.limit or _LIMIT


@dataclass(frozen=True, kw_only=True)
class StateFilters:
    """State filters of `list`.

    Attributes:
        trust: Required trust level; None for any.
        pinned: List pinned memories only.
        expired: List expired memories instead of valid ones.
        superseded: List superseded memories instead of valid ones; may be combined with `expired`.
    """

    trust: Annotated[
        Literal["high", "medium", "low"] | None,
        typer.Option("--trust", metavar="TRUST", help="Only of this trust: high, medium or low."),
    ] = None
    pinned: Annotated[bool, typer.Option("--pinned", help="Only pinned memories.")] = False
    expired: Annotated[bool, typer.Option("--expired", help="Only expired memories.")] = False
    superseded: Annotated[bool, typer.Option("--superseded", help="Only replaced memories.")] = False

    @property
    def states(self) -> frozenset[RecordState]:
        """Return the requested states of memories."""
        named: dict[RecordState, bool] = {"expired": self.expired, "superseded": self.superseded}
        return frozenset(state for state, is_wanted in named.items() if is_wanted) or frozenset({"valid"})


@command(PageOptions, FilterOptions, OfferedFilters, StateFilters, rows=True)
async def list_(
    run: AgentContext,
    *,
    sort: Annotated[
        ListOrder,
        typer.Option("--sort", metavar="HOW", help="newest, oldest, used (found last) or accessed (found most often)."),
    ] = "newest",
    scratchpad: Annotated[
        bool, typer.Option("--scratchpad", help="List what the agent sees at the start of a session, in that order.")
    ] = False,
) -> None:
    """List memories, the newest first."""
    page, state = run.get_options(PageOptions), run.get_options(StateFilters)
    most = page.most
    listing = Listing(sort, await build_filters(run), state.states, state.trust, state.pinned, "", page.offset, most)
    listed = await (_list_scratchpad(run, listing) if scratchpad else run.service.storage.browse(listing))
    replaced = await find_current(run.service.storage.replaced_by, [memory.id for memory in listed.records])
    documents = [view_whole_memory(memory, replaced.get(memory.id)) for memory in listed.records]
    head = {"agent_id": run.service.agent_id, "count": len(documents), "total": listed.total}
    run.screen.rows({**head, "memories": documents}, "memories", _COLUMNS)
    show_memories(run.screen, listed.records, replaced)
    if not listed.total and not await run.service.storage.count():
        await run.note_nothing()
    else:
        _note_rest(run, listed.total, page.offset, len(documents))
    if not listed.total and not scratchpad:
        await _note_items(run)


async def _list_scratchpad(run: AgentContext, listing: Listing) -> ListPage[Memory]:
    """Return the requested page of the scratchpad, in its order."""
    entries, now = (await run.service.scratchpad(run.caller)).entries, utc_now()
    replaced = await run.service.storage.replaced_by([memory.id for memory in entries])
    chosen = [
        memory
        for memory in entries
        if listing.admits(memory, expired=memory.is_expired(now), superseded=memory.id in replaced)
    ]
    return ListPage(chosen[listing.offset : listing.end], len(chosen))


@command(rows=True)
async def show(
    run: AgentContext,
    memory_id: MemoryIds,
    *,
    history: Annotated[bool, typer.Option("--history", help="Show the versions of one memory, oldest first.")] = False,
) -> None:
    """Show all fields of memories, or the earlier versions of one.

    Versions cover 30 days or more, also of a forgotten memory.
    """
    if history:
        await _show_history(run, memory_id)
        return
    ids = await resolve_ids(run.service, memory_id, read_only=True)
    memories = [await run.service.open(memory_id, run.caller) for memory_id in ids]
    replaced = await find_current(run.service.storage.replaced_by, [memory.id for memory in memories])
    around = await run.service.storage.surroundings([memory.id for memory in memories])
    documents = [
        {**view_whole_memory(memory, replaced.get(memory.id)), **view_links(around[memory.id], "linked")}
        for memory in memories
    ]
    run.screen.rows({"memories": documents}, "memories", _COLUMNS)
    if len(documents) == 1 and run.screen.fields is None:
        run.screen.document(documents[0])
    conflicts = await run.service.suspects() if run.screen.form == "text" else []
    for position, memory in enumerate(memories):
        if position:
            run.screen.show()
        disputes = [conflict.older.id for conflict in conflicts if conflict.newer.id == memory.id]
        show_memory(run.screen, memory, replaced.get(memory.id), around[memory.id], disputes)


async def _show_history(run: AgentContext, words: list[str]) -> None:
    """Show the versions of the only memory that is named."""
    if len(words) > 1:
        raise typer.BadParameter("it takes one ID", param_hint="--history")
    (memory_id,) = await resolve_ids(run.service, words, forgotten=True, read_only=True)
    versions = await run.service.history.history(memory_id)
    if not versions:
        raise UnknownIdError(f"Nothing is known about {memory_id}.")
    rows = view_versions(versions)
    run.screen.rows({"memory_id": memory_id, "versions": rows}, "versions", _VERSION_COLUMNS)
    show_versions(run.screen, memory_id, rows)


def _note_rest(run: AgentContext, total: int, offset: int, shown: int) -> None:
    """Print that more memories exist, or that none matches."""
    if run.screen.form not in {"text", "table"}:
        return
    if not total:
        run.screen.note("No memory matches.")
    elif not shown:
        run.screen.note(f"Offset {offset:,} is past the end: {counted(total, 'memory', 'memories')} in total.")
    elif run.screen.out and offset + shown < total:
        run.screen.note(f"{shown:,} of {total:,}; use --all or --offset {offset + shown} to see more.", style="dim")


async def _note_items(run: AgentContext) -> None:
    """Print how many items the list omits."""
    items = 0 if run.get_options(FilterOptions).items else (await run.service.storage.tally()).items
    if items and run.screen.form in {"text", "table"}:
        were = counted(items, "item is", "items are")
        run.screen.note(f"{were} left out: extracted from documents and conversations. --items also lists them.")
