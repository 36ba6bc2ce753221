"""Find and open the workspace of a command."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.errors import UnsupportedError
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.cli.runtime import CommandContext
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
