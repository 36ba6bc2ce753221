"""One agent under examination: its files, its journal as read, and what else the checks share. Looks, never writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.names import STAMP
from agent_memory.files.wording import counted
from agent_memory.journal import Inspection, Update, inspect_journal, refused
from agent_memory.scratchpad.file import render_file
from agent_memory.scratchpad.selection import Selection
from agent_memory.service.kinds import KINDS
from agent_memory.storage.state import State

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Change
    from agent_memory.models import Kind, Record
    from agent_memory.settings import ServiceSettings

Kinds = tuple["Kind[Any]", ...]


class Reading:
    """A journal, or a copy of one, and its records.

    Args:
        path: The file.
        agent_id: Whose.
        kinds: Of the records.

    Attributes:
        file: What is in the file itself.
        states: The records of each kind.
    """

    def __init__(self, path: Path, agent_id: str, kinds: Kinds = KINDS) -> None:
        self.file: Inspection = inspect_journal(path)
        self.kinds = kinds
        self._agent_id = agent_id
        self.states = [State(kind, agent_id) for kind in kinds]
        for state in self.states:
            state.absorb(Update(self.file.entries))

    @property
    def records(self) -> dict[str, Record]:
        """The records of all kinds by id."""
        return {record_id: record for state in self.states for record_id, record in state.records.items()}

    @property
    def invalid(self) -> dict[str, str]:
        """Ids of records that break their data model, with the reason."""
        return {record_id: reason for state in self.states for record_id, reason in state.table.invalid.items()}

    @property
    def circles(self) -> list[frozenset[str]]:
        """Records that replace one another all around, or themselves."""
        return [circle for state in self.states for circle in state.replacements.circles.values()]

    def wrong(self) -> list[str]:
        """Return what its kind says is wrong with a record although it fits the model, a sentence each."""
        return [
            f"{record.id}: {sentence}"
            for state in self.states
            for record in state.records.values()
            for sentence in state.kind.checks(record)
        ]

    def dangling(self) -> list[str]:
        """Return which records point to one that is not there; references to kinds of other journals are left out."""
        known = self.records.keys() | self.invalid.keys()
        prefixes = tuple(kind.prefix for kind in self.kinds)
        return [
            f"{record.id} points to {each}"
            for state in self.states
            for record in state.records.values()
            for each in state.kind.references(record)
            if each not in known and each.startswith(prefixes)
        ]

    def forgotten(self) -> int:
        """Return how many records were forgotten whose text is still in the file."""
        both = self.file.written_ids("put") & self.file.written_ids("delete")
        return len(both - self.records.keys() - self.invalid.keys())

    def refused(self) -> list[tuple[str, str]]:
        """Return id and reason of the entries that are no records. A compaction moves them aside."""
        written: dict[str, int] = {}
        for change in (change for entry in self.file.entries for change in entry.changes if change.op != "touch"):
            written[change.id] = written.get(change.id, 0) + 1
        sound = self.records.keys() - self.invalid.keys()
        # What is a record now, and was written once, need not be judged again.
        _, bad = refused(
            self.file.entries,
            lambda change: None if change.id in sound and written[change.id] == 1 else self.refusal(change),
        )
        return [(entry.changes[0].id, reason) for entry, reason in bad]

    def refusal(self, change: Change) -> str | None:
        """Return why a `put` is no record, or None; the same rule as a compaction's own."""
        kind = next((kind for kind in self.kinds if kind.name == change.kind), None)
        return None if kind is None else kind.refusal(self._agent_id, change.id, change.data)

    def missing_in(self, *journals: Inspection) -> list[Any]:
        """Return the records of which no other journal has a trace: neither there, nor forgotten."""
        written = set[str]().union(*(journal.written_ids() for journal in journals))
        return [record for record_id, record in self.records.items() if record_id not in written]


@dataclass(slots=True)
class Case:
    """What the checks of one journal of an agent work with, and of what is derived from it.

    Attributes:
        folder: The agent's.
        settings: What sessions use.
        now: The present.
        path: The journal.
        kinds: Of its records.
        is_first: What serves all journals of the folder is examined with this one.
        journal: What is in it.
    """

    folder: AgentFolder
    settings: ServiceSettings
    now: datetime
    path: Path
    kinds: Kinds
    is_first: bool = True
    journal: Reading = field(init=False)

    def __post_init__(self) -> None:
        """Read the journal."""
        self.read_again()

    def read_again(self) -> None:
        """Read the journal as it is now."""
        self.journal = self.reading_of(self.path)

    def reading_of(self, path: Path) -> Reading:
        """Return what is in this journal, or in a copy of it."""
        return Reading(path, self.folder.agent_id, self.kinds)

    @property
    def name(self) -> str:
        """The name of the journal."""
        return self.path.name

    @property
    def stamp(self) -> str:
        """The present in the names of files that are set aside."""
        return f"{self.now:{STAMP}}"

    @property
    def names(self) -> frozenset[str]:
        """Of the kinds, as they stand in the journal."""
        return frozenset(kind.name for kind in self.kinds)

    def counted(self, count: int, singular: str = "", plural: str = "") -> str:
        """Return a count with the noun of the kind, and a verb if given: `2 memories replace`."""
        noun = self.kinds[0].name
        many = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
        return counted(count, f"{noun}{singular}", f"{many}{plural}")

    def rendered(self, entries: int) -> str:
        """Return scratchpad.yaml as the journal has it, with so many entries at most."""
        selection = Selection(entries, self.settings.promotion_access_threshold)
        return render_file(selection.choose(self.journal.states[0].valid(self.now)), self.folder.agent_id)


def cases_of(folder: AgentFolder, settings: ServiceSettings, now: datetime, kinds: Kinds = KINDS) -> list[Case]:
    """Return a case for each journal of these kinds in an agent's folder, that of the scratchpad's kind first."""
    names = sorted(dict.fromkeys(kind.journal for kind in kinds), key=lambda name: name != folder.journal.name)
    return [
        Case(
            folder, settings, now, folder.path / name, tuple(kind for kind in kinds if kind.journal == name), not place
        )
        for place, name in enumerate(names)
        if not place or (folder.path / name).exists()
    ]


def salvaged(path: Path, folder: AgentFolder, kinds: Kinds = KINDS) -> list[Any]:
    """Return the records of a copy of an agent's journal of which no journal of these kinds has a trace.

    Raises:
        ValidationError: It is no copy of a journal.
        StorageError: It cannot be read.
    """
    copy = Reading(path, folder.agent_id, kinds)
    if copy.file.trouble is not None:
        raise StorageError(f"{path.name} cannot be read: {copy.file.trouble}.")
    if copy.file.size is None:
        raise ValidationError(f"There is no file {path}.", code="no_file", recovery="Check the name.")
    if not copy.file.entries:
        raise ValidationError(
            f"{path.name} is no copy of a journal.",
            code="not_a_journal",
            recovery="Exports and scratchpads are taken by `agent-memory import`.",
        )
    return copy.missing_in(*(inspect_journal(folder.path / name) for name in {kind.journal for kind in kinds}))
