"""The tables of a workspace, as agents read and write them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from agent_memory.workspace.core import NOBODY, Core
from agent_memory.workspace.rows import pending_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agent_memory.workspace.rows import Caller, Page, Saved


class Tables:
    """Reads and writes rows; each call is one transaction."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def get(self, table: str, key: Any = None, caller: Caller = NOBODY, columns: Sequence[str] = ()) -> dict[str, Any]:
        """Return a row by its key; by its id where the table has no key; a singleton's one row without any.

        Raises:
            RowNotFoundError: There is none, or the phase the caller works in may not see it.
        """
        with self._core.reading() as transaction:
            return self._core.reader.one(transaction.connection, table, key, caller, columns)

    def many(self, table: str, caller: Caller = NOBODY, **how: Any) -> Page:
        """Return rows in the order of their key; `how` is what `Reading.many` takes."""
        with self._core.reading() as transaction:
            return self._core.reader.many(transaction.connection, table, caller, **how)

    def search(
        self, table: str, query: str, caller: Caller = NOBODY, *, columns: Sequence[str] = (), limit: int = 20
    ) -> list[dict[str, Any]]:
        """Return rows that have words of `query`, the best first."""
        with self._core.reading() as transaction:
            return self._core.reader.search(transaction.connection, table, query, caller, columns, limit)

    def proposals(self, table: str, caller: Caller = NOBODY) -> list[dict[str, Any]]:
        """Return rows that are kept beside another one with the same unique value."""
        with self._core.reading() as transaction:
            return self._core.reader.proposals(transaction.connection, table, caller)

    def pending(self, table: str) -> int:
        """Return how many rows wait for their step to be finished; nobody but that step sees them."""
        with self._core.reading() as transaction:
            return pending_in(transaction.connection, self._core.reader.table(table))

    def save(self, table: str, values: Mapping[str, Any], caller: Caller = NOBODY) -> Saved:
        """Add a row; errors as of `Writing.prepare` and `Writing.add`."""
        if table in self._core.declaration.tables and self._core.declaration.tables[table].kind == "singleton":
            return self.update(table, None, values, caller)
        prepared = self._core.writer.prepare(table, values, caller, whole=True)
        with self._core.changing(caller) as transaction:
            saved = self._core.writer.add(transaction, prepared)
        self._core.tell("workspace:row_saved", caller, table=table, row_id=saved.row_id, proposal=saved.proposal)
        return saved

    def update(
        self,
        table: str,
        key: Any,
        values: Mapping[str, Any],
        caller: Caller = NOBODY,
        *,
        expected: Mapping[str, Any] | None = None,
    ) -> Saved:
        """Change columns of a row; errors as of `Writing.prepare` and `Writing.change`."""
        prepared = self._core.writer.prepare(table, values, caller, whole=False)
        with self._core.changing(caller) as transaction:
            saved = self._core.writer.change(transaction, key, prepared, expected)
        self._core.tell("workspace:row_updated", caller, table=table, row_id=saved.row_id, columns=sorted(values))
        return saved

    @contextlib.contextmanager
    def bulk(self, caller: Caller = NOBODY) -> Iterator[Callable[[str, Mapping[str, Any]], Saved]]:
        """Add many rows in one transaction: all of them are there at the end of the block, or none.

        Yields:
            What adds one, as `save`.
        """
        writer = self._core.writer
        with self._core.changing(caller) as transaction:
            yield lambda table, values: writer.add(transaction, writer.prepare(table, values, caller, whole=True))
        self._core.tell("workspace:rows_saved", caller)
