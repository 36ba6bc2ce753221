"""The command list: memories by their fields, newest first."""

from typing import Annotated, Final, Literal

import typer

from agent_memory.cli.options import Category, Since, Tags, Until, moment_of, tags_of
from agent_memory.cli.running import Run

COLUMNS: Final = ("id", "category", "timestamp", "content")
_LIMIT: Final = 10


async def list_memories(  # noqa: PLR0913 - each is an option
    run: Run,
    *,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, max=1_000_000, metavar="N", help="How many; 10.")
    ] = None,
    offset: Annotated[int, typer.Option("--offset", min=0, metavar="N", help="Leave out the first N.")] = 0,
    every: Annotated[bool, typer.Option("--all", help="However many there are.")] = False,
    category: Category = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    trust: Annotated[
        Literal["high", "medium", "low"] | None,
        typer.Option("--trust", metavar="TRUST", help="Only of this trust: high, medium or low."),
    ] = None,
    pinned: Annotated[bool, typer.Option("--pinned", help="Only what is pinned.")] = False,
    expired: Annotated[bool, typer.Option("--expired", help="Only what has expired.")] = False,
    superseded: Annotated[bool, typer.Option("--superseded", help="Only what a newer memory replaced.")] = False,
    sort: Annotated[
        Literal["newest", "oldest", "used", "accessed"],
        typer.Option("--sort", metavar="HOW", help="newest, oldest, used (found last) or accessed (found most often)."),
    ] = "newest",
    scratchpad: Annotated[
        bool, typer.Option("--scratchpad", help="What the agent sees at the start of a session, in its order.")
    ] = False,
) -> None:
    """List memories, the newest first."""
    from agent_memory.cli.render import show_memories
    from agent_memory.cli.selecting import Wanted, ordered
    from agent_memory.models import filters_of, utc_now
    from agent_memory.service.views import whole_memory

    if every and limit is not None:
        raise typer.BadParameter("--all and --limit cannot both be", param_hint="--all")
    admin = run.service.admin
    bounds = {"start": moment_of(since, "--since", end=False), "end": moment_of(until, "--until", end=True)}
    filters_of({"date_range": bounds})  # refuses what ends before it begins
    wanted = Wanted(
        category=None if category is None else await admin.known_category(category),
        tags=frozenset(tags_of(tag)),
        since=bounds["start"],
        until=bounds["end"],
        trust=trust,
        pinned=pinned,
        expired=expired,
        superseded=superseded,
    )
    if scratchpad:
        known = list((await run.service.scratchpad(run.caller)).entries)
    else:
        known = ordered(await admin.everything(), sort)
    replaced, now = await admin.superseded(), utc_now()
    found = [memory for memory in known if wanted.admits(memory, now, replaced)]
    memories = found[offset:] if every else found[offset : offset + (limit or _LIMIT)]
    documents = [whole_memory(memory, replaced.get(memory.id)) for memory in memories]
    head = {"agent_id": run.service.agent_id, "count": len(documents), "total": len(found)}
    run.screen.rows({**head, "memories": documents}, "memories", COLUMNS)
    show_memories(run.screen, memories, replaced)
    if not known:
        run.screen.note(f"{run.service.agent_id} remembers nothing yet.")
    else:
        _note_rest(run, len(found), offset, len(memories))


def _note_rest(run: Run, total: int, offset: int, shown: int) -> None:
    """Tell a person that there is more, or nothing like that."""
    if run.screen.form not in {"text", "table"}:
        return
    if not total:
        run.screen.note("No memory is like that.")
    elif not shown:
        run.screen.note(f"There are only {total:,}.")
    elif run.screen.out.is_terminal and offset + shown < total:
        run.screen.note(f"{shown:,} of {total:,}; --all or --offset {offset + shown} shows more.", style="dim")
