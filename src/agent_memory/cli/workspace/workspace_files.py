"""`workspace check`, `init`, `export` and `import`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.runtime import CommandContext, command
from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from agent_memory.workspace import Workspace

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
