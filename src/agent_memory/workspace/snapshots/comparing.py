"""What differs between two moments of a workspace: rows by table, and files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agent_memory.workspace.database import STEPS, Schema, State
from agent_memory.workspace.database.history import FoldedRow, folded, rows_changed, whole_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sqlalchemy as sa

    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.rows import Values


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that is not the same.

    Attributes:
        columns: Column → (before, after); None where there was, or is, no value.
    """

    table: str
    key: Any
    kind: Literal["added", "removed", "changed"]
    columns: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs: rows, and files by path."""

    rows: list[RowDifference] = field(default_factory=list)
    files: dict[str, Literal["added", "removed", "changed"]] = field(default_factory=dict)


def compare(
    connection: sa.Connection,
    schema: Schema,
    declaration: Declaration,
    values: Mapping[str, Values],
    between: tuple[int, int],
) -> list[RowDifference]:
    """Return the rows that are shown and differ between two changes of the history."""
    earlier, later = sorted(between)
    history = schema.history
    changed = rows_changed(connection, schema, history.c.seq > earlier, history.c.seq <= later, history.c.tbl != STEPS)
    found: list[RowDifference] = []
    for (table, row_id), changes in changed.items():
        before, after = _visible(folded(changes, between[0])), _visible(folded(changes, between[1]))
        names = [each for each in declaration.tables[table].columns if before.get(each) != after.get(each)]
        if not names:
            continue
        show = values[table].shown
        columns = {
            name: (
                show(name, whole_text(connection, schema, before.get(name))),
                show(name, whole_text(connection, schema, after.get(name))),
            )
            for name in names
        }
        kind: Literal["added", "removed", "changed"] = "added" if not before else "removed" if not after else "changed"
        key = declaration.tables[table].key
        found.append(RowDifference(table, (after or before).get(key, row_id) if key else row_id, kind, columns))
    order = list(declaration.tables)
    return sorted(found, key=lambda each: (order.index(each.table), str(each.key).zfill(12)))


def compare_files(
    before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, Literal["added", "removed", "changed"]]:
    """Return the paths of files that differ."""
    found: dict[str, Literal["added", "removed", "changed"]] = {}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            found[name] = "added" if name not in before else "removed" if name not in after else "changed"
    return found


def _visible(row: FoldedRow | None) -> dict[str, Any]:
    """Return the values of a row that is shown, nothing for any other."""
    return row.values if row is not None and row.values.get("ws_state") == State.SHOWN else {}
