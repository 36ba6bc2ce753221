"""The command search, and the wait for the vectors that it needs."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from agent_memory.cli.options import Where
from agent_memory.cli.render import REASONS, show_hit, show_left_out
from agent_memory.cli.running import NOT_FOUND, Run, command
from agent_memory.models import SearchResults, utc_now
from agent_memory.service.views import answer, whole_hit

_COLUMNS: Final = ("id", "relevance_score", "category", "timestamp", "content")
_EXPLAINED: Final = 10
"""What was left out, shown to a person at most."""
PATIENCE: Final = 60.0
"""Seconds a search waits at most: some 10,000 new memories of a local model. What is read once is kept."""
_LOOK_EVERY: Final = 0.2
_WORTH_SHOWING: Final = 64
"""Fewer are read before anybody wonders."""


@command(Where, rows=True)
async def search(
    run: Run,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A question or keywords; '' for the latest.", show_default=False)
    ],
    *,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, max=100, metavar="N", help="Most results, 1 to 100; 5 if not given."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show raw scores and what was left out, and why.")] = False,
    superseded: Annotated[bool, typer.Option("--superseded", help="Also find what a newer memory replaced.")] = False,
) -> None:
    """Find memories by meaning and by words, best first. Does not count as an access."""
    where = run.given(Where)
    filters = {
        "date_range": where.bounds() if where.since or where.until else None,
        "category": await run.category(where.category),
        "all_tags": where.tag or [],
    }
    await wait_for_embeddings(run)
    found = await run.service.search(
        query,
        limit,
        filters,
        include_superseded=superseded,
        explain=explain,
        caller=run.caller,
        counts_as_access=False,  # who looks into an agent's memory must not change what it finds
    )
    results, replaced = found.results, found.replaced
    hits = [whole_hit(hit, explain=explain, superseded_by=replaced.get(hit.memory.id)) for hit in results]
    document = {"agent_id": run.service.agent_id, **answer(found, hits, explain=explain)}
    if found.degraded:
        run.screen.note(found.degraded)
    run.screen.rows(document, "results", _COLUMNS)
    for rank, hit in enumerate(results, start=1):
        show_hit(run.screen, rank, hit, explain=explain, superseded_by=replaced.get(hit.memory.id))
    if explain and run.screen.form == "text":
        await _explain(run, results, replaced)
    if not results:
        run.screen.note("Nothing found." + (" Fewer filters or other words may help." if not explain else ""))
        raise typer.Exit(NOT_FOUND)


async def wait_for_embeddings(run: Run, patience: float = PATIENCE) -> None:
    """Wait until memories are found by meaning, too, with a progress bar if that takes a while.

    Returns when that is so, when it will not be (no embedder, or one that fails), or after `patience` seconds.

    Raises:
        StorageError: The memories cannot be read.
    """
    admin = run.service.admin
    loop = asyncio.get_running_loop()
    deadline, most = loop.time() + patience, 0
    preparing = asyncio.ensure_future(admin.prepare(None))
    try:
        with run.screen.progress() as progress:
            bar = progress.add_task("Reading memories by meaning", total=None, visible=False)
            while not preparing.done() and loop.time() < deadline:
                await asyncio.wait({preparing}, timeout=min(_LOOK_EVERY, max(0.0, deadline - loop.time())))
                pending = int(admin.embedding().get("pending", 0))
                most = max(most, pending)
                progress.update(bar, total=most, completed=most - pending, visible=most > _WORTH_SHOWING)
        if preparing.done():
            preparing.result()
    finally:
        preparing.cancel()  # its thread ends when the storage is closed
        await asyncio.gather(preparing, return_exceptions=True)


async def _explain(run: Run, results: SearchResults, replaced: Mapping[str, str]) -> None:
    """Print how the answer came about and the first few that are not in it."""
    how = "words and meaning" if results.mode == "hybrid" else "words alone"
    run.screen.show()
    run.screen.show(f"{results.total_found} found, {len(results)} shown; searched by {how}.", style="bold")
    tally = Counter(each["reason"] for each in results.rejected)
    reasons = ", ".join(f"{number} {REASONS.get(reason, reason)}" for reason, number in tally.items())
    shown = [await _why(run, each, replaced) for each in _some_of_each(results.rejected)]
    show_left_out(run.screen, shown, len(results.rejected), reasons=reasons)


def _some_of_each(rejected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the best few of every reason, in their order."""
    share = _EXPLAINED // max(1, len({each["reason"] for each in rejected}))
    seen: Counter[str] = Counter()
    chosen = []
    for each in rejected:
        seen[each["reason"]] += 1
        if seen[each["reason"]] <= share:
            chosen.append(each)
    return chosen


async def _why(run: Run, rejected: dict[str, Any], replaced: Mapping[str, str]) -> tuple[str, str, str]:
    memory_id, reason = rejected["id"], rejected["reason"]
    memory = await run.service.admin.find(memory_id)
    parts = [REASONS.get(reason, reason)]
    if reason == "filtered" and memory_id in replaced:
        parts = [f"replaced by {replaced[memory_id]}"]
    elif reason == "filtered" and memory is not None and memory.is_expired(utc_now()):
        parts = ["expired"]
    parts += [f"{name} {value:.3g}" for name, value in rejected["parts"].items() if name in {"bm25", "cosine"}]
    return memory_id, " · ".join(parts), memory.content if memory is not None else ""
