"""Commands that ask: status, search, show."""

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.list import COLUMNS
from agent_memory.cli.meaning import wait_for_meaning
from agent_memory.cli.options import Category, MemoryIds, Since, Tags, Until, moment_of
from agent_memory.cli.running import FAILED, NOT_FOUND, Run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.models import SearchResults

_COLUMNS: Final = ("id", "relevance_score", "category", "timestamp", "content")
_EXPLAINED: Final = 10
"""What was left out, shown to a person at most."""


async def status(run: Run) -> None:
    """Show how many memories there are, and whether all is well."""
    from dataclasses import asdict

    from agent_memory.cli.render import show_status
    from agent_memory.storage import folder_of

    state = await run.service.status()
    folder = folder_of(state.agent_id, run.root).path
    run.screen.document({**asdict(state), "folder": str(folder)})
    show_status(run.screen, state, folder)
    if state.health.get("status") == "unreadable":
        raise typer.Exit(FAILED)


async def search(  # noqa: PLR0913 - each is an option
    run: Run,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A question or keywords; '' for the latest.", show_default=False)
    ],
    *,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, max=100, metavar="N", help="Most results, 1 to 100; 5 if not given."),
    ] = None,
    category: Category = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show raw scores and what was left out, and why.")] = False,
    superseded: Annotated[bool, typer.Option("--superseded", help="Also find what a newer memory replaced.")] = False,
) -> None:
    """Find memories by meaning and by words, best first. Does not count as an access."""
    from agent_memory.cli.render import show_hit
    from agent_memory.service.views import answer, whole_hit

    bounds = {"start": moment_of(since, "--since", end=False), "end": moment_of(until, "--until", end=True)}
    if category is not None:
        category = await run.service.admin.known_category(category)
    filters = {"category": category, "all_tags": tag or [], "date_range": bounds if since or until else None}
    await wait_for_meaning(run)
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


async def show(run: Run, memory_id: MemoryIds) -> None:
    """Show all that is known about memories."""
    from agent_memory.cli.ids import resolved
    from agent_memory.cli.render import show_memory
    from agent_memory.service.views import whole_memory

    wanted = await resolved(run.service, memory_id)
    memories = [await run.service.get(each) for each in wanted]
    replaced = await run.service.admin.superseded()
    documents = [whole_memory(memory, replaced.get(memory.id)) for memory in memories]
    run.screen.rows({"memories": documents}, "memories", COLUMNS)
    if len(documents) == 1 and run.screen.fields is None:
        run.screen.document(documents[0])
    for position, memory in enumerate(memories):
        if position:
            run.screen.show()
        show_memory(run.screen, memory, replaced.get(memory.id))


async def _explain(run: Run, results: "SearchResults", replaced: "Mapping[str, str]") -> None:
    """Print how the answer came about and the first few that are not in it."""
    from agent_memory.cli.render import REASONS, show_left_out

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


async def _why(run: Run, rejected: dict[str, Any], replaced: "Mapping[str, str]") -> tuple[str, str, str]:
    from agent_memory.cli.render import REASONS
    from agent_memory.models import utc_now

    memory_id, reason = rejected["id"], rejected["reason"]
    memory = await run.service.admin.find(memory_id)
    parts = [REASONS.get(reason, reason)]
    if reason == "filtered" and memory_id in replaced:
        parts = [f"replaced by {replaced[memory_id]}"]
    elif reason == "filtered" and memory is not None and memory.is_expired(utc_now()):
        parts = ["expired"]
    parts += [f"{name} {value:.3g}" for name, value in rejected["parts"].items() if name in {"bm25", "cosine"}]
    return memory_id, " · ".join(parts), memory.content if memory is not None else ""
