"""Print memories, hits and states for people."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.text import minute
from agent_memory.files.wording import counted, format_size
from agent_memory.memory.views import describe_day, describe_said_day, get_title, list_shown_links
from agent_memory.models import HitOrigin, LinkedRecord, is_told, offered_values, utc_now
from agent_memory.models.text import one_line, plain, to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from agent_memory.care.agents import AgentSummary
    from agent_memory.care.checks.codes import Check, Finding
    from agent_memory.cli.screen import OutputScreen
    from agent_memory.memory import Status
    from agent_memory.models import Memory, MemorySearchResult, Surroundings, Trace

_PREVIEW_LINES: Final = 4
_LABEL_WIDTH: Final = 14
_MULTIPLIED: Final = ("similarity", "freshness", "access", "trust")
_FURTHER_IN: Final = 4
_DOT: Final = " · "
_NOTE: Final = HitOrigin()
_TIMES: Final = " \N{MULTIPLICATION SIGN} "
REASONS: Final = {
    "beyond_limit": "beyond the limit",
    "below_floor": "below the floor",
    "filtered": "filtered out",
    "not_near": "not near the best",
}


def show_memories(screen: OutputScreen, memories: Iterable[Memory], replaced: Mapping[str, str]) -> None:
    """Print a list of memories; `replaced` maps newer to older ones."""
    for position, memory in enumerate(memories):
        _item(screen, position, memory, _summary(memory, replaced.get(memory.id)))


def show_hit(
    screen: OutputScreen,
    rank: int,
    hit: MemorySearchResult,
    *,
    explain: bool,
    superseded_by: str | None,
    full: bool = False,
) -> None:
    """Print a hit with its excerpt, or its whole text if `full`."""
    score = f"{hit.relevance_score:.2f} {hit.match_type}{_DOT}" if explain else ""
    summary = StyledText.assemble((f"{hit.match}{_DOT}" if hit.match else "", "bold green"), (score, "dim"))
    if rank > 1:
        screen.show()
    _show_text(screen, hit.memory.content if full or hit.excerpt is None else hit.excerpt)
    screen.show(summary + _summary(hit.memory, superseded_by, hit.origin), indent=2)
    _around(screen, hit.surroundings, list_shown_links(hit))
    if explain:
        screen.show(_parts(hit.parts), indent=2, style="cyan")


def show_overview(screen: OutputScreen, counts: Mapping[str, Any]) -> None:
    """Print the counts of an overview, a row each."""
    for name, value in counts.items():
        uncounted = counts["memories"] - sum(value.values()) if name == "by_category" else 0
        text = tally(value) if isinstance(value, dict) else ", ".join(value) if isinstance(value, list) else str(value)
        text += f" and {uncounted:,} more" if uncounted > 0 else ""
        row(screen, name.removeprefix("by_").replace("_", " "), text)
    screen.show()


def show_left_out(screen: OutputScreen, rejected: list[tuple[str, str, str]], total: int, *, reasons: str) -> None:
    """Print the omitted results of a search.

    Args:
        screen: Output screen of the command.
        rejected: ID, reason and text of the first omitted results.
        total: Number of omitted results.
        reasons: Counts by reason, as text.
    """
    if not total:
        return
    screen.show()
    screen.show(reasons, style="bold")
    for memory_id, why, text in rejected:
        screen.show(StyledText.assemble((f"{memory_id}  ", "dim"), (why, "yellow")), indent=2)
        screen.show(one_line(text), indent=4, max_lines=1)
    if total > len(rejected):
        screen.show(f"… and {total - len(rejected)} more; --json lists them all.", indent=2, style="dim")


def show_memory(
    screen: OutputScreen, memory: Memory, superseded_by: str | None, surroundings: Surroundings, disputes: Sequence[str]
) -> None:
    """Print all fields of a memory and its text."""
    pinned = [("pinned", "bold yellow")] if memory.pinned else []
    screen.show(_join([(memory.id, "bold"), (memory.category, ""), *pinned]))
    if surroundings.doubt:
        row(screen, "doubtful", surroundings.doubt, style="red")
    if surroundings.disputed:
        row(screen, "disputed", f"by {surroundings.disputed}, which is newer", style="red")
    if disputes:
        hint = screen.complete("see `agent-memory conflicts`")
        row(screen, "disputes", f"{', '.join(disputes)}, which is older; {hint}", style="yellow")
    for label, value in _details(memory, superseded_by):
        row(screen, label, value)
    linked_ids = {link.id for link in surroundings.links if not link.is_incoming}
    untold = [
        LinkedRecord(link.rel, link.id, "") for link in memory.links if link.id not in linked_ids and is_told(link.rel)
    ]
    for position, link in enumerate((*surroundings.links, *untold)):
        row(screen, "" if position else "links", _describe_link(link, get_title(link.text)))
    screen.show()
    screen.show(memory.content)


def show_status(screen: OutputScreen, status: Status, folder: Path) -> None:
    """Print the state of one agent's memory."""
    counts = status.counts
    screen.show(StyledText.assemble((plain(status.agent_id), "bold"), (f"  {plain(str(folder))}", "dim")))
    if counts:
        among = ", ".join(f"{counts[name]:,} {name}" for name in ("pinned", "superseded", "expired") if counts[name])
        row(screen, "memories", f"{counts['memories']:,}" + (f" ({among})" if among else ""))
        if counts.get("items"):
            row(screen, "items", f"{counts['items']:,}, extracted from documents and conversations")
        row(screen, "scratchpad", counted(counts["scratchpad"], "entry", "entries"))
        row(screen, "categories", tally(counts["by_category"]))
        row(screen, "trust", tally(counts["by_trust"]))
        if counts.get("by_project"):
            row(screen, "projects", tally(counts["by_project"]))
    row(screen, "backend", status.backend)
    if status.encrypted:
        row(screen, "encrypted", "yes")
    _embedder(screen, status.embedder)
    row(screen, "last change", minute(datetime.fromisoformat(status.last_write)) if status.last_write else "never")
    _health(screen, status.health)
    for suggestion in status.suggestions:
        row(screen, "suggestion", screen.complete(suggestion))


