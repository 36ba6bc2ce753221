"""`FileLog`: the changes of one agent's records in a journal.

The `CompactionPolicy` decides when a compaction pays.

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
from agent_memory.encryption import AgentBlobs, get_encryption_state
from agent_memory.encryption.blobs import SweepResult
from agent_memory.errors import StorageError
from agent_memory.files.atomic import read_json, read_signature, translated
from agent_memory.files.lock import WAIT_SECONDS
from agent_memory.files.names import SEGMENTS, is_aside
from agent_memory.index import embedded_texts
from agent_memory.journal import GRACE, Change, Entry, Journal, JournalUpdate, Records, apply_change, keep_lost
from agent_memory.journal.journal import note_current
from agent_memory.journal.reader import find_deleted_ids, is_put_back
from agent_memory.models import ACCESS, ESTIMATES, PLACE, Clock, to_text, utc_now
from agent_memory.store.changes import is_expired_before
from agent_memory.store.shards import describe_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import date, datetime, timedelta
    from pathlib import Path
    from typing import Any

    from agent_memory.files.layout import AgentFolder
    from agent_memory.models import Kind
    from agent_memory.store.protocols import Absorb, Decide, Settle
    from agent_memory.store.state import State

T = TypeVar("T")


class FileLog:
    """The `ChangeLog` in an agent's folder, for one writer at a time.

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
        self._kinds = {member.name: member for member in kind.in_journal}
        self.journal = Journal(path, self._kinds, clock=clock, wait=wait, grace=grace, look_where=folder.look_where)
        self.policy = CompactionPolicy(grace)
        self._generation = ""
        self._checked_on: date | None = None

    @property
    def watermark(self) -> tuple[str, int]:
        """See `ChangeLog`."""
        return self.journal.watermark

    @property
    def rewrite_count(self) -> int:
        """See `ChangeLog`."""
        return self.journal.reader.rewritten

    def looks_like(self) -> object:
        """See `ChangeLog`; some 2 µs, which each request of a session pays."""
        return read_signature(self.journal.path)  # None where that fails: reading it says why

    def poll(self, *, thorough: bool = False) -> JournalUpdate:
        """See `ChangeLog`; `thorough` reads the whole file again."""
        return self._count(self.journal.poll(thorough=thorough))

    def hold(self, wait: float) -> AbstractContextManager[None]:
        """See `ChangeLog`."""
        return self.journal.hold(wait)

    def commit(self, absorb: Absorb, decide: Decide[T]) -> tuple[T, Settle]:
        """See `ChangeLog`. Holds the lock for as long as it takes."""
        with self.journal.appending() as writer:
            absorb(self._count(writer.update))
            changes, answer = decide()
            if changes:
                absorb(self._count(JournalUpdate([writer.append(changes)])))
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
        if self._checked_on == now.date() or self.policy.is_of_today(now):
            return False
        self._checked_on = now.date()
        return state.has_expired(now - self._grace)

    @contextlib.contextmanager
    def compacting(self, grace: timedelta | None = None) -> Iterator[Callable[[Absorb], bool]]:
        """See `ChangeLog`."""
        until = self._clock() - (self._grace if grace is None else grace)

        def is_expired(put: Change) -> bool:
            return put.kind in self._kinds and is_expired_before(put.data, until)

        def find_refusal(put: Change) -> str | None:
            kind = self._kinds.get(put.kind)
            return None if kind is None else kind.refusal(self._folder.agent_id, put.id, put.data)

        with self.journal.prepare_compaction(
            grace=grace,
            keep=find_refusal,
            ended=is_expired,
            apart=[_get_sealed_seq(self._folder, name) for name in self._kinds],
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
        if reversed_lines := reader.reversed:
            problems.append(
                f"line {reversed_lines[0]}: its number is lower than that of the line before; lines were moved"
            )
        if reader.rewritten:
            problems.append(f"{name} was rewritten by another program; a copy was kept next to it")
        return problems, self.journal.notes

    def note_current(self, count: int) -> None:
        """See `ChangeLog`."""
        note_current(self.journal, None if self._kind.beside() else count)

    def keep_lost(self, records: Mapping[str, Mapping[str, Any]]) -> object:
        """See `ChangeLog`."""
        return keep_lost(self.journal.path, records)

    def _count(self, update: JournalUpdate) -> JournalUpdate:
        """Count an update in the policy; return it."""
        header = self.journal.reader.header
        generation = header.generation if header is not None else ""
        if update.reset or (update.entries and self.policy.is_empty):
            self.policy.clear(header.last_seq if header else 0)
        elif header is not None and self._generation and generation != self._generation:
            self.policy.skip_compacted(header.last_seq, self._clock())
        self._generation = generation
        for entry in update.entries:
            if is_counted(entry, self._kind):
                self.policy.add(entry)
        return update


def _get_sealed_seq(folder: AgentFolder, kind: str) -> int:
    """Return the number of the last sealed change, or 0."""
    manifest = read_json(folder.segments(kind) / SEGMENTS) or {}
    seq = ((manifest.get("notes") or {}).get("place") or {}).get("seq")
    return seq if isinstance(seq, int) else 0


_DAY: Final = len("2026-03-01")
_NEVER: Final = "~"
_BOOKKEEPING: Final = ACCESS | PLACE | ESTIMATES
"""Fields that hold no text: a patch of these alone deletes none."""
_COMPACT_AT: Final = 1000
"""Droppable lines from which on a compaction may pay; with more memories than that, as many as there are."""


class CompactionPolicy:
    """Counts of the lines of one journal, for its compaction. Pure.

    Droppable are accesses since the last compaction, which adds them up, and lines older than the grace time, of which
    one for each memory stays. So the file never has more than twice as many lines as there are memories, plus a
    thousand, plus the lines of the grace time.

    The number is an estimate: a clock that jumped, lines of a newer version and memories that were just forgotten
    prevent lines from being dropped. So a compaction must also be worth its time: the file has grown by half since the
    last one, or a day has passed.

    With few lines, too, a compaction pays once a day if a forgotten or replaced text is past its grace time.

    Args:
        grace: Time for which replaced and deleted versions stay.
    """

    def __init__(self, grace: timedelta = GRACE) -> None:
        self._grace = grace
        self.clear(0)

    def clear(self, compacted_seq: int) -> None:
        """Start with a file compacted up to a change, or never (0)."""
        self._compacted_seq = compacted_seq
        self._compacted_on = ""
        self._touches = self._grown = self._lines = 0
        self._by_day: Counter[str] = Counter()
        self._first_end = _NEVER

    def skip_compacted(self, compacted_seq: int, now: datetime) -> None:
        """Continue with a compacted file without reading it again.

        Lines older than the grace time count as dropped. A compaction may have had to leave some of their texts: that
        costs another one, on another day.
        """
        oldest_kept = to_text(now - self._grace)[:_DAY]
        self._compacted_seq = compacted_seq
        self._compacted_on = to_text(now)[:_DAY]
        self._touches = self._grown = 0
        self._by_day = Counter({day: count for day, count in self._by_day.items() if day >= oldest_kept})
        self._lines = self._by_day.total()
        self._first_end = max(self._first_end, oldest_kept)

    def to_json(self) -> dict[str, Any]:
        """Return the counts, for another process that continues from here."""
        return {**vars(self), "_grace": None}

    def resume(self, counts: Mapping[str, Any]) -> None:
        """Continue from a result of `to_json`; ignore anything else."""
        if counts.keys() == vars(self).keys():
            vars(self).update(counts, _grace=self._grace, _by_day=Counter(counts["_by_day"]))

    @property
    def is_empty(self) -> bool:
        """True if no line was counted yet."""
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
            if day < self._first_end and any(map(_deletes_text, entry.changes)):
                self._first_end = day

    def pays(self, live: int, now: datetime) -> bool:
        """Return True if a compaction is worth its time.

        Args:
            live: Number of memories.
            now: Time of the question.
        """
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
        carried = self._lines - self._grown
        return self._grown > max(least, carried // 2) or not self.is_of_today(now)

    def is_of_today(self, now: datetime) -> bool:
        """Return True if the file was compacted today, or in the future."""
        return self._compacted_on >= to_text(now)[:_DAY]


def is_counted(entry: Entry, kind: Kind[Any]) -> bool:
    """Return True unless a line concerns only other kinds.

    They may be in the same journal.
    """
    foreign = {sibling.name for sibling in kind.beside()}
    return not foreign or not entry.changes or any(change.kind not in foreign for change in entry.changes)


def _deletes_text(change: Change) -> bool:
    return change.op == "delete" or (change.op == "patch" and not change.data.keys() <= _BOOKKEEPING)


def read_records(journal: Path, without: str = "") -> Records:
    """Return the raw records of a journal, except of one kind.

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
    """Return the hashes of a folder's texts, except of one kind.

    An unreadable journal has none: its vectors can be computed again, and an unneeded vector reveals something of a
    forgotten text.
    """
    hashes: set[bytes] = set()
    with contextlib.suppress(OSError):
        for path in folder.journals():
            if path.name != kind.journal or kind.beside():
                with contextlib.suppress(StorageError):
                    hashes |= {
                        text_hash(piece)
                        for record in read_records(path, kind.name).values()
                        for text in record.values()
                        if isinstance(text, str)
                        for piece in embedded_texts(text)
                    }
    return hashes


_NAME: Final = re.compile(r"[0-9a-f]{64}")


def list_record_files(folder: AgentFolder) -> list[Path]:
    """Return the files that may have records: journals, quarantined files and copies.

    Raises:
        StorageError: The folder cannot be listed.
    """
    with translated(folder.path, "list"), os.scandir(folder.path) as entries:
        return [folder.path / entry.name for entry in entries if ".yaml" in entry.name and entry.is_file()]


def sweep_blobs(folder: AgentFolder, grace: timedelta) -> SweepResult:
    """Remove old long texts that no file of the folder names.

    Blocking.

    Raises:
        StorageError: A file that may name one cannot be read; nothing more is removed.
    """
    blobs = AgentBlobs(folder)
    if not blobs.folder.is_dir():
        return SweepResult()
    if get_encryption_state(folder.path) is None:
        return blobs.sweep(lambda: list_record_files(folder), grace)
    journals = set(folder.journals())
    # A quarantined file is encrypted in another way, and may name any text.
    if any(is_aside(path) for path in list_record_files(folder) if path not in journals):
        return SweepResult()
    return blobs.sweep(lambda: journals, grace, _iter_named)


def _iter_named(path: Path) -> Iterator[str]:
    """Yield possible names of long texts in a journal.

    The journal may be encrypted.
    """
    for entry in Journal(path, ()).poll().entries:
        for change in entry.changes:
            yield from _NAME.findall(json.dumps(change.data))
