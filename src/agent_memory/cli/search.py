"""Commands `search` and `overview`."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from agent_memory.cli.archive import as_document, find_archived, show_archived
from agent_memory.cli.exit_codes import NOT_FOUND
from agent_memory.cli.filters import build_filters
from agent_memory.cli.options import FilterOptions, OfferedFilters
from agent_memory.cli.render import REASONS, show_hit, show_left_out, show_overview
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.earlier_name_tables import get_earlier_keys
from agent_memory.embeddings.service import AT_THE_END
from agent_memory.memory.results import Found
from agent_memory.memory.views import view_answer, view_whole_hit
from agent_memory.models import HIT_KINDS, HitKind, SearchResults, is_memory_id, utc_now
from agent_memory.models.text import brief

_HIT_COLUMNS: Final = ("id", "relevance_score", "category", "timestamp", "content")
_MAX_EXPLAINED: Final = 10
"""Most omitted results in a printed explanation."""
_POLL_SECONDS: Final = 0.2
_NOTE_LOADING_AFTER: Final = 0.5
"""Seconds before a note says that the model is loading."""


@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """Options of a search beyond its filters.

    Attributes:
        full: Print the whole text of long hits.
        wait: Embed all pending texts first.
        kind: Kinds of hits to find, or None for all kinds.
    """

    full: Annotated[bool, typer.Option("--full", help="Show full texts instead of excerpts.")] = False
    wait: Annotated[bool, typer.Option("--wait", help="Embed all pending texts first.")] = False
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Only note, passage, page or talk; repeatable."),
    ] = None

    @property
    def kinds(self) -> frozenset[HitKind]:
        """Return the requested kinds of hits.

        Raises:
            typer.BadParameter: A kind is unknown.
        """
        named = set(self.kind or ())
        if named - HIT_KINDS:
            raise typer.BadParameter(f"a kind is one of {', '.join(sorted(HIT_KINDS))}", param_hint="--kind")
        return frozenset(kind for kind in HIT_KINDS if kind in named) or HIT_KINDS


@command(FilterOptions, OfferedFilters, AnswerOptions, rows=True)
async def search(
    run: AgentContext,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="QUERY",
            help="A question or keywords; '' for the newest. Without it, an overview or the filters' newest.",
            show_default=False,
        ),
    ] = None,
    *,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, max=100, metavar="N", help="Most results, 1 to 100; default 5."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show raw scores, what was left out, and why.")] = False,
    superseded: Annotated[bool, typer.Option("--superseded", help="Also find replaced memories.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Also find archived memories.")] = False,
) -> None:
    """Search memories, documents, pages and conversations.

    Shows results with scores near the best, and excerpts of long texts. Does not count as an access.
    """
    filters = (await build_filters(run)).model_copy(update={"include_items": False})
    kinds = run.get_options(AnswerOptions).kinds
    if query is None and (filters.is_narrow or kinds != HIT_KINDS):
        query = ""
    answering = run.service.search(
        query,
        limit,
        filters,
        include_superseded=superseded,
        explain=explain,
        caller=run.caller,
        kinds=kinds,
        has_waiting=True,
    )
    answer = await _await_answer(run, answering)
    text = query or ""
    archived_hits = await find_archived(run, text, limit, filters) if archived else None
    results, replaced = answer.results, answer.replaced
    hits = [view_whole_hit(hit, explain=explain, superseded_by=replaced.get(hit.memory.id)) for hit in answer.near]
    document = {
        "agent_id": run.service.agent_id,
        **view_answer(answer, hits, explain=explain),
        **get_earlier_keys("search"),
        **as_document(archived_hits),
    }
    _note_degraded(run, answer)
    if is_memory_id(text.strip()):
        run.screen.hint(f"Search takes words. Run `agent-memory show {text.strip()}` to see the memory of this ID.")
    if results and results.match == "weak":
        run.screen.note("No confident match. Closest results:")
    run.screen.rows(document, "results", _HIT_COLUMNS)
    await _show_found(run, answer, archived_hits, explain=explain)
    if explain and run.screen.form == "text":
        await _explain(run, results, replaced)
    if not results and not archived_hits and answer.overview is None:
        advice = "Fewer filters or other words" if filters.is_narrow or kinds != HIT_KINDS else "Other words"
        await _note_nothing(run, "" if explain else f" {advice} may help.")
        raise typer.Exit(NOT_FOUND)


@command(rows=True)
async def overview(run: AgentContext) -> None:
    """Show counts, pinned memories, open tasks and the newest."""
    results = await run.service.search(None, caller=run.caller, kinds=HIT_KINDS, has_waiting=True)
    hits = [view_whole_hit(hit, explain=False, superseded_by=None) for hit in results.near]
    document = {"agent_id": run.service.agent_id, **view_answer(results, hits, explain=False)}
    run.screen.rows(document, "results", _HIT_COLUMNS)
    await _show_found(run, results, None, explain=False)


async def _note_nothing(run: AgentContext, advice: str) -> None:
    if await run.service.storage.count():
        run.screen.note(f"Nothing found.{advice}")
    else:
        await run.note_nothing()


async def _show_found(run: AgentContext, results: Found, archived_hits: Sequence[Any] | None, *, explain: bool) -> None:
    """Print an answer: the counts of an overview, then the hits."""
    full = run.get_options(AnswerOptions).full if results.overview is None else False
    if results.overview is not None and not results.near and not any(results.overview.values()):
        await run.note_nothing()
    elif results.overview is not None:
        show_overview(run.screen, results.overview)
    hits, how = results.near, "--full or `agent-memory show ID`"
    if results.overview is not None:  # the excerpts are cut for a model
        how = "`agent-memory show ID`"
        hits = [hit.model_copy(update={"excerpt": brief(hit.memory.content)}) for hit in hits]
    for rank, hit in enumerate(hits, start=1):
        superseded_by = results.replaced.get(hit.memory.id)
        show_hit(run.screen, rank, hit, explain=explain, superseded_by=superseded_by, full=full)
    show_archived(run.screen, archived_hits or ())
    if any("…" in (hit.excerpt or "") for hit in hits) and not full and run.screen.out:
        run.screen.hint(f"… marks omitted text; {how} shows it.", style="dim")


async def wait_for_embeddings(run: AgentContext) -> None:
    """Wait until all memories are embedded; show progress if that is slow.

    Returns also without an embedder, or if the embedder fails.

    Raises:
        StorageError: The memories cannot be read.
    """
    storage, most = run.service.storage, 0
    preparing = asyncio.ensure_future(storage.prepare(None))
    try:
        with run.screen.progress() as progress:
            bar = progress.add_task("Reading memories by meaning", total=None, visible=False)
            while not preparing.done():
                await asyncio.wait({preparing}, timeout=_POLL_SECONDS)
                state = storage.embedding_status()
                pending = int(state.get("pending", 0)) + int(state.get("languages", {}).get("pending", 0))
                most = max(most, pending)
                progress.update(bar, total=most, completed=most - pending, visible=most > AT_THE_END)
        preparing.result()
    finally:
        preparing.cancel()  # its thread ends when the storage is closed
        await asyncio.gather(preparing, return_exceptions=True)


async def _await_answer(run: AgentContext, answering: Awaitable[Found]) -> Found:
    """Await the answer; print a note while the model is loading."""
    if run.get_options(AnswerOptions).wait:
        await wait_for_embeddings(run)
    answer = asyncio.ensure_future(answering)
    done, _ = await asyncio.wait({answer}, timeout=_NOTE_LOADING_AFTER)
    if not done and run.service.storage.embedding_status().get("status") == "loading":
        run.screen.note("loading model …", style="dim")
    return await answer


def _note_degraded(run: AgentContext, results: Found) -> None:
    if results.degraded:
        state = run.service.storage.embedding_status()
        languages = state.get("languages", {})
        is_added = bool(languages) and not languages.keys() & {"problem", "next_start"}
        has_pending = is_added or int(state.get("pending", 0)) > AT_THE_END
        run.screen.hint(
            results.degraded + (" Run `agent-memory search --wait` to embed all first." if has_pending else "")
        )


async def _explain(run: AgentContext, results: SearchResults, replaced: Mapping[str, str]) -> None:
    """Print scores and the first omitted results."""
    how = "words and meaning" if results.mode == "hybrid" else "words alone"
    run.screen.show()
    shown = sum(hit.is_near for hit in results)
    run.screen.show(f"{results.total_found} found, {shown} shown; searched by {how}.", style="bold")
    tally = Counter(rejection["reason"] for rejection in results.rejected)
    ranked = {"not_near": tally.pop("not_near", 0), "beyond_limit": tally.pop("beyond_limit", 0)}
    last = "beyond_limit" if results and results[-1].is_near else "not_near"
    ranked[last] += results.total_found - shown - sum(ranked.values())  # the list has the first of them
    groups = [f"{name}: {_format_counts(counts)}" for name, counts in (("Left out", ranked), ("Not found", tally))]
    reasons = "; ".join(group for group in groups if group[-1] != " ")
    explained = [
        await _explain_rejection(run, rejection, replaced) for rejection in _select_per_reason(results.rejected)
    ]
    show_left_out(run.screen, explained, len(results.rejected), reasons=reasons)


def _format_counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {REASONS.get(reason, reason)}" for reason, number in reasons.items() if number)


def _select_per_reason(rejected: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the best rejected results of each reason, in their order."""
    by_reason: dict[str, list[int]] = {}
    for index, rejection in enumerate(rejected):
        by_reason.setdefault(rejection["reason"], []).append(index)
    share = _MAX_EXPLAINED // max(1, len(by_reason))
    return [rejected[index] for index in sorted(index for indexes in by_reason.values() for index in indexes[:share])]


async def _explain_rejection(
    run: AgentContext, rejected: dict[str, Any], replaced: Mapping[str, str]
) -> tuple[str, str, str]:
    memory_id, reason = rejected["id"], rejected["reason"]
    memory = await run.service.storage.get(memory_id)
    parts = [REASONS.get(reason, reason)]
    if reason == "filtered" and memory_id in replaced:
        parts = [f"replaced by {replaced[memory_id]}"]
    elif reason == "filtered" and memory is not None and memory.is_expired(utc_now()):
        parts = ["expired"]
    parts += [f"{name} {value:.3g}" for name, value in rejected["parts"].items() if name in {"bm25", "cosine"}]
    return memory_id, " · ".join(parts), memory.content if memory is not None else ""
