"""`JournalReading`: a journal as the doctor reads it, some thousand records at a time. Looks, never writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.journal import Inspection, Update, inspect_journal
from agent_memory.memory.kinds import KINDS
from agent_memory.store.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from agent_memory.journal import Change, Line
    from agent_memory.models import Kind, Record

Kinds = tuple["Kind[Any]", ...]


class JournalReading:
    """A journal, or a copy of one, and its records, of which some thousand are in memory at a time.

    Args:
        path: The file.
        agent_id: Whose.
        kinds: Of the records.
        progress: Called with how many bytes were read, and with all that are to be.

    Attributes:
        file: What is in the file itself.
        kinds: As given.
    """

    def __init__(
        self, path: Path, agent_id: str, kinds: Kinds = KINDS, progress: Callable[[int, int], None] | None = None
    ) -> None:
        self._agent_id = agent_id
        self.kinds = kinds
        self._progress = progress
        self.file: Inspection = inspect_journal(path, self._read)

    def portions(self, record_ids: Collection[str] | None = None) -> Iterator[tuple[list[State[Any]], list[Line]]]:
        """Yield the records of each kind, some thousand at a time, with the lines that concern them.

        Args:
            record_ids: Only portions with these records; all of them when omitted.
        """
        done = 0
        for lines in self.file.portions(record_ids):
            states = [State(kind, self._agent_id) for kind in self.kinds]
            for state in states:
                state.absorb(Update([line.part for line in lines]))
            yield states, lines
            done += sum(len(line.entry.raw) for line in lines)
            if record_ids is None:
                self._read((self.file.size or 0) + done, self.file.size or 0)

    def load(self, record_ids: Collection[str] | None = None) -> dict[str, Any]:
        """Return some records by id, or all of them; those that are not there are left out."""
        wanted = None if record_ids is None else set(record_ids)
        return {
            record_id: record
            for states, _ in self.portions(wanted)
            for state in states
            for record_id, record in state.records.items()
            if wanted is None or record_id in wanted
        }

    def iter_records(self) -> Iterator[Any]:
        """Yield all records, some thousand at a time in memory."""
        for states, _ in self.portions():
            for state in states:
                yield from state.records.values()

    def kind_of(self, record: Record) -> Kind[Any]:
        """Return the kind of one of its records."""
        return next(kind for kind in self.kinds if type(record) is kind.model)

    def refusal(self, change: Change) -> str | None:
        """Return why a `put` is no record, or None; the same rule as a compaction's own."""
        kind = next((kind for kind in self.kinds if kind.name == change.kind), None)
        return None if kind is None else kind.refusal(self._agent_id, change.id, change.data)

    def missing_in(self, *journals: Inspection) -> Iterator[Any]:
        """Yield the records of which no other journal has a trace: neither there, nor forgotten."""
        return (record for record in self.iter_records() if not any(journal.wrote(record.id) for journal in journals))

    def _read(self, done: int, size: int) -> None:
        """Say how far the reading has come: each byte is read twice."""
        if self._progress is not None:
            self._progress(done, 2 * size)
