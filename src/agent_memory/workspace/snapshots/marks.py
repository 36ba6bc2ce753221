"""Marks of snapshots in the history, their differences, and pruning between them.

Pruning merges the changes that one attempt made to a row between two kept snapshots. Every kept snapshot can still be
restored and compared, and steps can still be undone. Before the oldest one nothing can be restored: there the changes
of a row become one, which belongs to no step.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, Literal

import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database.history import (
    FoldedRow,
    HistoryEntry,
    find_changed_rows,
    fold_entries,
    get_last_seq,
    hash_text,
    iter_batches,
    iter_entries,
    load_text,
)
from agent_memory.workspace.database.schema import STEPS, RowState, Schema
from agent_memory.workspace.declaration.model import Declaration, canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.workspace.database.history import Transaction
    from agent_memory.workspace.rows.row_values import ValueCodec

_HASH: Final = re.compile(r'"\$text":"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Named moment of a workspace.

    Attributes:
        seq: Number of the last change that it has.
        epoch: Number of restores before it.
        declaration: SHA-256 of the declaration at that moment.
        manifest: SHA-256 of its list of files.
        dump: File name of a copy of the database, if there is one.
    """

    name: str
    seq: int
    epoch: int
    declaration: str
    manifest: str
    made_by: str | None
    made_at: datetime
    dump: str | None = None
    dump_sha256: str | None = None


def mark(
    transaction: Transaction, name: str, manifest: Mapping[str, str], declaration: str, made_by: str | None
) -> Snapshot:
    """Mark the state before this transaction as a snapshot.

    Raises:
        ValidationError: There is one of this name.
    """
    schema, connection = transaction.schema, transaction.connection
    if find(connection, schema, name) is not None:
        raise ValidationError(f"There is a snapshot {quoted(name)} already; choose another name.", code="exists")
    digest, made_at = _store_manifest(transaction, manifest), datetime.fromisoformat(transaction.at)
    seq = get_last_seq(connection, schema)
    snapshot = Snapshot(name, seq, transaction.epoch, declaration, digest, made_by, made_at)
    connection.execute(sa.insert(schema.marks).values(asdict(snapshot) | {"made_at": transaction.at}))
    return snapshot


def bring_forward(transaction: Transaction, name: str, seq: int, manifest: Mapping[str, str]) -> None:
    """Move a snapshot to a later moment."""
    marks = transaction.schema.marks
    values = {"seq": seq, "manifest": _store_manifest(transaction, manifest)}
    transaction.connection.execute(sa.update(marks).where(marks.c.name == name).values(values))


def find(connection: sa.Connection, schema: Schema, name: str) -> Snapshot | None:
    """Return the snapshot of a name, or None."""
    row = connection.execute(sa.select(schema.marks).where(schema.marks.c.name == name)).first()
    return None if row is None else _read_snapshot(row)


def get(connection: sa.Connection, schema: Schema, name: str) -> Snapshot:
    """Return the snapshot of a name.

    Raises:
        RowNotFoundError: It does not exist.
    """
    snapshot = find(connection, schema, name)
    if snapshot is None:
        names = ", ".join(other_snapshot.name for other_snapshot in list_all(connection, schema)) or "none yet"
        raise RowNotFoundError(f"No snapshot {quoted(name)}; there are: {names}.")
    return snapshot


def load(connection: sa.Connection, schema: Schema, name: str) -> tuple[Snapshot, dict[str, str]]:
    """Return a snapshot and its files; errors as of `get`."""
    snapshot = get(connection, schema, name)
    return snapshot, manifest(connection, schema, snapshot)


def list_all(connection: sa.Connection, schema: Schema) -> list[Snapshot]:
    """Return all snapshots, the oldest first."""
    marks = schema.marks
    statement = sa.select(marks).order_by(marks.c.seq, marks.c.made_at, marks.c.name)
    return [_read_snapshot(row) for row in connection.execute(statement)]


def manifest(connection: sa.Connection, schema: Schema, snapshot: Snapshot) -> dict[str, str]:
    """Return the files of a snapshot, by path with SHA-256."""
    texts = schema.texts
    text = connection.execute(sa.select(texts.c.content).where(texts.c.hash == snapshot.manifest)).scalar_one()
    return dict(json.loads(text))


def _store_manifest(transaction: Transaction, manifest: Mapping[str, str]) -> str:
    """Store a list of files; return its SHA-256."""
    text = canonical_json(dict(manifest))
    digest = hash_text(text)
    texts = transaction.schema.texts
    if transaction.connection.execute(sa.select(texts.c.hash).where(texts.c.hash == digest)).first() is None:
        transaction.connection.execute(sa.insert(texts).values(hash=digest, content=text))
    return digest


