"""`workspace table`, `workspace row` and `workspace log`: rows and their authors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.workspace.workspace_choice import WorkspaceOptions, open_workspace, parse_key
from agent_memory.errors import ValidationError
from agent_memory.files.wording import counted
from agent_memory.models.text import one_line

if TYPE_CHECKING:
    from agent_memory.workspace import Caller, Workspace

_Table = Annotated[str, typer.Argument(metavar="TABLE", help="Which.")]
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_SHOWN: Final = 50
_STEPS: Final = "ws_steps"
"""The table in which the history keeps how far steps are."""
_MOST_CHARS: Final = 200
_LOW: Final = " · may hold untrusted text"
_WORDS: Final = {
    "insert": "added",
    "update": "changed",
    "settle": "decided",
    "undo": "taken back",
    "restore": "restored",
    "step": "set",
}


@command(WorkspaceOptions, rows=True)
async def table(
    place: CommandContext,
    name: _Table,
    *,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            help="Rows whose column has this value; without a value, rows where it is empty; repeatable.",
            metavar="COLUMN=VALUE",
        ),
    ] = None,
    words: Annotated[str | None, typer.Option("--search", help="Only rows with these words.", metavar="WORDS")] = None,
    proposals: Annotated[
        bool, typer.Option("--proposals", help="List proposals: rows with the unique value of another row.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most rows to list.")] = _SHOWN,
) -> None:
    """List the rows of a table, sorted by key."""
    with open_workspace(place) as workspace:
        low, me = _noting_low()
        conditions = dict(_condition(workspace, name, condition) for condition in where or ())
        if proposals:
            rows = workspace.tables.proposals(name, me)
            total = len(rows)
        elif words is not None:
            rows = workspace.tables.search(name, words, me, limit=limit)
            total = len(rows)
        else:
            page = workspace.tables.many(name, me, where=conditions, limit=limit)
            rows, total = page.rows, page.total
        declared = workspace.declaration.tables[name]
        pending = workspace.tables.pending(name)
    rows = rows[:limit]
    key = declared.key or "id"
    columns = (key, *[column for column in declared.columns if column != key][:3])
    document = {"table": name, "count": len(rows), "total": total, "rows": rows, "low_trust": low}
    place.screen.rows(document, "rows", columns)
    for row in rows:
        place.screen.show(f"{name} {row[key]}{_LOW if row['id'] in low else ''}", style="bold")
        for column, value in row.items():
            if value is not None and column not in (key, "id", "created_at", "updated_at"):
                place.screen.show(f"{column}: {_shortly(value)}", indent=2, max_lines=2)
    if not rows:
        place.screen.note(f"No row of {name} matches." if conditions or words or proposals else f"{name} is empty.")
    elif total > len(rows):
        place.screen.note(f"{len(rows):,} of {total:,}; --limit shows more.", style="dim")
    if pending:
        step = "a step that is" if pending == 1 else "steps that are"
        place.screen.note(
            f"{counted(pending, 'row')} of {step} not finished {'is' if pending == 1 else 'are'} not shown yet."
        )


@command(WorkspaceOptions)
async def row(
    place: CommandContext,
    name: _Table,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key of the row; its ID if the table has no key.")],
    *,
    history: Annotated[bool, typer.Option("--history", help="Also show earlier values and who changed them.")] = False,
) -> None:
    """Show all fields of a row."""
    with open_workspace(place) as workspace:
        low, me = _noting_low()
        record = workspace.tables.get(name, parse_key(workspace, name, key), me)
        changes = workspace.history(table=name, row_id=record["id"]) if history else []
    document = {
        "table": name,
        "row": record,
        **({"trust": "low"} if low else {}),
        **({"history": changes} if history else {}),
    }
    place.screen.document(document)
    if low:
        place.screen.show(f"{name} {key}{_LOW}", style="yellow")
    for column, value in record.items():
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
            place.screen.show(f"{column}:", style="dim")
            place.screen.show(text, indent=2)
    for change in changes:
        place.screen.show(_line(change), style="dim")


@command(WorkspaceOptions, rows=True)
async def log(
    place: CommandContext,
    *,
    table: Annotated[str | None, typer.Option("--table", help="Only changes of this table.", metavar="TABLE")] = None,
    step: Annotated[str | None, typer.Option("--step", help="Only changes by this step.", metavar="STEP")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most changes to list.")] = _SHOWN,
) -> None:
    """List changes, newest first, with their writer and step."""
    with open_workspace(place) as workspace:
        changes = workspace.history(table=table, step=step, limit=limit)
        if table is not None and not changes:
            workspace.tables.many(table, limit=1)  # reports a missing table
    columns = ("seq", "at", "table", "row_id", "op", "agent", "step")
    place.screen.rows({"count": len(changes), "changes": changes}, "changes", columns)
    for change in changes:
        place.screen.show(_line(change))
    if not changes:
        place.screen.note("No change matches." if table or step else "No changes yet.")


def _noting_low() -> tuple[list[int], Caller]:
    """Return IDs of shown low-trust rows, and the caller who sees them."""
    from agent_memory.workspace import Caller

    low: list[int] = []
    return low, Caller(on_low=lambda _, row: low.append(row["id"]))


def _condition(workspace: Workspace, name: str, text: str) -> tuple[str, Any]:
    column, equals, value = text.partition("=")
    declared = workspace.declaration.tables.get(name)
    if not equals or declared is None:
        if declared is None:
            workspace.tables.many(name, limit=1)  # which says what tables there are
        raise ValidationError(f"--where takes COLUMN=VALUE, not {text!r}.", code="invalid")
    column = column.strip()
    declaration = declared.columns.get(column)
    if not value:
        return column, None
    kind = "integer" if column == "id" else declaration.type if declaration is not None else "text"
    if declaration is not None and declaration.references is not None:
        return column, parse_key(workspace, declaration.references, value)
    if kind == "boolean":
        if value.lower() not in _BOOLEANS:
            raise ValidationError(f"{name}.{column} is true or false, and {value!r} is neither.", code="wrong_value")
        return column, _BOOLEANS[value.lower()]
    try:
        return column, int(value) if kind == "integer" else float(value) if kind == "real" else value
    except ValueError:
        raise ValidationError(f"{name}.{column} is a number, and {value!r} is not one.", code="wrong_value") from None


def _shortly(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return one_line(text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]} … ({len(text):,} characters)")


def _line(change: dict[str, Any]) -> str:
    by = change["agent"] or "somebody"
    step = f" in {change['step']} (attempt {change['attempt']})" if change["step"] else ""
    columns = f": {', '.join(change['columns'])}" if change["columns"] else ""
    table = "step" if change["op"] == "step" or change["table"] == _STEPS else change["table"]
    key = one_line(str(change["key"]))
    what = f"{table} {key} {_WORDS.get(change['op'], change['op'])}{columns}"
    low = _LOW if change["trust"] else ""
    return f"{change['seq']}  {change['at'][:19].replace('T', ' ')}  {by}{step}  {what}{low}"
