"""`workspace table`, `row`, `log`, `save` and `claim`: rows, their authors, and steps."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from agent_memory.cli.exit_codes import NOT_FOUND
from agent_memory.cli.runtime import CommandContext, command
from agent_memory.cli.workspace.workspace_files import WorkspaceOptions, open_workspace, parse_key
from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.files.wording import counted
from agent_memory.models.text import one_line

if TYPE_CHECKING:
    from agent_memory.workspace import Caller, Claim, SavedRow, Workspace


@command(WorkspaceOptions)
async def claim(  # noqa: PLR0913 - the options of a command
    place: CommandContext,
    step: Annotated[
        str | None,
        typer.Argument(metavar="STEP", help="Name of a step; default: the first that can run.", show_default=False),
    ] = None,
    *,
    agent: Annotated[str | None, typer.Option("--agent", help="Only steps of this agent.", metavar="NAME")] = None,
    owner: Annotated[str, typer.Option("--owner", help="Name of the claiming worker.", metavar="NAME")] = "cli",
    seconds: Annotated[int | None, typer.Option("--seconds", min=1, help="Seconds that the claim lasts.")] = None,
    finish: Annotated[bool, typer.Option("--finish", help="Finish the claim from stdin.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Release the claim from stdin.")] = False,
    renew: Annotated[bool, typer.Option("--renew", help="Extend the claim from stdin.")] = False,
    fail: Annotated[
        str | None, typer.Option("--fail", help="Fail the claim from stdin, for this reason.", metavar="WHY")
    ] = None,
) -> None:
    """Claim a step; --finish, --release, --renew, --fail read it from stdin.

    Exits with 3 if no step can run.
    """
    if finish + release + renew + (fail is not None) > 1:
        raise ValidationError("--finish, --release, --renew and --fail exclude each other.", code="invalid")
    with open_workspace(place) as workspace:
        if finish or release or renew or fail is not None:
            held = claim_in(sys.stdin.read(), "Stdin")
            if renew:
                _show(place, workspace.steps.renew(held, seconds=seconds or 600))
            elif finish:
                phase = workspace.steps.finish(held)
                _say(place, held, f"{held.step} is done" + (f", and with it {phase}." if phase else "."))
                for snapshot in workspace.snapshots.list_owed() if phase else ():
                    place.screen.note(snapshot)
            elif release:
                workspace.steps.release(held)
                _say(place, held, f"{held.step} was given back.")
            else:
                remaining = workspace.steps.fail(held, "quality", fail or "")
                _say(place, held, f"{held.step} failed; it may be tried {remaining} times more.")
            return
        made = workspace.steps.claim(owner, step=step, agent=agent, seconds=seconds)
    if made is None:
        place.screen.document({"claim": None})
        place.screen.note("No step can run now.")
        raise typer.Exit(NOT_FOUND)
    _show(place, made)
    if not place.screen.json:
        place.screen.note("--finish, --release, --renew and --fail need the output of --json.", style="dim")


def _show(place: CommandContext, claim: Claim) -> None:
    place.screen.document({"claim": {**asdict(claim), "expires_at": claim.expires_at.isoformat()}})
    place.screen.show(f"{claim.step} · {claim.owner} until {claim.expires_at:%H:%M:%S} UTC, attempt {claim.attempt}")


def _say(place: CommandContext, claim: Claim, document: str) -> None:
    place.screen.document({"step": claim.step, "told": document})
    place.screen.show(document)


def claim_in(text: str, where: str) -> Claim:
    """Return the claim that `claim --json` printed.

    Raises:
        ValidationError: Not a claim; `where` names its place.
    """
    from agent_memory.workspace import Claim

    try:
        fields: dict[str, Any] = json.loads(text)
        fields = dict(fields.get("claim", fields))
        return Claim(**{**fields, "expires_at": datetime.fromisoformat(fields["expires_at"])})
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValidationError(
            f"{where} has no claim.",
            code="invalid",
            recovery="Pass the output of `agent-memory workspace claim --json`.",
        ) from None


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