def _read_snapshot(row: Any) -> Snapshot:
    made_at = datetime.fromisoformat(row.made_at)
    return Snapshot(
        row.name, row.seq, row.epoch, row.declaration, row.manifest, row.made_by, made_at, row.dump, row.dump_sha256
    )


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Row that differs.

    Attributes:
        columns: Values before and after, by column; None for no value.
    """

    table: str
    key: Any
    kind: Literal["added", "removed", "changed"]
    columns: dict[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class SnapshotDifference:
    """Rows that differ, and files by path."""

    rows: list[RowDifference] = field(default_factory=list)
    files: dict[str, Literal["added", "removed", "changed"]] = field(default_factory=dict)


def compare(
    connection: sa.Connection,
    schema: Schema,
    declaration: Declaration,
    values: Mapping[str, ValueCodec],
    between: tuple[int, int],
) -> list[RowDifference]:
    """Return the shown rows that differ between two changes."""
    earlier, later = sorted(between)
    history = schema.history
    changed = find_changed_rows(
        connection, schema, history.c.seq > earlier, history.c.seq <= later, history.c.tbl != STEPS
    )
    differences: list[RowDifference] = []
    for (table, row_id), changes in changed.items():
        before, after = (
            _get_shown(fold_entries(changes, between[0])),
            _get_shown(fold_entries(changes, between[1])),
        )
        names = [column for column in declaration.tables[table].columns if before.get(column) != after.get(column)]
        if not names:
            continue
        show = values[table].decode
        columns = {
            name: (
                show(name, load_text(connection, schema, before.get(name))),
                show(name, load_text(connection, schema, after.get(name))),
            )
            for name in names
        }
        kind: Literal["added", "removed", "changed"] = "added" if not before else "removed" if not after else "changed"
        key = declaration.tables[table].key
        differences.append(RowDifference(table, (after or before).get(key, row_id) if key else row_id, kind, columns))
    order = list(declaration.tables)
    return sorted(differences, key=lambda row: (order.index(row.table), str(row.key).zfill(12)))


def compare_files(
    before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, Literal["added", "removed", "changed"]]:
    """Return the paths of files that differ."""
    kinds: dict[str, Literal["added", "removed", "changed"]] = {}
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            kinds[name] = "added" if name not in before else "removed" if name not in after else "changed"
    return kinds


def _get_shown(row: FoldedRow | None) -> dict[str, Any]:
    """Return the values of a shown row, else nothing."""
    return row.values if row is not None and row.values.get("ws_state") == RowState.SHOWN else {}


@dataclass(frozen=True, slots=True)
class PruneResult:
    """Numbers of deleted parts."""

    changes: int = 0
    texts: int = 0
    files: int = 0
    dumps: int = 0


def prune_history(connection: sa.Connection, schema: Schema, kept_seqs: Sequence[int]) -> int:
    """Merge changes between snapshots.

    Args:
        connection: Connection of a writer.
        schema: Tables of the workspace.
        kept_seqs: Change numbers of the kept snapshots, in rising order.

    Returns:
        Number of changes that became part of another one.
    """
    if not kept_seqs:
        return 0
    history = schema.history
    changes = list(iter_entries(connection, schema, history.c.seq <= kept_seqs[-1]))
    merged_into: dict[int, int] = {}
    for _, group in groupby(changes, key=lambda change: (change.table, change.row_id, _count_eras(change, kept_seqs))):
        for run in _iter_runs(list(group), base=kept_seqs[0]):
            if len(run) > 1:
                _merge(connection, schema, run, is_base=run[-1].seq <= kept_seqs[0])
                merged_into |= {change.seq: run[-1].seq for change in run[:-1]}
    _update_origins(connection, schema, merged_into)
    unused = list(merged_into)
    for batch in iter_batches(unused):
        connection.execute(sa.delete(history).where(history.c.seq.in_(batch)))
    return len(unused)


def prune_texts(connection: sa.Connection, schema: Schema) -> int:
    """Delete long texts without a reference; return their number."""
    named: set[str] = set(connection.execute(sa.select(schema.marks.c.manifest)).scalars())
    for changed in connection.execute(sa.select(schema.history.c.changed)).scalars():
        named.update(_HASH.findall(changed))
    stored = set(connection.execute(sa.select(schema.texts.c.hash)).scalars())
    unused = sorted(stored - named)
    for batch in iter_batches(unused):
        connection.execute(sa.delete(schema.texts).where(schema.texts.c.hash.in_(batch)))
    return len(unused)


def _count_eras(entry: HistoryEntry, kept_seqs: Sequence[int]) -> int:
    """Return the number of kept snapshots before a change."""
    return sum(1 for seq in kept_seqs if seq < entry.seq)


def _iter_runs(changes: list[HistoryEntry], base: int) -> Iterable[list[HistoryEntry]]:
    """Yield changes of one row that may become one.

    All before the first snapshot, else those of one attempt.
    """
    if changes[-1].seq <= base:
        yield changes
        return
    for _, run in groupby(
        changes, key=lambda change: (change.step, change.attempt, change.agent, change.session, change.op)
    ):
        yield list(run)


def _update_origins(connection: sa.Connection, schema: Schema, merged_into: Mapping[int, int]) -> None:
    """Update references of restored values to merged changes."""
    history = schema.history
    returned = list(iter_entries(connection, schema, history.c.changed.contains('"o":{', autoescape=True)))
    for entry in returned:
        origins = {name: merged_into.get(seq, seq) for name, seq in entry.origins.items()}
        if origins != entry.origins and entry.seq not in merged_into:
            changed = canonical_json({"v": entry.changed, "o": origins})
            connection.execute(sa.update(history).where(history.c.seq == entry.seq).values(changed=changed))


def _merge(connection: sa.Connection, schema: Schema, run: Sequence[HistoryEntry], *, is_base: bool) -> None:
    changed: dict[str, Any] = {}
    origins: dict[str, int] = {}
    for change in run:
        changed |= change.changed
        for name in change.changed:
            origins.pop(name, None)
        origins |= {name: seq for name, seq in change.origins.items() if name in change.changed}
    content: dict[str, Any] = {"v": changed} | ({"o": origins} if origins and not is_base else {})
    values: dict[str, Any] = {"changed": canonical_json(content), "op": run[0].op}
    if is_base and len({(change.step, change.attempt) for change in run}) > 1:
        values |= {"step": None, "attempt": None}
    history = schema.history
    connection.execute(sa.update(history).where(history.c.seq == run[-1].seq).values(values))
