"""A row in a declared table for each proposal, so that somebody decides: which of two definitions is to stand.

There is one while a row is a proposal, and none while it is not: so what there is depends on the rows alone, not on who
finished first. It belongs to no step; it is set aside when the proposal is taken back, or shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.workspace.database import State, Transaction, Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.rows.values import Values

_NAMED: Final = "ws_proposal/{table}/{row_id}"
"""What stands for the step of a flag; three parts as the name of a step, and none that a declaration can give."""
WORKSPACE: Final = "workspace"
"""Who flags what no agent wrote."""


class Flagging:
    """Keeps the flags of proposals as the proposals are, within a transaction of the caller's."""

    def __init__(self, declaration: Declaration, values: Mapping[str, Values]) -> None:
        self._declaration = declaration
        self._values = values

    def flag(self, transaction: Transaction) -> None:
        """Add, show and set aside flags for the tables in which a row became a proposal, or is none any more."""
        if self._declaration.logs.issues is None or not transaction.proposed:
            return
        own = replace(transaction, writer=Writer())  # no step's: taking a step back decides anew
        for table in sorted(transaction.proposed):
            self._flag(own, table, self._declaration.logs.issues)

    def _flag(self, transaction: Transaction, table: str, flags: str) -> None:
        source, into = transaction.schema.declared[table], transaction.schema.declared[flags]
        waiting = sa.select(source).where(source.c.ws_state == int(State.PROPOSAL)).order_by(source.c.id)
        proposals = {
            _NAMED.format(table=table, row_id=row["id"]): dict(row)
            for row in transaction.connection.execute(waiting).mappings()
        }
        prefix = _NAMED.format(table=table, row_id="")
        flagged = sa.select(into).where(into.c.ws_step.startswith(prefix, autoescape=True)).order_by(into.c.id)
        there = {row["ws_step"]: dict(row) for row in transaction.connection.execute(flagged).mappings()}
        for name, row in there.items():
            state = State.SHOWN if name in proposals else State.ASIDE
            transaction.update(flags, row, {"ws_state": int(state)}, op="settle")
        for name, row in proposals.items():
            if name not in there:
                told = self._told(transaction, table, row, flags)
                hidden = {"ws_state": int(State.SHOWN), "ws_step": name, "ws_attempt": 0, "ws_ordinal": 0}
                hidden["ws_trust"] = row["ws_trust"]
                transaction.insert(flags, {**told, **hidden})

    def _told(self, transaction: Transaction, table: str, row: Mapping[str, Any], flags: str) -> dict[str, Any]:
        """Return the columns of a new flag: what the table has of them, from the proposal alone."""
        declared, columns = self._declaration.tables[table], self._declaration.tables[flags].columns
        same = [
            str(row[each])
            for each in declared.unique_columns()
            if row[each] is not None and not declared.columns[each].references
        ]
        step = (row["ws_step"] or "//").split("/", 2)
        told = {
            "description": f"{' '.join([table, *same])}: another row came first; this one is kept as a proposal.",
            "flagged_by": step[1] or WORKSPACE,
        }
        encoded = self._values[flags].encoded({name: told[name] for name in told if name in columns}, whole=True)
        return {**encoded.values, **self._worked_on(transaction, step, flags)}

    def _worked_on(self, transaction: Transaction, step: list[str], flags: str) -> dict[str, int]:
        """Return the references to the row that the step worked on, where the flags have a column for it."""
        phase = next((each for each in self._declaration.phases if each.name == step[0]), None)
        if phase is None or phase.over is None:
            return {}
        over, key = transaction.schema.declared[phase.over], self._declaration.tables[phase.over].key or "id"
        here = sa.and_(sa.cast(over.c[key], sa.Text()) == step[2], over.c.ws_state == int(State.SHOWN))
        row_id = transaction.connection.execute(sa.select(over.c.id).where(here)).scalar()
        columns = self._declaration.tables[flags].columns.items()
        return {name: row_id for name, column in columns if column.references == phase.over and row_id is not None}