def show_versions(screen: OutputScreen, memory_id: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Print what became of a memory, a paragraph for each version."""
    screen.show(StyledText(memory_id, style="bold"))
    for row in rows:
        when = minute(datetime.fromisoformat(row["at"]))
        fields = f": {', '.join(row['fields'])}" if row["fields"] else ""
        screen.show()
        screen.show(StyledText.assemble((f"{row['seq']:>6}  ", "cyan"), (when, "dim"), f"  {row['what']}{fields}"))
        if row["content"] is not None:
            screen.show(row["content"], indent=8, max_lines=_PREVIEW_LINES)


def show_forgotten(screen: OutputScreen, gone: Iterable[tuple[Memory, datetime]], reasons: Mapping[str, str]) -> None:
    """Print what was forgotten, when and why, as lists look."""
    for position, (memory, moment) in enumerate(gone):
        why = f": {reasons[memory.id]}" if memory.id in reasons else ""
        parts = [(memory.id, "cyan"), (memory.category, "dim"), (f"forgotten {minute(moment)}{why}", "red")]
        _item(screen, position, memory, _join(parts))


def show_traces(screen: OutputScreen, traces: Iterable[Trace]) -> None:
    """Print what remains of memories whose text is deleted."""
    for trace in traces:
        screen.show(f"{trace.id}  forgotten {minute(trace.at)}: {trace.reason}; its text is deleted", style="dim")


def show_agents(screen: OutputScreen, summaries: Iterable[AgentSummary]) -> None:
    """Print a line for each agent, and its folder below it."""
    for summary in summaries:
        memories = "unreadable" if summary.memories is None else counted(summary.memories, "memory", "memories")
        used = f", last used {minute(summary.last_used)}" if summary.last_used else ""
        screen.show(
            StyledText.assemble(
                (plain(summary.agent_id), "bold"),
                f"  {memories}{describe_others(summary)}, {format_size(summary.size)}{used}",
            )
        )
        screen.show(summary.problem or str(summary.folder), indent=2, style="red" if summary.problem else "dim")


_KEPT: Final[Mapping[str, tuple[str, str] | tuple[()]]] = {
    "knowledge.yaml": ("document, conversation or topic", "documents, conversations and topics"),
    "episodes.yaml": ("turn", "turns"),
    "entities.yaml": ("record of entities", "records of entities"),
    "inbox.yaml": ("candidate in the inbox", "candidates in the inbox"),
    "archive.yaml": ("record of the archive", "records of the archive"),
    "verbatim.yaml": ("record of another framework", "records of other frameworks"),
    "tasks.yaml": (),  # how far background work is: nothing that an agent knows
}
"""Singular and plural names of built-in record kinds other than memories."""


def describe_others(summary: AgentSummary) -> str:
    """Return the number of records of other kinds, as a suffix."""
    items = f", {counted(summary.items, 'item')}" if summary.items else ""
    counts = [
        (count, _KEPT.get(name, (f"record in {name}", f"records in {name}"))) for name, count in summary.others.items()
    ]
    return items + "".join(f", {counted(count, *words)}" for count, words in counts if words)


def _item(screen: OutputScreen, position: int, memory: Memory, summary: StyledText) -> None:
    """Print one memory of a list, the first at position 0."""
    if position:
        screen.show()
    _show_text(screen, memory.content, _PREVIEW_LINES)
    screen.show(summary, indent=2)


def _show_text(screen: OutputScreen, text: str, max_lines: int | None = None) -> None:
    """Print a text of a list.

    Later lines are indented more than its summary, which they cannot imitate.
    """
    first, _, rest = text.replace("\r\n", "\n").partition("\n")
    used = len(screen.wrap(first, 0))
    if not rest or (max_lines is not None and used >= max_lines):
        screen.show(text, max_lines=max_lines)
        return
    screen.show(first)
    screen.show(rest, indent=_FURTHER_IN, max_lines=None if max_lines is None else max_lines - used)


def _summary(memory: Memory, superseded_by: str | None = None, origin: HitOrigin = _NOTE) -> StyledText:
    what = memory.category if origin.kind == "note" else origin.kind
    said_day = describe_said_day(memory, memory.content)
    parts = [(memory.id, "cyan"), (what, "dim")]
    parts.append((f"said {said_day}" if said_day else describe_day(memory, memory.moment.astimezone()), "dim"))
    parts += [(text, "dim") for text in (origin.source, origin.speaker) if text]
    if not origin.is_confirmed:
        parts.append(("unconfirmed", "yellow"))
    if memory.pinned:
        parts.append(("pinned", "bold yellow"))
    if memory.trust == "low":
        parts.append(("low trust", "red"))
    if memory.is_expired(utc_now()):
        parts.append(("expired", "red"))
    if superseded_by:
        parts.append((f"replaced by {superseded_by}", "red"))
    if isinstance(since := memory.metadata.get("missing_since"), str):
        parts.append((f"source file missing since {since[:10]}", "yellow"))
    if memory.tags:
        parts.append((_hashtags(memory.tags), "dim"))
    return _join(parts)


def _around(screen: OutputScreen, around: Surroundings, links: Iterable[LinkedRecord]) -> None:
    """Print why a hit may be outdated, and its links."""
    if around.doubt:
        screen.show(f"doubtful: {around.doubt}", indent=2, style="red")
    if around.disputed:
        screen.show(f"disputed by {around.disputed}, which is newer", indent=2, style="red")
    for link in links:
        screen.show(_describe_link(link, get_title(link.text)), indent=2, style="dim", max_lines=1)


def _describe_link(link: LinkedRecord, title: str) -> str:
    arrow = "\N{LEFTWARDS ARROW}" if link.is_incoming else "\N{RIGHTWARDS ARROW}"
    return f"{arrow} {one_line(link.rel)} {link.id}  {title}".rstrip()


def _details(memory: Memory, superseded_by: str | None) -> list[tuple[str, str]]:
    source = memory.source.kind + (f" ({memory.source.detail})" if memory.source.detail else "")
    session = f", session {memory.created_by_session}" if memory.created_by_session else ""
    accessed = counted(memory.access_count, "time") + (
        f", last {minute(memory.last_accessed)}" if memory.last_accessed else ""
    )
    said_day = describe_said_day(memory, memory.content)
    moments = [("observed", memory.observed_at), ("expires", memory.expires_at), ("promoted", memory.promoted_at)]
    shares = [("confidence", memory.confidence), ("importance", memory.importance)]
    rows = [
        ("stored", f"{minute(memory.timestamp)}, by {source}{session}"),
        ("said", said_day),
        ("trust", memory.trust),
        ("project", memory.project),
        *((name.replace("_", " "), str(value)) for name, value in offered_values(memory).items()),
        ("tags", _hashtags(memory.tags)),
        ("accessed", accessed),
        *((label, minute(moment)) for label, moment in moments if moment),
        *((label, f"{share:g}") for label, share in shares if share is not None),
        ("out of pad", minute(memory.evicted_at) if memory.evicted_at else ""),
        ("replaces", memory.supersedes or ""),
        ("replaced by", superseded_by or ""),
        ("metadata", to_json(memory.metadata) if memory.metadata else ""),
    ]
    return [(label, value) for label, value in rows if value]


def _parts(parts: dict[str, float]) -> str:
    product = _TIMES.join(f"{name} {parts[name]:.3g}" for name in _MULTIPLIED if name in parts)
    rest = [f"{name} {value:.3g}" for name, value in parts.items() if name not in _MULTIPLIED]
    return _DOT.join([product, *rest] if product else rest)


def _embedder(screen: OutputScreen, embedder: dict[str, Any]) -> None:
    pending = f", {embedder['pending']:,} memories still to be read" if embedder.get("pending") else ""
    status = embedder.get("status")
    state = "model found; the first search loads it" if status == "found" else status
    row(screen, "embedder", f"{embedder.get('kind')}, {state}{pending}")
    for why in ("reason", "problem", "warning"):
        if embedder.get(why):
            row(screen, "", str(embedder[why]))
    if languages := embedder.get("languages"):
        added = "a model for other languages is added while sessions run; `agent-memory search --wait` finishes it"
        row(screen, "", screen.complete(added))
        if languages.get("problem"):
            row(screen, "", f"it failed: {languages['problem']}")


def _health(screen: OutputScreen, health: dict[str, Any]) -> None:
    status = str(health.get("status", "unknown"))
    good = status == "ok"
    number = f", {counted(int(health['problems']), 'problem')}" if health.get("problems") else ""
    row(screen, "health", status + number, style="green" if good else "bold red")
    for line in (health.get("message"), *health.get("first_problems", ()), *health.get("notes", ())):
        if line:
            row(screen, "", screen.complete(str(line)))


def show_beside(screen: OutputScreen, head: StyledText, text: str, style: str = "", *, tail: str = "") -> None:
    """Print `text` next to `head`, wrapped in its own column.

    A `tail` comes dim behind the last line or, where it does not fit, below it.
    """
    lines = [StyledText(line, style) for line in screen.wrap(text, len(head))]
    if tail:
        used = len(head) + len(lines[-1]) + len(f"  {tail}")
        if screen.width is None or used <= screen.width:
            lines[-1] = StyledText.assemble(lines[-1], (f"  {tail}", "dim"))
        else:
            lines.append(StyledText(tail, "dim"))
    for position, line in enumerate(lines):
        screen.show(StyledText.assemble(head if position == 0 else " " * len(head), line))


def show_result(
    screen: OutputScreen, head: StyledText, result: Check | Finding, advice: str, *, tail: str = ""
) -> None:
    """Print a check result next to `head`, and its advice below."""
    show_beside(screen, head, one_line(result.sentence), tail=tail)
    indent = " " * len(head)
    for detail in getattr(result, "details", ()):
        show_beside(screen, StyledText(f"{indent}  "), one_line(detail), "dim")
    if advice:
        show_beside(screen, StyledText(f"{indent}→ "), screen.complete(advice), "italic")


def row(screen: OutputScreen, label: str, value: str, *, style: str = "") -> None:
    """Print a label and its value in two columns."""
    show_beside(screen, StyledText(f"  {label:<{_LABEL_WIDTH - 3}} ", "dim"), one_line(value), style)


def _join(parts: list[tuple[str, str]]) -> StyledText:
    return StyledText(_DOT, "dim").join(StyledText(one_line(text), style=style) for text, style in parts)


def _hashtags(tags: list[str]) -> str:
    return " ".join(f"#{tag.replace(' ', '-')}" for tag in tags)


def tally(counts: dict[str, int]) -> str:
    """Return names with their numbers on one line, `none` without any."""
    return _DOT.join(f"{name} {number:,}" for name, number in counts.items()) or "none"
