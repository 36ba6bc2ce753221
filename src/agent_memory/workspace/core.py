"""What every part of an open workspace is made from: its place, its readers and writers, its transactions."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from agent_memory.redaction import SecretRedactor
from agent_memory.workspace.database import State, Transaction, Writer
from agent_memory.workspace.rows import Caller, Flagging, Leases, RowReading, Values, Writing, cleaned_name
from agent_memory.workspace.steps import Working

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_memory.redaction import Redactor
    from agent_memory.workspace.declaration import Declaration
    from agent_memory.workspace.place import OpenWorkspace
    from agent_memory.workspace.steps import Step

NOBODY: Final = Caller()
_NAMES: Final = 1_000
"""Names that are known to be clean: looking through one takes a tenth of the time of a write."""


class Core:
    """An open workspace from within.

    Args:
        opened: Where it is.
        redactor: Takes secrets out of what is written.
        on_event: Is told of every change: the name of an event, and fields without the text of rows.
    """

    def __init__(
        self,
        opened: OpenWorkspace,
        redactor: Redactor | None = None,
        on_event: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        self.opened = opened
        self.redactor = redactor or SecretRedactor()
        self._on_event = on_event
        self._cleaned = functools.lru_cache(_NAMES)(functools.partial(cleaned_name, self.redactor))
        meta = opened.schema.meta
        self._meta = sa.select(meta.c.value).where(meta.c.key == sa.bindparam("name"))
        tables = opened.declaration.tables
        self.values = {name: Values(name, table, self.redactor, opened.folder) for name, table in tables.items()}
        self.leases = Leases()
        self.reader = RowReading(opened.declaration, opened.schema, self.values, opened.words)
        self.writer = Writing(opened.declaration, self.values, self.reader, self.leases)
        self._flagging = Flagging(opened.declaration, self.values)
        self.working = Working(opened.declaration, self.reader, self.writer, self.leases)

    @property
    def declaration(self) -> Declaration:
        """What is declared."""
        return self.opened.declaration

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Read one state of the workspace for the length of the block."""
        with self.opened.database.reading() as connection:
            yield self._transaction(connection, Writer())

    @contextlib.contextmanager
    def changing(self, caller: Caller) -> Iterator[Transaction]:
        """Write alone for the length of the block: all of it is there at its end, or nothing."""
        writer = caller.as_writer()
        agent = None if writer.agent is None else self.name("agent", writer.agent)
        session = None if writer.session is None else self.name("session", writer.session)
        with self.opened.database.writing() as connection:
            transaction = self._transaction(connection, replace(writer, agent=agent, session=session))
            yield transaction
            self.working.reopen_for_rows(transaction)
            self._flagging.flag(transaction)

    def steps(self) -> list[Step]:
        """Return all steps."""
        with self.reading() as transaction:
            return self.working.steps(transaction)

    def ready(self, agent: str | None = None) -> list[Step]:
        """Return the steps that can run now, of one agent or all."""
        return [each for each in self.steps() if each.status == "ready" and agent in (None, each.agent)]

    def meta(self, connection: sa.Connection, key: str) -> str:
        """Return what the workspace keeps about itself under a name."""
        return str(connection.execute(self._meta, {"name": key}).scalar_one())

    def set_meta(self, connection: sa.Connection, key: str, value: str) -> None:
        """Keep something about the workspace itself."""
        meta = self.opened.schema.meta
        connection.execute(sa.update(meta).where(meta.c.key == key).values(value=value))

    def make_singletons(self) -> None:
        """Add the one row of each singleton that has none yet."""
        wanted = [name for name, table in self.declaration.tables.items() if table.kind == "singleton"]
        with self.opened.database.reading() as connection:
            missing = [name for name in wanted if not self._has_row(connection, name)]
        if not missing:
            return
        with self.changing(NOBODY) as transaction:
            for name in missing:
                if not self._has_row(transaction.connection, name):
                    encoded = self.values[name].encoded({}, whole=True)
                    transaction.insert(name, {**encoded.values, "ws_state": int(State.SHOWN)})

    def tell(self, event: str, caller: Caller, **fields: Any) -> None:
        """Tell whoever listens that something was changed."""
        if self._on_event is not None:
            self._on_event(event, {"workspace": self.declaration.workspace, "agent": caller.agent, **fields})

    def name(self, what: str, name: str) -> str:
        """Return the name of who writes as it is kept; errors as of `cleaned_name`."""
        return self._cleaned(what, name)

    def _transaction(self, connection: sa.Connection, writer: Writer) -> Transaction:
        epoch = int(self.meta(connection, "epoch"))
        at = self.opened.database.now(connection).isoformat(timespec="microseconds")
        return Transaction(connection, self.opened.schema, writer, epoch, at)

    def _has_row(self, connection: sa.Connection, table: str) -> bool:
        source = self.opened.schema.declared[table]
        return connection.execute(sa.select(source.c.id).limit(1)).first() is not None
