"""Rows of a workspace as files of other programs, and back: lines of JSON, CSV, one page of Markdown, a database."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.files.atomic import make_private_folder, replace_file, translated
from agent_memory.models.text import as_cell, visible
from agent_memory.redaction import quoted
from agent_memory.workspace.core import NOBODY
from agent_memory.workspace.database import LOW, Writer
from agent_memory.workspace.database.history import last_seq
from agent_memory.workspace.declaration import OWN_COLUMNS, canonical_json
from agent_memory.workspace.export import canonical, every_row
from agent_memory.workspace.rows import Caller
from agent_memory.workspace.rows.columns import columns_of
from agent_memory.workspace.snapshots import Dump

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

    from agent_memory.workspace.core import Core
    from agent_memory.workspace.database import Transaction

_MAX_LINE: Final = 8_000_000


def export(core: Core, path: Path, *, as_canonical: bool = False) -> int:
    """Write all rows that are shown to a file that is not there yet; return how many.

    Args:
        core: The workspace.
        path: Ends with `.jsonl`, `.md`, `.db`, or `.csv`: a folder with a file for each table.
        as_canonical: As `agent_memory.workspace.export.canonical`, whatever the path ends with.

    Raises:
        ValidationError: It is there, or ends with something else.
        StorageError: It cannot be written.
    """
    if path.exists():
        raise ValidationError(f"{path} is there already; nothing was written.", code="file_exists")
    if not as_canonical and path.suffix not in {".jsonl", ".md", ".db", ".csv"}:
        raise ValidationError(f"{path.name} ends with none of .jsonl, .md, .csv and .db.", code="unknown_form")
    if not as_canonical and path.suffix == ".db":
        return _copy(core, path)
    low: set[tuple[str, int]] = set()
    reader = Caller(on_low=lambda name, row: low.add((name, row["id"])))
    with core.reading() as transaction:
        rows = {name: list(every_row(core, transaction, name, caller=reader)) for name in core.declaration.tables}
    with translated(path, "write"):
        if as_canonical:
            replace_file(path, canonical(core).encode(), durable=True)
        elif path.suffix == ".csv":
            make_private_folder(path)
            for name, some in rows.items():
                replace_file(
                    path / f"{name}.csv", _csv(columns_of(core.declaration.tables[name]), some).encode(), durable=True
                )
        else:
            text = "".join(_lines(rows, low)) if path.suffix == ".jsonl" else _page(core, rows)
            replace_file(path, text.encode(), durable=True)
    return sum(map(len, rows.values()))


def bring(core: Core, path: Path) -> int:
    """Add the rows of an export to a workspace that has none; all of them or none. Return how many.

    Raises:
        ValidationError: The workspace has rows, or a line is no row of it; the message says which.
        StorageError: The file cannot be read.
    """
    with translated(path, "read"):
        lines = path.read_text(encoding="utf-8").splitlines()
    order = {name: number for number, name in enumerate(_in_order(core))}
    given = sorted((_read(core, line, number) for number, line in enumerate(lines, 1)), key=lambda each: order[each[1]])
    ids: dict[tuple[str, int], int] = {}
    with core.changing(NOBODY) as transaction:
        _check_empty(core, transaction)
        for number, name, row, is_low in given:
            own = replace(transaction, writer=Writer(is_low=is_low))
            try:
                _bring_row(core, own, name, row, ids)
            except ValidationError as error:
                raise ValidationError(
                    f"Line {number}: {error.message} Nothing was brought in.", code=error.code
                ) from error
    return len(given)


def _bring_row(
    core: Core, transaction: Transaction, name: str, row: dict[str, Any], ids: dict[tuple[str, int], int]
) -> None:
    table = core.declaration.tables[name]
    values = {each: value for each, value in row.items() if each not in OWN_COLUMNS}
    for each, column in table.columns.items():
        target = column.references
        if target is not None and core.declaration.tables[target].key is None and values.get(each) is not None:
            values[each] = ids.get((target, values[each]), values[each])  # rows without a key are numbered anew
    if table.kind == "singleton":
        prepared = core.writer.prepare(name, values, NOBODY, whole=False)
        core.writer.change(transaction, None, prepared)
        return
    saved = core.writer.add(transaction, core.writer.prepare(name, values, NOBODY, whole=True))
    if isinstance(row.get("id"), int):
        ids[name, row["id"]] = saved.row_id


def _check_empty(core: Core, transaction: Transaction) -> None:
    for name, table in core.declaration.tables.items():
        if table.kind != "singleton" and core.reader.many(transaction.connection, name, NOBODY, limit=1).total:
            raise ValidationError(
                f"{name} has rows already; an export is brought into a workspace that has none. Nothing was changed.",
                code="not_empty",
                recovery="Begin a new workspace with the same declaration, and import there.",
            )


def _read(core: Core, line: str, number: int) -> tuple[int, str, dict[str, Any], bool]:
    try:
        found: Any = json.loads(line) if len(line) <= _MAX_LINE else None
        name, row, is_low = found["table"], found["row"], found.get("trust") == LOW
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValidationError(
            f"Line {number} is no row of an export. Nothing was brought in.", code="invalid"
        ) from None
    if name not in core.declaration.tables or not isinstance(row, dict):
        raise ValidationError(
            f"Line {number}: there is no table {quoted(name)}. Nothing was brought in.", code="unknown_table"
        )
    return number, name, row, is_low


def _in_order(core: Core) -> Iterator[str]:
    """Yield the tables, those that are referred to before those that refer to them."""
    left = {
        name: {column.references for column in table.columns.values() if column.references not in (None, name)}
        for name, table in core.declaration.tables.items()
    }
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        yield from free
        for name in free:
            del left[name]


def _copy(core: Core, path: Path) -> int:
    if core.opened.database.file is None:
        raise ValidationError(
            "The rows are in PostgreSQL; there is no SQLite file to copy.",
            code="unsupported",
            recovery="Export to .jsonl, or use pg_dump.",
        )
    with core.changing(NOBODY) as transaction:
        seq = last_seq(transaction.connection, transaction.schema)
        held = Dump(core.opened.database.file)
    try:
        held.write(path, seq)
    finally:
        held.close()
    with core.reading() as transaction:
        names = core.declaration.tables
        return sum(core.reader.many(transaction.connection, name, NOBODY, limit=1).total for name in names)


def _lines(rows: dict[str, list[dict[str, Any]]], low: Collection[tuple[str, int]]) -> Iterator[str]:
    for name, some in rows.items():
        for row in some:
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
    return as_cell(visible(value))


def _page(core: Core, rows: dict[str, list[dict[str, Any]]]) -> str:
    """Return one page: a heading for each table and row, its short values as a list, its long ones as they are."""
    parts = [f"# {core.declaration.workspace}\n"]
    for name, some in rows.items():
        parts.append(f"\n## {name}\n")
        key = core.declaration.tables[name].key or "id"
        for row in some:
            title = next((str(row[each]) for each in ("title", "name") if row.get(each)), "")
            heading = f"{row[key]}{f' · {title}' if title and title != row[key] else ''}"
            parts.append(f"\n### {' '.join(visible(heading).split())}\n\n")
            kept = {each: value for each, value in row.items() if value is not None and each not in {key, *OWN_COLUMNS}}
            short = {each: value for each, value in kept.items() if not (isinstance(value, str) and "\n" in value)}
            parts += [f"- {each}: {_inline(value)}\n" for each, value in short.items()]
            parts += [f"\n#### {each}\n\n{visible(value)}\n" for each, value in kept.items() if each not in short]
    return "".join(parts)


def _inline(value: Any) -> str:
    return visible(value) if isinstance(value, str) else visible(json.dumps(value, ensure_ascii=False))
