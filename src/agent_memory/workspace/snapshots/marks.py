"""Snapshots: named marks in the history, with the files that belong to the workspace at that moment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError, ValidationError
from agent_memory.redaction import quoted
from agent_memory.workspace.database.history import last_seq, sha256_of
from agent_memory.workspace.declaration import canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.workspace.database import Schema, Transaction


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A named moment of a workspace.

    Attributes:
        seq: The last change that it has.
        epoch: How often the workspace had been restored.
        declaration: SHA-256 of the declaration it was made under.
        manifest: SHA-256 of its list of files.
        dump: The file name of a copy of the whole database, where one was made.
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
    """Make a snapshot of what there is before this transaction.

    Raises:
        ValidationError: There is one of this name.
    """
    schema, connection = transaction.schema, transaction.connection
    if find(connection, schema, name) is not None:
        raise ValidationError(f"There is a snapshot {quoted(name)} already; choose another name.", code="exists")
    kept = _kept(transaction, manifest)
    made = Snapshot(
        name,
        last_seq(connection, schema),
        transaction.epoch,
        declaration,
        kept,
        made_by,
        datetime.fromisoformat(transaction.at),
    )
    values = {
        "name": name, "seq": made.seq, "epoch": made.epoch, "declaration": declaration, "manifest": kept,
        "made_by": made_by, "made_at": transaction.at,
    }  # fmt: skip
    connection.execute(sa.insert(schema.marks).values(values))
    return made


def bring_forward(transaction: Transaction, name: str, seq: int, manifest: Mapping[str, str]) -> None:
    """Let a snapshot be that of a later moment."""
    marks = transaction.schema.marks
    values = {"seq": seq, "manifest": _kept(transaction, manifest)}
    transaction.connection.execute(sa.update(marks).where(marks.c.name == name).values(values))


def find(connection: sa.Connection, schema: Schema, name: str) -> Snapshot | None:
    """Return the snapshot of a name, None where there is none."""
    found = connection.execute(sa.select(schema.marks).where(schema.marks.c.name == name)).first()
    return None if found is None else _snapshot(found)


def get(connection: sa.Connection, schema: Schema, name: str) -> Snapshot:
    """Return the snapshot of a name.

    Raises:
        RowNotFoundError: There is none.
    """
    found = find(connection, schema, name)
    if found is None:
        there = ", ".join(each.name for each in all_of(connection, schema)) or "none yet"
        raise RowNotFoundError(f"There is no snapshot {quoted(name)}; there are: {there}.")
    return found


def all_of(connection: sa.Connection, schema: Schema) -> list[Snapshot]:
    """Return all snapshots, the oldest first."""
    marks = schema.marks
    statement = sa.select(marks).order_by(marks.c.seq, marks.c.made_at, marks.c.name)
    return [_snapshot(each) for each in connection.execute(statement)]


def manifest(connection: sa.Connection, schema: Schema, snapshot: Snapshot) -> dict[str, str]:
    """Return the files of a snapshot: path → SHA-256."""
    texts = schema.texts
    text = connection.execute(sa.select(texts.c.content).where(texts.c.hash == snapshot.manifest)).scalar_one()
    return dict(json.loads(text))


def _kept(transaction: Transaction, manifest: Mapping[str, str]) -> str:
    """Keep a list of files; return its SHA-256."""
    text = canonical_json(dict(manifest))
    kept = sha256_of(text)
    texts = transaction.schema.texts
    if transaction.connection.execute(sa.select(texts.c.hash).where(texts.c.hash == kept)).first() is None:
        transaction.connection.execute(sa.insert(texts).values(hash=kept, content=text))
    return kept


def _snapshot(row: Any) -> Snapshot:
    made_at = datetime.fromisoformat(row.made_at)
    return Snapshot(
        row.name, row.seq, row.epoch, row.declaration, row.manifest, row.made_by, made_at, row.dump, row.dump_sha256
    )
