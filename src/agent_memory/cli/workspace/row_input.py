"""`workspace save`: add or change rows from a shell."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.workspace.claims import claim_in
from agent_memory.cli.workspace.workspace_choice import WorkspaceOptions, open_workspace
from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.files.wording import counted

if TYPE_CHECKING:
    from agent_memory.workspace import SavedRow, Workspace


@command(WorkspaceOptions)
async def save(
    place: CommandContext,
    name: Annotated[str, typer.Argument(metavar="TABLE", help="Which.")],
    *,
    claim: Annotated[
        str | None,
        typer.Option(
            "--claim", help="File with the output of `claim --json`; rows belong to that step.", metavar="FILE"
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Name of the writer, without a claim.", metavar="NAME")
    ] = None,
) -> None:
    """Save rows from stdin as JSON; rows with known keys are changed.

    If a row is invalid, the rows before it stay saved.
    """
    rows = _rows()
    with open_workspace(place) as workspace:
        from agent_memory.workspace import Caller

        held = None if claim is None else claim_in(_read_text(claim), claim)
        caller = Caller(agent or (held.agent if held is not None else None), claim=held)
        saved: list[tuple[str, SavedRow]] = []
        for number, values in enumerate(rows, start=1):
            try:
                saved.append(_save(workspace, name, values, caller))
            except ValidationError as error:
                before = f" {counted(len(saved), 'row')} before it {'is' if len(saved) == 1 else 'are'} saved."
                message = f"Row {number}: {error.message}{before if len(rows) > 1 else ''}"
                raise type(error)(message, code=error.code, recovery=error.recovery) from None
    documents = [{"row_id": result.row_id, "status": what, "proposal": result.proposal} for what, result in saved]
    place.screen.document({"table": name, "count": len(documents), "rows": documents})
    changed = sum(what == "changed" for what, _ in saved)
    place.screen.show(f"{counted(len(saved) - changed, 'row')} added to {name}, {changed} changed.")
    if held is not None and held.step is not None and changed < len(saved):
        place.screen.note("Others see the rows when the step is finished.", style="dim")
    proposals = sum(result.proposal for _, result in saved)
    if proposals:
        place.screen.note(f"{counted(proposals, 'row')} kept as proposals: another row has their {name} value already.")


def _save(workspace: Workspace, table: str, values: dict[str, Any], caller: Any) -> tuple[str, SavedRow]:
    declared = workspace.declaration.tables.get(table)
    key = None if declared is None else declared.key
    if declared is not None and declared.kind == "rows" and key is not None and values.get(key) is not None:
        rest = {column: value for column, value in values.items() if column != key}
        try:
            workspace.tables.get(table, values[key], caller, columns=[key])
        except RowNotFoundError:
            pass
        else:
            return "changed", workspace.tables.update(table, values[key], rest, caller)
    return "added", workspace.tables.save(table, values, caller)


def _rows() -> list[dict[str, Any]]:
    """Return the rows on stdin: an object, a list or JSON lines.

    Raises:
        ValidationError: There are none, or something else.
    """
    text = sys.stdin.read()
    try:
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        parsed = None
    rows = parsed if isinstance(parsed, list) else [parsed]
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise ValidationError(
            "Stdin has no rows; nothing was saved.",
            code="invalid",
            recovery="""Pass JSON: {"column": value, …}, a list of them, or one on each line.""",
        )
    return rows


def _read_text(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ValidationError(
            f"{path} cannot be read; nothing was saved.",
            code="invalid",
            recovery="Pass a file with the output of `agent-memory workspace claim --json`.",
        ) from None
