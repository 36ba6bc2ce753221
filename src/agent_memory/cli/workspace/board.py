"""`workspace status` and `workspace next`: progress, claims and problems."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.styled_text import StyledText
from agent_memory.cli.workspace.workspace_files import WorkspaceOptions, of_phases, open_workspace, without_rows
from agent_memory.files.wording import counted
from agent_memory.models.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.workspace import Step, Workspace

_MARKS: Final = {"done": "●", "claimed": "▶", "ready": "○", "waiting": "·", "failed": "✗"}
_STYLES: Final = {"done": "green", "claimed": "cyan", "ready": "", "waiting": "dim", "failed": "bold red"}
_LEGEND: Final = "● done  ▶ at work  ○ can run  · waits  ✗ failed"
_MOST_ROWS: Final = 30
"""Rows that have a line each; of more, those that are equally far share one."""
_MOST_LINES: Final = 10
_MOST_NAMING: Final = 3
"""Lines of a terminal with the keys of rows that are equally far."""
_KEY_WIDTH: Final = 18
_CUT: Final = " …"


@command(WorkspaceOptions)
async def status(place: CommandContext) -> None:
    """Show phases and rows with their claims, failures and open questions."""
    with open_workspace(place) as workspace:
        steps = workspace.steps.all()
        issues, proposals = _issues(workspace), _proposals(workspace)
        snapshots, owed = workspace.snapshots.all(), workspace.snapshots.list_owed()
        name, folder = workspace.declaration.workspace, workspace.folder
        rows = {table: workspace.tables.many(table, limit=1).total for table in workspace.declaration.tables}
        empty = without_rows(workspace)
        idle = of_phases(workspace, empty)
    place.screen.document({
        "workspace": name,
        "folder": str(folder),
        "tables": rows,
        "steps": [step.as_dict() for step in steps],
        "proposals": proposals,
        "open_issues": issues,
        "snapshots": [snapshot.name for snapshot in snapshots],
        "owed": owed,
    })  # fmt: skip
    done = sum(step.status == "done" for step in steps)
    place.screen.show(f"{name}: {done} of {counted(len(steps), 'step')} done")
    _phases(place, steps)
    _board(place, steps)
    _note_empty(place, empty, idle)
    _show_progress(place, steps, proposals, issues)
    if snapshots:
        place.screen.show(f"Last snapshot: {snapshots[-1].name}", style="dim")
    for sentence in owed:
        place.screen.note(sentence)


@command(WorkspaceOptions, rows=True)
async def next_(
    place: CommandContext,
    *,
    agent: Annotated[str | None, typer.Option("--agent", help="Only steps of this agent.", metavar="NAME")] = None,
) -> None:
    """List the steps that can run now."""
    with open_workspace(place) as workspace:
        steps = workspace.next_steps(agent)
        open_count = sum(step.status != "done" for step in workspace.steps.all())
        empty = without_rows(workspace)
        idle = of_phases(workspace, empty)
    listed = [step.as_dict() for step in steps]
    place.screen.rows(
        {"count": len(listed), "left": open_count, "steps": listed}, "steps", ("step", "attempts", "retries_left")
    )
    for step in steps:
        retries = f" · {step.retries_left} tries left" if step.attempts else ""
        place.screen.show(f"{step.name}{retries}")
        if step.feedback:
            place.screen.show(step.feedback, indent=2, style="yellow", max_lines=3)
    if steps:
        return
    if open_count:
        place.screen.note(f"No step can run now; {counted(open_count, 'step')} to do.")
    elif not empty:
        place.screen.note("All steps are done.")
    _note_empty(place, empty, idle)


def _note_empty(place: CommandContext, tables: Sequence[str], phases: Sequence[str]) -> None:
    if tables:
        place.screen.note(f"No rows yet in {', '.join(tables)}, so no steps in {', '.join(phases)}.")


def _phases(place: CommandContext, steps: Sequence[Step]) -> None:
    by_phase: dict[str, list[Step]] = {}
    for step in steps:
        by_phase.setdefault(step.phase, []).append(step)
    width = max((len(name) for name in by_phase), default=0)
    for name, phase_steps in by_phase.items():
        states: Counter[str] = Counter(step.status for step in phase_steps)
        counts = ", ".join(
            f"{states[state]} {word}"
            for state, word in (("claimed", "at work"), ("ready", "can run"), ("failed", "failed"))
            if states[state]
        )
        line = f"{name.ljust(width)}  {_bar(states['done'], len(phase_steps))} {states['done']}/{len(phase_steps)}"
        style = "red" if states["failed"] else "green" if states["done"] == len(phase_steps) else ""
        place.screen.show(f"{line}{'  ' + counts if counts else ''}", indent=2, style=style)


def _bar(done: int, total: int) -> str:
    full = 20 * done // total if total else 0
    return "█" * full + "░" * (20 - full)


def _board(place: CommandContext, steps: Sequence[Step]) -> None:
    """Print each row in work on a line, with its steps."""
    by_row: dict[tuple[str, Any], list[Step]] = {}
    for step in steps:
        if step.table is not None:
            by_row.setdefault((step.table, step.key), []).append(step)
    if not by_row:
        return
    place.screen.show()
    for table in dict.fromkeys(name for name, _ in by_row):
        place.screen.show(table, indent=2, style="dim")
        lines = {key: _marks(row_steps) for (name, key), row_steps in by_row.items() if name == table}
        if len(lines) <= _MOST_ROWS:
            _row_by_row(place, lines)
        else:
            _alike(place, lines)
    place.screen.show(_LEGEND, indent=2, style="dim")


def _marks(steps: Sequence[Step]) -> StyledText:
    parts: list[tuple[str, str]] = []
    phase = ""
    for step in steps:
        parts += [(" ", "")] if step.phase != phase and phase else []
        parts.append((_MARKS[step.status], _STYLES[step.status]))
        phase = step.phase
    return StyledText.assemble(*parts)


def _row_by_row(place: CommandContext, lines: dict[Any, StyledText]) -> None:
    width = min(_KEY_WIDTH, max(len(str(key)) for key in lines))
    for key, marks in lines.items():
        place.screen.show(StyledText(one_line(str(key))[:_KEY_WIDTH].rjust(width) + "  ") + marks, indent=2)


def _alike(place: CommandContext, lines: dict[Any, StyledText]) -> None:
    """Print one line for all rows with equal progress."""
    keys = list(lines)
    alike: dict[str, list[int]] = {}
    for position, key in enumerate(keys):
        alike.setdefault(lines[key].plain, []).append(position)
    for places in list(alike.values())[:_MOST_ROWS]:
        marks = lines[keys[places[0]]] + "  "
        named = place.screen.wrap(f"{counted(len(places), 'row')}: {ranges(keys, places)}", 2 + len(marks) + len(_CUT))
        for number, line in enumerate(named[:_MOST_NAMING]):
            cut = _CUT if number == _MOST_NAMING - 1 < len(named) - 1 else ""
            place.screen.show((StyledText(" " * len(marks)) if number else marks) + line + cut, indent=2)
    if len(alike) > _MOST_ROWS:
        place.screen.show(f"… and rows at {len(alike) - _MOST_ROWS} other points", indent=2, style="dim")


def ranges(keys: Sequence[Any], places: Sequence[int]) -> str:
    """Return keys as short ranges of consecutive values.

    Args:
        keys: All keys, in their order.
        places: Positions of the selected keys, ascending.
    """
    runs: list[list[int]] = []
    for position in places:
        if runs and runs[-1][-1] == position - 1:
            runs[-1].append(position)
        else:
            runs.append([position])
    words: list[str] = []
    for run in runs:
        named = [one_line(str(keys[position]))[:_KEY_WIDTH] for position in run]
        until = "-" if isinstance(keys[run[0]], int) else " to "
        words += named if len(run) < 3 else [f"{named[0]}{until}{named[-1]}"]  # noqa: PLR2004
    return ", ".join(words)


def _show_progress(
    place: CommandContext, steps: Sequence[Step], proposals: dict[str, int], issues: dict[str, int]
) -> None:
    """Show who holds what, and what waits for a person."""
    held = [step for step in steps if step.status == "claimed"]
    failed = [step for step in steps if step.status == "failed"]
    to_repeat = [step for step in steps if step.feedback and step.status in {"ready", "waiting"}]
    orphaned = [step for step in steps if step.left_by]
    if held or failed or to_repeat or orphaned or proposals or issues:
        place.screen.show()
    for step in held[:_MOST_LINES]:
        place.screen.show(
            f"{step.name} · {step.owner}, {_until(step.expires_at)}, attempt {step.attempts}", style="cyan"
        )
    for step in failed[:_MOST_LINES]:
        text = f"{step.name} · {step.waits_for}: {one_line(step.feedback or 'no reason was given')}"
        place.screen.show(text, style="red", max_lines=2)
    for step in to_repeat[:_MOST_LINES]:
        tries = counted(step.retries_left, "try", "tries")
        text = f"{step.name} · again, {tries} left: {one_line(step.feedback or '')}"
        place.screen.show(text, style="yellow", max_lines=1)
    for step in orphaned[:_MOST_LINES]:
        why = ", whose process has ended" if step.owner_ended else ""
        text = f"{step.name} · left by {step.left_by}{why}, attempt {step.attempts}; the next claim starts again"
        place.screen.show(text, style="yellow", max_lines=2)
    groups = ((held, "at work"), (failed, "failed"), (to_repeat, "to be done again"), (orphaned, "left"))
    for group, word in groups:
        if len(group) > _MOST_LINES:
            place.screen.show(f"… and {len(group) - _MOST_LINES} more {word}", style="dim")
    for table, count in issues.items():
        place.screen.show(
            f"{counted(count, 'row')} of {table} unresolved: "
            f"`agent-memory workspace table {table} --where resolved=false`"
        )
    for table, count in proposals.items():
        place.screen.show(
            f"{counted(count, 'proposal')} for {table}: `agent-memory workspace table {table} --proposals`"
        )


def _until(moment: datetime | None) -> str:
    if moment is None:
        return ""
    seconds = int((moment - datetime.now(UTC)).total_seconds())
    minutes = f"{seconds // 60} min {seconds % 60} s" if seconds >= 60 else f"{max(0, seconds)} s"  # noqa: PLR2004
    return f"{minutes} left"


def _issues(workspace: Workspace) -> dict[str, int]:
    """Return numbers of unresolved rows by table."""
    tables = workspace.declaration.tables.items()
    tables_with_issues = [
        name for name, table in tables if "resolved" in table.columns and table.columns["resolved"].type == "boolean"
    ]
    totals = {
        name: workspace.tables.many(name, where={"resolved": False}, columns=["id"]).total
        for name in tables_with_issues
    }
    return {name: count for name, count in totals.items() if count}


def _proposals(workspace: Workspace) -> dict[str, int]:
    tables = [name for name, table in workspace.declaration.tables.items() if table.unique_columns()]
    totals = {name: len(workspace.tables.proposals(name)) for name in tables}
    return {name: count for name, count in totals.items() if count}
