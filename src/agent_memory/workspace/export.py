"""Export and import of rows in several file formats."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.models.text import as_cell, remove_invisible
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY, WorkspaceCore
from agent_memory.workspace.database.history import ChangeAuthor, Transaction, get_last_seq
from agent_memory.workspace.database.schema import LOW
from agent_memory.workspace.declaration.model import OWN_COLUMNS, Table, canonical_json
from agent_memory.workspace.rows.claims import RowCaller
from agent_memory.workspace.rows.row_reader import MAX_ROWS, list_shown_columns
from agent_memory.workspace.snapshots.snapshot_files import Dump, list_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path


_INDENT: Final = "\n"
_MAX_LINE: Final = 8_000_000


def export(core: WorkspaceCore, path: Path, *, as_canonical: bool = False) -> int:
    """Write all shown rows to a new file; return their number.

    Args:
        core: Parts of the open workspace.
        path: New file with the ending `.jsonl`, `.md`, `.db`, or `.csv`: a folder with a file for each table.
        as_canonical: True for the form of `canonical`, whatever the ending.

    Raises:
        ValidationError: The file exists, or has another ending.
        StorageError: It cannot be written.
    """
    if path.exists():
        raise ValidationError(f"{path} is there already; nothing was written.", code="file_exists")
    if not as_canonical and path.suffix not in {".jsonl", ".md", ".db", ".csv"}:
        raise ValidationError(f"{path.name} ends with none of .jsonl, .md, .csv and .db.", code="unknown_form")
    if not as_canonical and path.suffix == ".db":
        return _copy(core, path)
    low: set[tuple[str, int]] = set()
    reader = RowCaller(on_low=lambda name, row: low.add((name, row["id"])))
    with core.reading() as transaction:
        rows = {name: list(iter_rows(core, transaction, name, caller=reader)) for name in core.declaration.tables}
    with translated(path, "write"):
        if as_canonical:
            replace_file(path, canonical(core).encode(), durable=True)
        elif path.suffix == ".csv":
            make_private_folder(path)
            for name, table_rows in rows.items():
                replace_file(
                    path / f"{name}.csv",
                    _csv(list_shown_columns(core.declaration.tables[name]), table_rows).encode(),
                    durable=True,
                )
        else:
            text = "".join(_lines(rows, low)) if path.suffix == ".jsonl" else _page(core, rows)
            replace_file(path, text.encode(), durable=True)
    return sum(map(len, rows.values()))


def import_rows(core: WorkspaceCore, path: Path) -> int:
    """Import all rows of an export, or none; return their number.

    Raises:
        ValidationError: The workspace has rows, or a line does not fit; the message names it.
        StorageError: The file cannot be read.
    """
    with translated(path, "read"):
        lines = path.read_text(encoding="utf-8").splitlines()
    order = {name: number for number, name in enumerate(_order_tables(core))}
    parsed = (_parse_line(core, line, number) for number, line in enumerate(lines, 1))
    records = sorted(parsed, key=lambda record: order[record[1]])
    ids: dict[tuple[str, int], int] = {}
    with core.changing(NOBODY) as transaction:
        _check_empty(core, transaction)
        for number, name, row, is_low in records:
            row_transaction = replace(transaction, writer=ChangeAuthor(is_low=is_low))
            try:
                _import_row(core, row_transaction, name, row, ids)
            except ValidationError as error:
                raise ValidationError(
                    f"Line {number}: {error.message} Nothing was brought in.", code=error.code
                ) from error
    return len(records)


def _import_row(
    core: WorkspaceCore, transaction: Transaction, name: str, row: dict[str, Any], ids: dict[tuple[str, int], int]
) -> None:
    table = core.declaration.tables[name]
    values = {column_name: value for column_name, value in row.items() if column_name not in OWN_COLUMNS}
    for column_name, column in table.columns.items():
        target = column.references
        if target is not None and core.declaration.tables[target].key is None and values.get(column_name) is not None:
            values[column_name] = ids.get(
                (target, values[column_name]), values[column_name]
            )  # rows without a key get new numbers
    if table.kind == "singleton":
        prepared = core.writer.prepare(name, values, NOBODY, is_complete=False)
        core.writer.change(transaction, None, prepared)
        return
    saved = core.writer.add(transaction, core.writer.prepare(name, values, NOBODY, is_complete=True))
    if isinstance(row.get("id"), int):
        ids[name, row["id"]] = saved.row_id


def _check_empty(core: WorkspaceCore, transaction: Transaction) -> None:
    for name, table in core.declaration.tables.items():
        if table.kind != "singleton" and core.reader.many(transaction.connection, name, NOBODY, limit=1).total:
            raise ValidationError(
                f"{name} has rows already; an export is brought into a workspace that has none. Nothing was changed.",
                code="not_empty",
                recovery="Begin a new workspace with the same declaration, and import there.",
            )


def _parse_line(core: WorkspaceCore, line: str, number: int) -> tuple[int, str, dict[str, Any], bool]:
    try:
        record: Any = json.loads(line) if len(line) <= _MAX_LINE else None
        name, row, is_low = record["table"], record["row"], record.get("trust") == LOW
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValidationError(
            f"Line {number} is no row of an export. Nothing was brought in.", code="invalid"
        ) from None
    if name not in core.declaration.tables or not isinstance(row, dict):
        raise ValidationError(
            f"Line {number}: there is no table {quoted(name)}. Nothing was brought in.", code="unknown_table"
        )
    return number, name, row, is_low


def _order_tables(core: WorkspaceCore) -> Iterator[str]:
    """Yield the tables, referenced ones first."""
    remaining = {
        name: {column.references for column in table.columns.values() if column.references not in (None, name)}
        for name, table in core.declaration.tables.items()
    }
    while remaining:
        free = [name for name, needs in remaining.items() if not needs & remaining.keys()]
        yield from free
        for name in free:
            del remaining[name]


def _copy(core: WorkspaceCore, path: Path) -> int:
    if core.opened.database.file is None:
        raise ValidationError(
            "The rows are in PostgreSQL; there is no SQLite file to copy.",
            code="unsupported",
            recovery="Export to .jsonl, or use pg_dump.",
        )
    with core.changing(NOBODY) as transaction:
        seq = get_last_seq(transaction.connection, transaction.schema)
        held = Dump(core.opened.database.file)
    try:
        held.write(path, seq)
    finally:
        held.close()
    with core.reading() as transaction:
        names = core.declaration.tables
        return sum(core.reader.many(transaction.connection, name, NOBODY, limit=1).total for name in names)


def _lines(rows: dict[str, list[dict[str, Any]]], low: Collection[tuple[str, int]]) -> Iterator[str]:
    for name, table_rows in rows.items():
        for row in table_rows:
            trust = {"trust": LOW} if (name, row["id"]) in low else {}
            yield canonical_json({"table": name, "row": row, **trust}) + "\n"


def _csv(columns: Sequence[str], rows: list[dict[str, Any]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_cell(value) for value in row.values())
    return stream.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        return value
    return as_cell(remove_invisible(value))


def _page(core: WorkspaceCore, rows: dict[str, list[dict[str, Any]]]) -> str:
    """Return a Markdown page with a heading for each table and row."""
    parts = [f"# {core.declaration.workspace}\n"]
    for table, table_rows in rows.items():
        parts.append(f"\n## {table}\n")
        key = core.declaration.tables[table].key or "id"
        for row in table_rows:
            title = next((str(row[column]) for column in ("title", "name") if row.get(column)), "")
            heading = f"{row[key]}{f' · {title}' if title and title != row[key] else ''}"
            parts.append(f"\n### {' '.join(remove_invisible(heading).split())}\n\n")
            hidden = {key, *OWN_COLUMNS}
            filled = {name: value for name, value in row.items() if value is not None and name not in hidden}
            short = {name: value for name, value in filled.items() if not (isinstance(value, str) and "\n" in value)}
            parts += [f"- {name}: {_inline(value)}\n" for name, value in short.items()]
            parts += [
                f"\n#### {name}\n\n{remove_invisible(value)}\n" for name, value in filled.items() if name not in short
            ]
    return "".join(parts)


def _inline(value: Any) -> str:
    return (
        remove_invisible(value) if isinstance(value, str) else remove_invisible(json.dumps(value, ensure_ascii=False))
    )


def canonical(core: WorkspaceCore) -> str:
    """Return the content as JSON that is equal for equal content.

    It has the declared columns of content alone: no times, IDs, provenance, leases and attempts, and not the log of
    retries. References are keys. Rows are in the order of their keys, or else of their text. Files are named with the
    SHA-256 of their content.
    """
    lines: list[str] = []
    with core.reading() as transaction:
        for name, table in core.declaration.tables.items():
            if name == core.declaration.logs.retries:
                continue
            rows = [canonical_json(row) for row in _iter_content(core, transaction, name, table)]
            ordered = rows if table.key else sorted(rows)
            lines.append(f"{canonical_json(name)}:[{','.join(_INDENT + row for row in ordered)}]")
    files = list_files(core.opened.folder, core.declaration.files.values())
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    lines.append(f'"files":{canonical_json(hashes)}')
    return "{" + ",\n".join(lines) + "}\n"


def iter_rows(
    core: WorkspaceCore,
    transaction: Transaction,
    name: str,
    columns: list[str] | None = None,
    caller: RowCaller = NOBODY,
) -> Iterator[dict[str, Any]]:
    """Yield the shown rows of a table in the order of keys."""
    offset = 0
    while True:
        page = core.reader.many(transaction.connection, name, caller, columns=columns or (), offset=offset)
        yield from page.rows
        offset += len(page.rows)
        if len(page.rows) < MAX_ROWS:
            return


def _iter_content(core: WorkspaceCore, transaction: Transaction, name: str, table: Table) -> Iterator[dict[str, Any]]:
    def is_keyless(target: str | None) -> bool:
        return target is not None and core.declaration.tables[target].key is None

    columns = [
        column_name
        for column_name, column in table.columns.items()
        if column.type != "timestamp" and not is_keyless(column.references)
    ]
    return iter_rows(core, transaction, name, columns)
