"""A workspace as data: canonically, so that two runs can be compared byte by byte."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from agent_memory.workspace.core import NOBODY
from agent_memory.workspace.declaration import canonical_json
from agent_memory.workspace.rows.reading import MAX_ROWS
from agent_memory.workspace.snapshots import files_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.workspace.core import Core
    from agent_memory.workspace.database import Transaction
    from agent_memory.workspace.declaration import Table
    from agent_memory.workspace.rows import Caller

_INDENT: Final = "\n"


def canonical(core: Core) -> str:
    """Return what a workspace holds, as JSON with a row a line: equal for workspaces that hold the same.

    Declared columns of content alone: no times, ids, provenance, leases, attempts, and nothing of the log of retries.
    References stand as keys; rows are in the order of their keys, or of what they say where they have none. Files are
    named with the SHA-256 of their content.
    """
    lines: list[str] = []
    with core.reading() as transaction:
        for name, table in core.declaration.tables.items():
            if name == core.declaration.logs.retries:
                continue
            rows = [canonical_json(row) for row in _content(core, transaction, name, table)]
            ordered = rows if table.key else sorted(rows)
            lines.append(f"{canonical_json(name)}:[{','.join(_INDENT + row for row in ordered)}]")
    files = files_of(core.opened.folder, core.declaration.files.values())
    hashes = {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
    lines.append(f'"files":{canonical_json(hashes)}')
    return "{" + ",\n".join(lines) + "}\n"


def every_row(
    core: Core, transaction: Transaction, name: str, columns: list[str] | None = None, caller: Caller = NOBODY
) -> Iterator[dict[str, Any]]:
    """Yield all rows of a table that are shown, in the order of their keys."""
    offset = 0
    while True:
        page = core.reader.many(transaction.connection, name, caller, columns=columns or (), offset=offset)
        yield from page.rows
        offset += len(page.rows)
        if len(page.rows) < MAX_ROWS:
            return


def _content(core: Core, transaction: Transaction, name: str, table: Table) -> Iterator[dict[str, Any]]:
    def keyless(target: str | None) -> bool:
        return target is not None and core.declaration.tables[target].key is None

    columns = [
        each for each, column in table.columns.items() if column.type != "timestamp" and not keyless(column.references)
    ]
    return every_row(core, transaction, name, columns)
