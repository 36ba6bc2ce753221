"""A shorter history: between two snapshots that are kept, the changes one attempt made to a row become one.

Every snapshot that is kept can still be restored and compared, and what steps wrote can still be taken back. Before the
oldest of them nothing can be restored: there a row's changes become one, which belongs to no step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.workspace.database.history import HistoryEntry, entries
from agent_memory.workspace.declaration import canonical_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.workspace.database import Schema

_HASH: Final = re.compile(r'"\$text":"([0-9a-f]{64})"')
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed."""

    changes: int = 0
    texts: int = 0
    files: int = 0
    dumps: int = 0


def prune_history(connection: sa.Connection, schema: Schema, kept: Sequence[int]) -> int:
    """Merge changes between snapshots.

    Args:
        connection: Of a writer.
        schema: The tables.
        kept: Numbers of the changes at which snapshots that are kept were made, in rising order.

    Returns:
        How many changes became part of another one.
    """
    if not kept:
        return 0
    history = schema.history
    found = list(entries(connection, schema, history.c.seq <= kept[-1]))
    became: dict[int, int] = {}
    for _, group in groupby(found, key=lambda each: (each.table, each.row_id, _era(each, kept))):
        for run in _runs(list(group), base=kept[0]):
            if len(run) > 1:
                _merge(connection, schema, run, is_base=run[-1].seq <= kept[0])
                became |= {each.seq: run[-1].seq for each in run[:-1]}
    _follow(connection, schema, became)
    gone = list(became)
    for start in range(0, len(gone), _AT_ONCE):
        connection.execute(sa.delete(history).where(history.c.seq.in_(gone[start : start + _AT_ONCE])))
    return len(gone)


def prune_texts(connection: sa.Connection, schema: Schema) -> int:
    """Remove long texts that no change and no snapshot names; return how many."""
    named: set[str] = set(connection.execute(sa.select(schema.marks.c.manifest)).scalars())
    for changed in connection.execute(sa.select(schema.history.c.changed)).scalars():
        named.update(_HASH.findall(changed))
    there = set(connection.execute(sa.select(schema.texts.c.hash)).scalars())
    gone = sorted(there - named)
    for start in range(0, len(gone), _AT_ONCE):
        connection.execute(sa.delete(schema.texts).where(schema.texts.c.hash.in_(gone[start : start + _AT_ONCE])))
    return len(gone)


def _era(entry: HistoryEntry, kept: Sequence[int]) -> int:
    """Return between which snapshots a change was made: what is merged stays on one side of each."""
    return sum(1 for seq in kept if seq < entry.seq)


def _runs(changes: list[HistoryEntry], base: int) -> Iterable[list[HistoryEntry]]:
    """Yield changes of one row that may become one: all before the first snapshot, else those of one attempt."""
    if changes[-1].seq <= base:
        yield changes
        return
    for _, run in groupby(changes, key=lambda each: (each.step, each.attempt, each.agent, each.session, each.op)):
        yield list(run)


def _follow(connection: sa.Connection, schema: Schema, became: Mapping[int, int]) -> None:
    """Let values that came back name the changes of which those that set them became part."""
    history = schema.history
    returned = list(entries(connection, schema, history.c.changed.contains('"o":{', autoescape=True)))
    for entry in returned:
        origins = {name: became.get(seq, seq) for name, seq in entry.origins.items()}
        if origins != entry.origins and entry.seq not in became:
            changed = canonical_json({"v": entry.changed, "o": origins})
            connection.execute(sa.update(history).where(history.c.seq == entry.seq).values(changed=changed))


def _merge(connection: sa.Connection, schema: Schema, run: Sequence[HistoryEntry], *, is_base: bool) -> None:
    changed: dict[str, Any] = {}
    origins: dict[str, int] = {}
    for each in run:
        changed |= each.changed
        for name in each.changed:
            origins.pop(name, None)
        origins |= {name: seq for name, seq in each.origins.items() if name in each.changed}
    told: dict[str, Any] = {"v": changed} | ({"o": origins} if origins and not is_base else {})
    values: dict[str, Any] = {"changed": canonical_json(told), "op": run[0].op}
    if is_base and len({(each.step, each.attempt) for each in run}) > 1:
        values |= {"step": None, "attempt": None}
    history = schema.history
    connection.execute(sa.update(history).where(history.c.seq == run[-1].seq).values(values))
