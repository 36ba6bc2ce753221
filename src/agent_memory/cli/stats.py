"""Command `agents stats`: size, growth and use of a memory."""

from pathlib import Path
from typing import Annotated, Final

import typer

from agent_memory.care.statistics import MemoryStatistics, as_svg, as_text, statistics_of
from agent_memory.cli.render import row, tally
from agent_memory.cli.runtime import AgentContext, command
from agent_memory.cli.screen import OutputScreen
from agent_memory.cli.styled_text import StyledText
from agent_memory.files.atomic import replace_file, translated
from agent_memory.files.wording import format_size
from agent_memory.models import utc_now
from agent_memory.models.text import brief, plain

_PIPE_WIDTH: Final = 80
_LAST_WEEKS: Final = 8


@command()
async def stats(
    run: AgentContext,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="With --plot: SVG file to write.")] = None,
    *,
    plot: Annotated[bool, typer.Option("--plot", help="Draw growth and use over time, here or into FILE.svg.")] = False,
) -> None:
    """Show how many memories there are, how they grew and which are used."""
    if file is not None and file.suffix.lower() != ".svg":
        raise typer.BadParameter("the name of an SVG file ends in .svg", param_hint="FILE")
    if file is not None and not plot:
        raise typer.BadParameter("FILE needs --plot", param_hint="FILE")
    statistics = await statistics_of(run.service, utc_now())
    run.screen.document({**statistics.as_dict(), "plot": None if file is None else str(file)})
    if file is not None:
        _write(file, as_svg(statistics))
        run.screen.show(f"Wrote {file}.")
    elif plot:
        run.screen.show("\n".join(as_text(statistics, run.screen.width or _PIPE_WIDTH)))
    else:
        _show(run.screen, statistics)


def _write(file: Path, svg: str) -> None:
    """Write the picture.

    Raises:
        StorageError: It could not be written.
    """
    with translated(file, "write"):
        if file.exists() and not file.is_file():
            file.write_text(svg, encoding="utf-8")  # a pipe or a device is written to, not replaced
        else:
            replace_file(file, svg.encode(), durable=False)


def _show(screen: OutputScreen, statistics: MemoryStatistics) -> None:
    total = statistics.memories + statistics.items
    screen.show(StyledText(plain(statistics.agent_id), style="bold"))
    among = ", ".join(f"{getattr(statistics, name):,} {name}" for name in ("pinned", "superseded", "expired"))
    row(screen, "memories", f"{statistics.memories:,} ({among})")
    if statistics.items:
        row(screen, "items", f"{statistics.items:,}, extracted from documents and conversations")
    for label, counts in (
        ("categories", statistics.by_category),
        ("trust", statistics.by_trust),
        ("said by", statistics.by_source),
        ("projects", statistics.by_project),
        ("groups", statistics.by_group),
        ("besides", statistics.others),
    ):
        if counts:
            row(screen, label, tally(counts))
    if total:
        unused = _format_percent(statistics.never_used_share)
        used = f"{statistics.accesses:,} times; {statistics.never_used:,} of {total:,} never ({unused})"
        row(screen, "used", used)
        embedded = statistics.embedded
        row(screen, "embedded", f"{embedded.found:,} of {embedded.texts:,} texts ({_format_percent(embedded.share)})")
    captures = statistics.captures
    if captures.captured:
        fate = f"{captures.kept:,} kept, {captures.forgotten:,} forgotten"
        row(screen, "captured", f"{captures.captured:,} since the log began: {fate}")
    sizes = [f"{part} {format_size(size)}" for part, size in statistics.sizes.items()]
    row(screen, "on disk", " · ".join(sizes) or "nothing")
    _show_weeks(screen, statistics)
    if statistics.most_used:
        screen.show()
        screen.show("Used most", style="bold")
        for memory in statistics.most_used:
            head = StyledText.assemble((f"{memory.accesses:>6,}  ", "cyan"), (f"{memory.id}  ", "dim"))
            screen.show(head + StyledText(brief(memory.content)), max_lines=1)


def _show_weeks(screen: OutputScreen, statistics: MemoryStatistics) -> None:
    if not statistics.weeks:
        return
    screen.show()
    screen.show(StyledText(f"{'week of':<12}{'stored':>8}{'total':>8}{'used':>8}{'forgotten':>11}", style="bold"))
    for week in statistics.weeks[-_LAST_WEEKS:]:
        screen.show(f"{week.begin:%Y-%m-%d}  {week.stored:>8,}{week.total:>8,}{week.used:>8,}{week.forgotten:>11,}")
    if len(statistics.weeks) > _LAST_WEEKS:
        screen.show(
            f"… {len(statistics.weeks) - _LAST_WEEKS:,} weeks before; --plot draws all, --json has all.", style="dim"
        )


def _format_percent(share: float | None) -> str:
    """Return a share in whole percent, rounded down: 100 % is all."""
    return f"{int(100 * (share or 0))} %"
