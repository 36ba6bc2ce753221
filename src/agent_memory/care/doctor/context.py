"""One agent under examination: its files, its journal as read, and what else the checks share. Looks, never writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent_memory.care.doctor.reading import JournalReading, Kinds
from agent_memory.care.doctor.survey import JournalSurvey
from agent_memory.errors import StorageError, ValidationError
from agent_memory.files.atomic import signature
from agent_memory.files.names import STAMP
from agent_memory.files.wording import counted
from agent_memory.index.scores import numpy_if_there
from agent_memory.journal import inspect_journal
from agent_memory.memory.kinds import KINDS
from agent_memory.memory.scratchpad_entries import Selection
from agent_memory.memory.scratchpad_file import render_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path

    from agent_memory.files.layout import AgentFolder
    from agent_memory.settings import ServiceSettings
    from agent_memory.store.segment_opener import SegmentCheck


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
        progress: Called with how many bytes were read, and with all that are to be.
        journal: What is in it.
        survey: What its records are like.
        segments: How the segments made of it stand; nothing where numpy is missing, for then nothing reads them.
    """

    folder: AgentFolder
    settings: ServiceSettings
    now: datetime
    path: Path
    kinds: Kinds
    is_first: bool = True
    progress: Callable[[int, int], None] | None = None
    journal: JournalReading = field(init=False)
    survey: JournalSurvey = field(init=False)
    segments: list[SegmentCheck] = field(init=False, default_factory=list)
    _looked: object = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Read the journal."""
        self.read_again()

    def read_again(self) -> None:
        """Read the journal as it is now."""
        self._looked = signature(self.path)
        self.segments = self._segments()
        self.journal = JournalReading(self.path, self.folder.agent_id, self.kinds, self.progress)
        self.survey = JournalSurvey(self.journal, self.settings, self.now, [check.compare for check in self.segments])

    def read_what_is_new(self) -> None:
        """Read the journal again if it has changed: a session may have written since."""
        if signature(self.path) != self._looked:
            self.read_again()

    def reading_of(self, path: Path) -> JournalReading:
        """Return what is in a copy of this journal."""
        return JournalReading(path, self.folder.agent_id, self.kinds)

    def _segments(self) -> list[SegmentCheck]:
        if self.path != self.folder.journal or numpy_if_there() is None:
            return []
        from agent_memory.store.segment_opener import SegmentCheck

        return [SegmentCheck(self.folder, kind) for kind in self.kinds]

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
        noun = "record" if len(self.kinds) > 1 else self.kinds[0].name.rpartition("_")[2]  # stage_mark: mark
        many = f"{noun.removesuffix('y')}ies" if noun.endswith("y") else f"{noun}s"
        return counted(count, f"{noun}{singular}", f"{many}{plural}")

    def rendered(self, entries: int) -> str:
        """Return scratchpad.yaml as the journal has it, with so many entries at most."""
        selection = Selection(entries, self.settings.promotion_access_threshold)
        return render_file(selection.choose(self.survey.shown()), self.folder.agent_id)


def cases_of(
    folder: AgentFolder,
    settings: ServiceSettings,
    now: datetime,
    kinds: Kinds = KINDS,
    progress: Callable[[int, int], None] | None = None,
) -> list[Case]:
    """Return a case for each journal of these kinds in an agent's folder, that of the scratchpad's kind first."""
    names = sorted(dict.fromkeys(kind.journal for kind in kinds), key=lambda name: name != folder.journal.name)
    return [
        Case(
            folder,
            settings,
            now,
            folder.path / name,
            tuple(kind for kind in kinds if kind.journal == name),
            not place,
            progress,
        )
        for place, name in enumerate(names)
        if not place or (folder.path / name).exists()
    ]


def salvaged(path: Path, folder: AgentFolder, kinds: Kinds = KINDS) -> Iterator[Any]:
    """Return the records of a copy of an agent's journal of which no journal of these kinds has a trace.

    Raises:
        ValidationError: It is no copy of a journal.
        StorageError: It cannot be read.
    """
    copy = JournalReading(path, folder.agent_id, kinds)
    if copy.file.trouble is not None:
        raise StorageError(f"{path.name} cannot be read: {copy.file.trouble}.")
    if copy.file.size is None:
        raise ValidationError(f"There is no file {path}.", code="no_file", recovery="Check the name.")
    if not copy.file.seqs:
        raise ValidationError(
            f"{path.name} is no copy of a journal.",
            code="not_a_journal",
            recovery="Exports and scratchpads are taken by `agent-memory import`.",
        )
    return copy.missing_in(*(inspect_journal(folder.path / name) for name in {kind.journal for kind in kinds}))
