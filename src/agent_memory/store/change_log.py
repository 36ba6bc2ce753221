"""`FileLog`: the changes of one agent's records in a journal, and the policy of its compactions.

Also finds what the other journals of the folder still need: vectors and long texts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from agent_memory.embeddings import text_hash
from agent_memory.encryption import AgentBlobs, state_of
from agent_memory.encryption.blobs import SweepResult
from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_json, signature, translated
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.files.names import SEGMENTS, is_aside
from agent_memory.index import embedded_texts
from agent_memory.journal import (
    GRACE,
    Change,
    Journal,
    JournalUpdate,
    Records,
    apply_change,
    find_deleted_ids,
    keep_lost,
)
from agent_memory.journal.journal import note_current
from agent_memory.journal.reader import is_put_back
from agent_memory.models import ACCESS, ESTIMATES, PLACE, Clock, to_text, utc_now
from agent_memory.store.changes import expired_before
from agent_memory.store.shards import describe_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import date, datetime, timedelta
    from pathlib import Path
    from typing import Any

    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Change, Entry
    from agent_memory.models import Kind
    from agent_memory.store.protocols import Absorb, Decide, Settle
    from agent_memory.store.state import State

T = TypeVar("T")


class FileLog:
    """A `ChangeLog` in an agent's folder, for one writer at a time.

    Args:
        kind: Kind of the records. A compaction reads them and those of the other kinds in the journal; lines of unknown
            kinds stay as they are.
        folder: Folder of the agent.
        clock: Source of the present.
        grace: Time for which forgotten and replaced texts can be restored.
        wait: Seconds to wait for another process that is writing.

    Attributes:
        journal: Journal of the records.
        policy: Counts of what a compaction would drop.
    """

    def __init__(
        self,
        kind: Kind[Any],
        folder: AgentFolder,
        clock: Clock = utc_now,
        grace: timedelta = GRACE,
        wait: float = WAIT_SECONDS,
    ) -> None:
        self._grace = grace
        self._kind = kind
        self._folder = folder
        self._clock = clock
        path = folder.path / kind.journal
        self._kinds = {each.name: each for each in kind.in_journal}
        self.journal = Journal(path, self._kinds, clock=clock, wait=wait, grace=grace, look_where=folder.look_where)
        self.policy = CompactionPolicy(grace)
        self._generation = ""
        self._looked_on: date | None = None

    @property
    def watermark(self) -> tuple[str, int]:
        """See `ChangeLog`."""
        return self.journal.watermark

    @property
    def rewritten(self) -> int:
        """See `ChangeLog`."""
        return self.journal.reader.rewritten

    def looks_like(self) -> object:
        """See `ChangeLog`; some 2 µs, which each request of a session pays."""
        return signature(self.journal.path)  # None where that fails: reading it says why

    def poll(self, *, thorough: bool = False) -> JournalUpdate:
        """See `ChangeLog`; `thorough` reads the whole file again."""
        return self._counted(self.journal.poll(thorough=thorough))

    def hold(self, wait: float) -> AbstractContextManager[None]:
        """See `ChangeLog`."""
        return self.journal.hold(wait)

    def commit(self, absorb: Absorb, decide: Decide[T]) -> tuple[T, Settle]:
        """See `ChangeLog`. Holds the lock for as long as it takes."""
        with self.journal.appending() as writer:
            absorb(self._counted(writer.update))
            changes, answer = decide()
            if changes:
                absorb(self._counted(JournalUpdate([writer.append(changes)])))
                if changes[0].op == "put":
                    describe_folder(self._folder)  # under the lock, or it might replace what a migration has written
        return answer, writer.receipt.settle if writer.receipt is not None else None

    def pays_to_compact(self, state: State[Any]) -> bool:
        """Return True if a rewrite pays off; see `ChangeLog`.

        Checks once a day for records that expired longer ago than the grace time.
        """
        now = self._clock()
        if is_put_back(self.journal.reader) or self.policy.pays(len(state.records), now):
            return True
        if self._looked_on == now.date() or self.policy.is_of_today(now):
            return False
        self._looked_on = now.date()
        return state.has_expired(now - self._grace)

    @contextlib.contextmanager
    def compacting(self, grace: timedelta | None = None) -> Iterator[Callable[[Absorb], bool]]:
        """See `ChangeLog`."""
        until = self._clock() - (self._grace if grace is None else grace)

        def has_ended(put: Change) -> bool:
            return put.kind in self._kinds and expired_before(put.data, until)

        def refusal(put: Change) -> str | None:
            kind = self._kinds.get(put.kind)
            return None if kind is None else kind.refusal(self._folder.agent_id, put.id, put.data)

        with self.journal.folded(
            grace=grace,
            keep=refusal,
            ended=has_ended,
            apart=[_sealed_seq(self._folder, name) for name in self._kinds],
            words=[word for kind in self._kinds.values() for word in (kind.text, *kind.prose)],
        ) as new:

            def finish(_absorb: Absorb) -> bool:
                self.journal.put_in_place(new)
                return True

            yield finish

    def naming(self, record_ids: Collection[str] | None) -> list[Entry]:
        """See `ChangeLog`; reads the whole file."""
        wanted = find_deleted_ids(self.journal.path) if record_ids is None else record_ids
        return self.journal.naming(wanted) if wanted else []

    def report(self) -> tuple[list[str], list[str]]:
        """See `ChangeLog`."""
        reader, name = self.journal.reader, self.journal.path.name
        problems = [f"line {problem.line}: {problem.reason}" for problem in reader.problems]
        if moved := reader.reversed:
            problems.append(f"line {moved[0]}: its number is lower than that of the line before; lines were moved")
        if reader.rewritten:
            problems.append(f"{name} was rewritten by another program; a copy was kept beside it")
        return problems, self.journal.notes

    def note_current(self, count: int) -> None:
        """See `ChangeLog`."""
        note_current(self.journal, None if self._kind.beside() else count)

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """See `ChangeLog`."""
        return keep_lost(self.journal.path, records)

    def _counted(self, update: JournalUpdate) -> JournalUpdate:
        header = self.journal.reader.header
        generation = header.generation if header is not None else ""
        if update.reset or (update.entries and self.policy.is_empty):
            self.policy.clear(header.last_seq if header else 0)
        elif header is not None and self._generation and generation != self._generation:
            self.policy.go_on(header.last_seq, self._clock())
        self._generation = generation
        for entry in update.entries:
            if is_counted(entry, self._kind):
                self.policy.add(entry)
        return update


def _sealed_seq(folder: AgentFolder, kind: str) -> int:
    """Return the number of the last sealed change, or 0."""
    listed = read_json(folder.segments(kind) / SEGMENTS) or {}
    seq = ((listed.get("notes") or {}).get("place") or {}).get("seq")
    return seq if isinstance(seq, int) else 0


_DAY: Final = len("2026-03-01")
_NEVER: Final = "~"
_BOOKKEEPING: Final = ACCESS | PLACE | ESTIMATES
"""Fields that hold no text: a patch of these alone ends none."""
_COMPACT_AT: Final = 1000
"""Lines that could go, from which on a compaction may pay; with more memories than that, as many as there are."""


class CompactionPolicy:
    """The lines of one journal, counted while they are read.

    What could go: accesses noted since the last compaction, for it adds them up; and lines older than the grace time,
    of which one for each memory stays. So the file never has more than twice as many lines as there are memories, plus
    a thousand, plus what the grace time keeps.

    That number is only nearly right: a clock that jumped, lines of a newer version and memories that were forgotten a
    moment ago keep lines alive that look as if they could go. Therefore a compaction must also be worth its time:
    either the file has grown by half since the last one, or a day has passed.

    However few lines there are, one pays once a day when a text that was forgotten or replaced is past its grace time.

    Args:
        grace: How long replaced and deleted versions stay.
    """

    def __init__(self, grace: timedelta = GRACE) -> None:
        self._grace = grace
        self.clear(0)

    def clear(self, compacted_seq: int) -> None:
        """Begin with a file whose last compaction saw the numbers up to `compacted_seq`; 0 before the first."""
        self._compacted_seq = compacted_seq
        self._compacted_on = ""
        self._touches = self._grown = self._lines = 0
        self._by_day: Counter[str] = Counter()
        self._first_end = _NEVER

    def go_on(self, compacted_seq: int, now: datetime) -> None:
        """Go on with the file compacted, of which nothing was read again.

        What is older than the grace time counts as gone. A text whose time was over may be there still for what no
        compaction passes: that costs another one, on another day.
        """
        oldest_kept = to_text(now - self._grace)[:_DAY]
        self._compacted_seq = compacted_seq
        self._compacted_on = to_text(now)[:_DAY]
        self._touches = self._grown = 0
        self._by_day = Counter({day: count for day, count in self._by_day.items() if day >= oldest_kept})
        self._lines = self._by_day.total()
        self._first_end = max(self._first_end, oldest_kept)

    def to_json(self) -> dict[str, Any]:
        """Return what was counted, for another process that goes on from here."""
        return {**vars(self), "_grace": None}

    def resume(self, said: Mapping[str, Any]) -> None:
        """Go on from what `to_json` gave; nothing where that is not what it gives."""
        if said.keys() == vars(self).keys():
            vars(self).update(said, _grace=self._grace, _by_day=Counter(said["_by_day"]))

    @property
    def is_empty(self) -> bool:
        """Whether no line was counted yet."""
        return self._lines == 0

    def add(self, entry: Entry) -> None:
        """Count a line."""
        self._lines += 1
        day, is_new = entry.at[:_DAY], entry.seq > self._compacted_seq
        self._grown += is_new
        if not is_new:
            self._compacted_on = max(self._compacted_on, day)
        if is_new and entry.changes and all(change.op == "touch" for change in entry.changes):
            self._touches += 1
        else:
            self._by_day[day] += 1
            if day < self._first_end and any(map(_ends_a_text, entry.changes)):
                self._first_end = day

    def pays(self, live: int, now: datetime) -> bool:
        """Tell whether a compaction is worth its time, with so many memories at this moment."""
        least = max(_COMPACT_AT, live)
        if self._lines <= least and self._first_end == _NEVER:
            return False  # most calls end here
        oldest_kept = to_text(now - self._grace)[:_DAY]
        if self._first_end < oldest_kept and not self.is_of_today(now):
            return True
        if self._lines <= least:
            return False
        aged = sum(count for day, count in self._by_day.items() if day < oldest_kept)
        if self._touches + max(0, aged - live) <= least:
            return False
        left = self._lines - self._grown
        return self._grown > max(least, left // 2) or not self.is_of_today(now)

    def is_of_today(self, now: datetime) -> bool:
        """Tell whether the file was compacted today, or at a time that is yet to come."""
        return self._compacted_on >= to_text(now)[:_DAY]


def is_counted(entry: Entry, kind: Kind[Any]) -> bool:
    """Tell whether a line counts for the records of a kind: not where it is all about others in the same journal."""
    others = {each.name for each in kind.beside()}
    return not others or not entry.changes or any(change.kind not in others for change in entry.changes)


def _ends_a_text(change: Change) -> bool:
    return change.op == "delete" or (change.op == "patch" and not change.data.keys() <= _BOOKKEEPING)


def records_in(journal: Path, without: str = "") -> Records:
    """Return the records of a journal by id as they stand there, of whatever kind but the one named.

    Raises:
        StorageError: It cannot be read.
    """
    records: Records = {}
    for entry in Journal(journal, ()).poll().entries:
        for change in entry.changes:
            if change.kind != without:
                apply_change(records, change, entry.at)
    return records


def hashes_elsewhere(folder: AgentFolder, kind: Kind[Any]) -> set[bytes]:
    """Return the hashes of all texts in the folder's journals but those of a kind, whichever field holds them.

    A journal that cannot be read gives none: its vectors can be computed again, and a vector that is kept without need
    tells something of a text that was forgotten.
    """
    found: set[bytes] = set()
    with contextlib.suppress(OSError):
        for path in folder.journals():
            if path.name != kind.journal or kind.beside():
                with contextlib.suppress(StorageError):
                    found |= {
                        text_hash(piece)
                        for record in records_in(path, kind.name).values()
                        for text in record.values()
                        if isinstance(text, str)
                        for piece in embedded_texts(text)
                    }
    return found


_NAME: Final = re.compile(r"[0-9a-f]{64}")


def files_naming(folder: AgentFolder) -> list[Path]:
    """Return the files in which records may stand: journals, what was set aside of them, copies that somebody made.

    Raises:
        StorageError: The folder cannot be listed.
    """
    with translated(folder.path, "list"), os.scandir(folder.path) as entries:
        return [folder.path / each.name for each in entries if ".yaml" in each.name and each.is_file()]


def sweep_blobs(folder: AgentFolder, grace: timedelta) -> SweepResult:
    """Remove the long texts that no file in an agent's folder names, and that are older than `grace`. Blocking.

    Raises:
        StorageError: A file that may name one cannot be read; nothing more is removed.
    """
    blobs = AgentBlobs(folder)
    if not blobs.folder.is_dir():
        return SweepResult()
    if state_of(folder.path) is None:
        return blobs.sweep(lambda: files_naming(folder), grace)
    journals = set(folder.journals())
    # What was kept aside is encrypted in other ways, and may name any text.
    if any(is_aside(path) for path in files_naming(folder) if path not in journals):
        return SweepResult()
    return blobs.sweep(lambda: journals, grace, _named_in_journal)


def _named_in_journal(path: Path) -> Iterator[str]:
    """Yield what has the form of a name in the fields of a journal that may be encrypted."""
    for entry in Journal(path, ()).poll().entries:
        for change in entry.changes:
            yield from _NAME.findall(json.dumps(change.data))
