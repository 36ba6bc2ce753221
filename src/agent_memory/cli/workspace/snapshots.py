"""`workspace snapshot`, `diff`, `restore`, `resume`: moments that can be gone back to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import Yes  # noqa: TC001 - typer reads it
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.text import minute
from agent_memory.cli.workspace.workspace_files import WorkspaceOptions, open_workspace, parse_key
from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.models.text import one_line

if TYPE_CHECKING:
    from agent_memory.workspace import ResumeResult, Snapshot, Workspace

_MOST_CHARS: Final = 70
_MOST_ROWS: Final = 40
_SIGNS: Final = {"added": "+", "removed": "-", "changed": "~"}
_STYLES: Final = {"added": "green", "removed": "red", "changed": "yellow"}


@command(WorkspaceOptions, rows=True)
async def snapshot(
    place: CommandContext,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Name of a snapshot to create; without it, all are listed.", show_default=False
        ),
    ] = None,
    *,
    dump: Annotated[bool, typer.Option("--dump", help="Also copy the whole database.")] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify this one, or all; exits with 1 if one is damaged.")
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete all except those named by --keep, after a question.")
    ] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="With --prune: a snapshot to keep; repeatable.", metavar="NAME")
    ] = None,
    yes: Yes = False,
) -> None:
    """Create, list, verify or delete snapshots of rows and files."""
    with open_workspace(place) as workspace:
        if prune:
            _prune(place, workspace, keep or [], yes=yes)
            return
        if verify:
            _verify(place, workspace, name)
            return
        if name is not None:
            made = workspace.snapshots.make(name, dump=dump)
            place.screen.document({"snapshot": _to_document(made)})
            place.screen.show(f"Created {made.name}: rows up to change {made.seq:,} and the present files.")
            return
        listed = workspace.snapshots.all()
    rows = [_to_document(snapshot_info) for snapshot_info in listed]
    place.screen.rows({"count": len(rows), "snapshots": rows}, "snapshots", ("name", "seq", "made_at", "dump"))
    for snapshot_info in listed:
        copied = (
            " · with a copy of the database"
            if snapshot_info.dump_sha256
            else " · its copy is missing"
            if snapshot_info.dump
            else ""
        )
        place.screen.show(
            f"{snapshot_info.name} · {minute(snapshot_info.made_at)} · change {snapshot_info.seq:,}{copied}"
        )
    if not listed:
        place.screen.note("No snapshots yet. Run `agent-memory workspace snapshot NAME` to create one.")


@command(WorkspaceOptions)
async def diff(
    place: CommandContext,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A snapshot.")],
    after: Annotated[
        str | None, typer.Argument(metavar="AFTER", help="A snapshot; default: the present.", show_default=False)
    ] = None,
    *,
    shows_all: Annotated[bool, typer.Option("--all", help=f"List all, not only the first {_MOST_ROWS} rows.")] = False,
) -> None:
    """Show differences between two snapshots, or one and the present."""
    with open_workspace(place) as workspace:
        difference = workspace.snapshots.compare(before, after)
    rows = [{"table": row.table, "key": row.key, "kind": row.kind, "columns": row.columns} for row in difference.rows]
    place.screen.document({"before": before, "after": after, "rows": rows, "files": difference.files})
    for changed in difference.rows if shows_all else difference.rows[:_MOST_ROWS]:
        place.screen.show(f"{_SIGNS[changed.kind]} {changed.table} {changed.key}", style=_STYLES[changed.kind])
        for column, (old, new) in changed.columns.items() if changed.kind != "removed" else ():
            was, now = _apart(old, new)
            line = f"{column}: {now}" if changed.kind == "added" else f"{column}: {was} → {now}"
            place.screen.show(line, indent=4, max_lines=3)
    if len(difference.rows) > _MOST_ROWS and not shows_all:
        place.screen.note(f"{_MOST_ROWS} of {len(difference.rows):,} rows; --all shows more.", style="dim")
    for path, kind in difference.files.items():
        place.screen.show(f"{_SIGNS[kind]} {path}", style=_STYLES[kind])
    if not difference.rows and not difference.files:
        place.screen.note("No differences.")


@command(WorkspaceOptions)
async def restore(
    place: CommandContext,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A snapshot.")],
    *,
    yes: Yes = False,
) -> None:
    """Restore a snapshot; the present state is saved as a snapshot first."""
    with open_workspace(place) as workspace:
        workspace.snapshots.get(name)
        held = [step for step in workspace.steps.all() if step.status == "claimed"]
        if held and not yes:
            owners = ", ".join(f"{step.name} ({step.owner})" for step in held[:5])
            place.confirm(f"{counted(len(held), 'claim')} will end: {owners}. Restore {name}?", "Nothing was changed.")
        _show_resumed(place, workspace.resume_from_snapshot(name), f"Back at {name}")


@command(WorkspaceOptions)
async def resume(
    place: CommandContext,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of a row in the table that the phase works on.")],
    phase: Annotated[str, typer.Argument(metavar="PHASE", help="Name or number of the phase, counted from 1.")],
) -> None:
    """Repeat the steps of a row, starting at a phase; ends claims."""
    with open_workspace(place) as workspace:
        phases = workspace.declaration.phases
        number = (
            int(phase)
            if phase.isdecimal()
            else next((n for n, candidate in enumerate(phases, 1) if candidate.name == phase), 0)
        )
        over = phases[number - 1].over if 0 < number <= len(phases) else None
        wanted = parse_key(workspace, over, key) if over is not None else key
        _show_resumed(place, workspace.resume_from_chapter(wanted, number or phase), f"{key} begins again at {phase}")


def _show_resumed(place: CommandContext, resumed: ResumeResult, document: str) -> None:
    screen = place.screen
    names = [step.name for step in resumed.next_steps]
    screen.document({
        "kept_as": resumed.kept_as, "rows": resumed.rows, "files": resumed.files, "next": names, "stale": resumed.stale,
    })  # fmt: skip
    files = f" and {counted(len(resumed.files), 'file')}" if resumed.files else ""
    screen.show(f"{document}: {counted(resumed.rows, 'row')}{files} changed.")
    screen.show(
        f"The earlier state was saved as {resumed.kept_as}. Run `agent-memory workspace restore {resumed.kept_as}` to "
        "restore it."
    )
    if names:
        screen.show(f"Can run now: {', '.join(names[:5])}{' …' if names[5:] else ''}")
    if resumed.stale:
        stale = f"{', '.join(resumed.stale[:5])}{' …' if resumed.stale[5:] else ''}"
        screen.note(f"Done earlier, and may depend on the reset rows: {stale}")


def _verify(place: CommandContext, workspace: Workspace, name: str | None) -> None:
    names = [name] if name is not None else [checked.name for checked in workspace.snapshots.all()]
    faults = {checked: workspace.snapshots.verify(checked) for checked in names}
    place.screen.document({"faults": faults})
    for checked, wrong in faults.items():
        place.screen.show(f"{checked}: whole" if not wrong else f"{checked}: {counted(len(wrong), 'fault')}")
        for fault in wrong:
            place.screen.show(fault, indent=2, style="red")
    if any(faults.values()):
        raise typer.Exit(FAILED)


def _prune(place: CommandContext, workspace: Workspace, keep: list[str], *, yes: bool) -> None:
    if not keep:
        raise ValidationError("--prune needs --keep; nothing was removed.", code="invalid")
    for name in keep:
        workspace.snapshots.get(name)
    gone = [name.name for name in workspace.snapshots.all() if name.name not in keep]
    if gone and not yes:
        place.confirm(
            f"Remove {counted(len(gone), 'snapshot')} for good: {', '.join(gone[:8])}?", "Nothing was removed."
        )
    pruned = workspace.snapshots.prune(keep)
    place.screen.document({"removed": gone, "changes": pruned.changes, "files": pruned.files, "dumps": pruned.dumps})
    place.screen.show(
        f"{counted(len(gone), 'snapshot')} removed, with {counted(pruned.changes, 'change')} of the history, "
        f"{counted(pruned.files, 'file')} and {counted(pruned.dumps, 'copy', 'copies')} of the database."
    )


def _to_document(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "name": snapshot.name, "seq": snapshot.seq, "epoch": snapshot.epoch, "made_at": snapshot.made_at.isoformat(),
        "made_by": snapshot.made_by, "dump": snapshot.dump,
    }  # fmt: skip


def _apart(old: Any, new: Any) -> tuple[str, str]:
    """Return two values from where they begin to differ."""
    first, second = _text(old), _text(new)
    if len(first) <= _MOST_CHARS and len(second) <= _MOST_CHARS:
        return first, second
    same = next(
        (position for position, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    start = max(0, same - 15)
    return _part(first, start), _part(second, start)


def _part(text: str, start: int) -> str:
    part = text[start : start + _MOST_CHARS]
    return f"{'…' if start and part else ''}{part}{'…' if len(text) > start + _MOST_CHARS else ''}" or "(ends here)"


def _text(value: Any) -> str:
    if value is None:
        return "(nothing)"
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
