"""Whole workspaces: check, init, export, import, snapshots, restore, resume."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.exit_codes import FAILED
from agent_memory.cli.options import Yes  # noqa: TC001 - typer reads it
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.text import minute
from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.models.text import one_line
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from agent_memory.workspace import ResumeResult, Snapshot, Workspace

_NEEDED: Final = {"sqlalchemy", "jsonschema"}


@dataclass(frozen=True)
class WorkspaceOptions:
    """Options of commands about a workspace."""

    folder: Annotated[
        str | None,
        typer.Option("--at", help="Folder of the workspace; default: the one around this folder.", metavar="FOLDER"),
    ] = None
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="URL of its PostgreSQL database. Safer in AGENT_MEMORY_WORKSPACE_URL: hidden from process lists.",
            metavar="URL",
        ),
    ] = None


def get_url(place: CommandContext) -> str | None:
    """Return the URL of the database, None for SQLite."""
    from agent_memory.workspace import URL_VARIABLE

    return place.get_options(WorkspaceOptions).url or os.environ.get(URL_VARIABLE) or None


@contextmanager
def open_workspace(place: CommandContext) -> Iterator[Workspace]:
    """Open the named workspace, or that of the current folder.

    Raises:
        ConfigurationError: No workspace.
        UnsupportedError: What it needs is not installed.
    """
    with needing_packages():
        from agent_memory.workspace import Workspace, found_from

        named = place.get_options(WorkspaceOptions).folder
        folder = Path(named) if named is not None else found_from(Path.cwd())
        workspace = Workspace.open(folder, url=get_url(place))
    try:
        yield workspace
    finally:
        workspace.close()


@contextmanager
def needing_packages() -> Iterator[None]:
    """Raise an error that says how to install missing packages.

    Raises:
        UnsupportedError: It is.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _NEEDED:
            raise
        raise UnsupportedError(
            f"Workspaces need the package {error.name}, which is not installed; everything else works.",
            recovery=advice("workspace"),
        ) from error


def parse_key(workspace: Workspace, table: str, text: str) -> Any:
    """Return a key as a number if its column has numbers."""
    declared = workspace.declaration.tables.get(table)
    if declared is None or declared.kind == "singleton":
        return None if declared is not None else text
    kind = declared.columns[declared.key].type if declared.key else "integer"
    return int(text) if kind == "integer" and text.removeprefix("-").isdecimal() else text


_EXAMPLE: Final = "workspace.yaml"
"""File that `init --example` writes."""


@command()
async def check(
    place: CommandContext, file: Annotated[Path, typer.Argument(metavar="FILE", help="A declaration in YAML.")]
) -> None:
    """Check a declaration and print errors with line and column."""
    with needing_packages():
        from agent_memory.workspace import read_declaration

        declared = read_declaration(file)
    tables, phases = len(declared.tables), len(declared.phases)
    place.screen.document({"workspace": declared.workspace, "tables": [*declared.tables], "tools": [*declared.tools]})
    place.screen.show(
        f"{declared.workspace}: {counted(tables, 'table')}, {counted(phases, 'phase')}, "
        f"{counted(len(declared.tools), 'tool')}. No errors."
    )


@command(WorkspaceOptions)
async def init(
    place: CommandContext,
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A declaration in YAML.")] = None,
    *,
    example: Annotated[
        bool, typer.Option("--example", help=f"Write an example to {_EXAMPLE} first, and use it.")
    ] = False,
) -> None:
    """Create a workspace in this folder, or in --at."""
    if example == (file is not None):
        raise ValidationError("Give either a FILE or --example; nothing was created.", code="usage")
    with needing_packages():
        from agent_memory.workspace import Workspace

        folder = Path(place.get_options(WorkspaceOptions).folder or ".")
        declaration = _write_example(folder) if file is None else file
        workspace = Workspace.create(folder, declaration, url=get_url(place))
    if file is None:
        command = f"agent-memory workspace check {declaration}"
        place.screen.note(f"The declaration is {declaration}. Edit it, then run `{command}`.")
    steps = workspace.next_steps()
    place.screen.document({"workspace": workspace.declaration.workspace, "folder": str(workspace.folder)})
    place.screen.show(f"{workspace.declaration.workspace} was created in {workspace.folder}.")
    empty = without_rows(workspace)
    if empty:
        idle = ", ".join(of_phases(workspace, empty))
        have = "has" if "," not in idle else "have"
        place.screen.note(
            f"No rows yet in {', '.join(empty)}: {idle} {have} no steps yet. "
            f"Run `agent-memory workspace save {empty[0]}` to add rows."
        )
    if steps:
        place.screen.show(f"The first step is {steps[0].name}; `agent-memory workspace status` shows all.")
    workspace.close()


def _write_example(folder: Path) -> Path:
    """Write the example declaration into a folder; return its path.

    Raises:
        ValidationError: A file of that name exists.
    """
    path = folder / _EXAMPLE
    if path.exists():
        raise ValidationError(
            f"{path} exists; nothing was created.",
            code="exists",
            recovery=f"Use it: agent-memory workspace init {path}",
        )
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(resources.files("agent_memory.workspace").joinpath("example.yaml").read_bytes())
    return path


def without_rows(workspace: Workspace) -> list[str]:
    """Return the tables that phases work on and that have no rows."""
    worked_on = dict.fromkeys(phase.over for phase in workspace.declaration.phases if phase.over is not None)
    return [table for table in worked_on if not workspace.tables.many(table, limit=1).total]


def of_phases(workspace: Workspace, tables: Collection[str]) -> list[str]:
    """Return the phases that work on these tables."""
    return [phase.name for phase in workspace.declaration.phases if phase.over in tables]


@command(WorkspaceOptions)
async def export(
    place: CommandContext,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="File in .jsonl, .md or .db; .csv: a folder with one file for each table."),
    ],
    *,
    canonical: Annotated[
        bool, typer.Option("--canonical", help="Write the same file for workspaces with the same content.")
    ] = False,
) -> None:
    """Write all visible rows to a new file."""
    with open_workspace(place) as workspace:
        rows = workspace.export(file, canonical=canonical)
    place.screen.document({"file": str(file), "rows": rows})
    place.screen.show(f"{counted(rows, 'row')} written to {file}.")


@command(WorkspaceOptions)
async def import_(
    place: CommandContext,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File in JSON lines that `export` wrote.")],
) -> None:
    """Import an export into an empty workspace, all or nothing."""
    if file.suffix != ".jsonl":
        raise ValidationError(f"{file.name} is not .jsonl; nothing was imported.", code="invalid")
    if not file.is_file():
        raise ValidationError(f"No file {file}.", code="no_file", recovery="Check the name.")
    with open_workspace(place) as workspace:
        rows = workspace.bring(file)
    place.screen.document({"file": str(file), "rows": rows})
    place.screen.show(f"{counted(rows, 'row')} imported from {file}.")


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
