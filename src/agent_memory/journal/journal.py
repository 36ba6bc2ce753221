"""`Journal`: append-only file of changes.

Any number of processes append to it and read it. Owns the append protocol: lock, open by path, repair a torn tail,
catch up, write, sync, unlock. Knows operations and kinds by name, and no model of a record.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.errors import StorageError
from agent_memory.files.atomic import remove_leftovers, translated
from agent_memory.files.entries import list_names, shared_file_system
from agent_memory.files.exchange import is_settled
from agent_memory.files.lock import WAIT_SECONDS, finish_settled, folder_lock
from agent_memory.files.names import COPIES, JOURNAL
from agent_memory.journal.agent_file import (
    JournalState,
    check_present,
    note_journal,
    note_returned,
    read_header_at,
    read_states,
)
from agent_memory.journal.codec import AS_IT_STANDS, Codec, build_newer_error, describe_newer
from agent_memory.journal.compaction import (
    CompactionResult,
    FoldRules,
    find_first_young,
    fold_encrypted,
    fold_entries,
    remove_records,
)
from agent_memory.journal.purge_filter import is_returned
from agent_memory.journal.purge_list import PurgeList
from agent_memory.journal.reader import JournalReader, JournalUpdate, is_put_back
from agent_memory.journal.rewrite import JournalRewrite, RewritePlan, open_rewrite
from agent_memory.journal.writer import JournalFile, JournalWriter, LockedJournal
from agent_memory.logs import get_logger
from agent_memory.models import Clock, to_text, utc_now

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from agent_memory.journal.format import Change, Entry

log = get_logger(__name__)

_SHOWN: Final = 5
GRACE: Final = timedelta(days=30)
"""Default age up to which replaced and deleted versions stay, for `why`, undo and restore."""


class Journal:
    """Append-only file of changes to records.

    Not thread-safe: its owner serializes calls. Processes need only the folder's lock.

    Args:
        path: Path such as `…/bob/memories.yaml`; created, with its folder, by the first append.
        kinds: Record kinds that the owner replays. Compaction folds these and leaves every other line alone.
        codec: Codec of the fields; found by header and loaded keys when omitted. With `AS_IT_STANDS` an encrypted
            journal can only be compacted.
        clock: Source of the time of entries.
        wait: Seconds to wait for the lock before `BusyError`.
        grace: How long replaced and deleted versions stay.
        sync: Syncs an open file, instead of the system's call.
        look_where: Called before reading and writing; raises a `StorageError` if the place is forbidden.

    Attributes:
        reader: Reader of the present file: header, damaged and moved lines, rewrites.
    """

    def __init__(  # noqa: PLR0913 - each by its name
        self,
        path: Path,
        kinds: Collection[str],
        *,
        codec: Codec | None = None,
        clock: Clock = utc_now,
        wait: float = WAIT_SECONDS,
        grace: timedelta = GRACE,
        look_where: Callable[[], None] | None = None,
        sync: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self.kinds = frozenset(kinds)
        self._clock = clock
        self._wait = wait
        self.grace = grace
        self._look_where = look_where or (lambda: None)
        self._codec = codec
        self.reader = JournalReader(path, codec=codec)
        self._file = JournalFile(self.reader, wait, self._take, sync)
        self._held: LockedJournal | None = None
        self._checked_tail = False
        self._generation = ""
        self._undelivered = JournalUpdate()

    @property
    def watermark(self) -> tuple[str, int]:
        """Generation and number up to which this object has read."""
        return self.reader.watermark

    @property
    def notes(self) -> list[str]:
        """Warnings about files in the folder, one sentence each."""
        notes = []
        if self.reader.header is not None and self.reader.too_new:
            notes.append(f"{describe_newer(self.path.name, self.reader.header)}, so it is only read here.")
        kind = shared_file_system(self.path.parent)
        if kind is not None:
            notes.append(
                f"The folder is on a file system that other machines may share ({kind}); use it from one at a time."
            )
        copies, lost = (list_names(self.path.parent, *sorts) for sorts in (COPIES, ("lost",)))
        if copies:
            notes.append(
                f"{', '.join(copies[:_SHOWN])}: not ours, perhaps conflict copies of a cloud service; nothing in them "
                "is used. Look for what is missing, then remove them."
            )
        if lost:
            notes.append(
                f"{', '.join(lost[:_SHOWN])}: memories as they were before another program removed or changed them in "
                f"{self.path.name}. `agent-memory import --trusted FILE` brings back what is missing; then remove it."
            )
        return notes

    def poll(self, *, thorough: bool = False, most: int | None = None) -> JournalUpdate:
        """Return changes since the last call, without the lock.

        Args:
            thorough: Read the whole file again, to detect changes in place by other programs. Otherwise only size, date
                and the first, last and one other block are compared.
            most: Return the lines of about so many bytes; the next call continues.

        Raises:
            StorageError: The file cannot be read, or its place is forbidden.
        """
        self._look_where()
        if is_settled(self.path.parent):
            with contextlib.suppress(StorageError):  # who has the lock finishes it; what can be read here still is
                finish_settled(self.path.parent)
        self._take(self.reader.poll(thorough=thorough, most=most))
        if most is None and not self._checked_tail:
            self._checked_tail = True
            self._recover_tail()
        return self._deliver()

    def naming(self, record_ids: Collection[str]) -> list[Entry]:
        """Return all entries about some records, and perhaps more.

        Reads the whole file (1 GB a second or so), decodes what names them, and moves nothing.

        Raises:
            StorageError: The file is there but cannot be read.
        """
        ids = [record_id.encode("utf-8", "surrogatepass") for record_id in record_ids]
        return JournalReader(self.path, ids, self._codec).poll().entries

    @contextlib.contextmanager
    def hold(self, wait: float | None = None) -> Iterator[None]:
        """Hold the lock for the block, in any thread.

        Args:
            wait: Seconds, instead of this object's own.

        Raises:
            BusyError: The lock was not to be had in time.
            StorageError: The file cannot be opened.
        """
        self._look_where()
        with self._file.held(wait) as held:
            self._held = held
            try:
                yield
            finally:
                self._held = None

    @contextlib.contextmanager
    def locked(self, wait: float | None = None) -> Iterator[JournalWriter]:
        """Append like `appending`, then wait for the sync.

        Raises:
            StorageError: As `appending`; and with the code `unknown` where the sync failed.
        """
        with self.appending(wait) as writer:
            yield writer
        if writer.receipt is not None:
            writer.receipt.settle()

    @contextlib.contextmanager
    def appending(self, wait: float | None = None) -> Iterator[JournalWriter]:
        """Hold lock and open file for the block, after catching up.

        Entries written or read are durable once `writer.receipt`, set at the end of the block, is settled.

        Raises:
            BusyError: The lock was not free in time.
            ReadOnlyError: The folder forbids writing, or the journal is of a newer format.
            StorageError: The file cannot be opened or repaired.
        """
        with contextlib.nullcontext() if self._held else self.hold(wait), translated(self.path, "write"):
            held = self._held
            assert held is not None
            self._take(self.reader.poll_open(held.descriptor))
            if self.reader.header is not None and self.reader.too_new:
                raise build_newer_error(self.path.name, self.reader.header)
            if is_put_back(self.reader) and self.reader.header is not None:
                note_returned(self.path, self.reader.header, self.reader.last_seq)
            self._file.mend_tail(held.descriptor, to_text(self._clock()))
            self._file.sweep(held.lock)
            writer = JournalWriter(self.reader, held, self._clock, self._deliver(), self._file.proof)
            yield writer
            writer.close()

    def compact(
        self,
        *,
        grace: timedelta | None = None,
        keep: Callable[[Change], str | None] | None = None,
        by_number: bool = False,
        ended: Callable[[Change], bool] | None = None,
    ) -> JournalUpdate:
        """Compact the journal: `prepare_compaction`, then `put_in_place`.

        Returns:
            Update for the owner, as the next poll would return.
        """
        with self.prepare_compaction(grace=grace, keep=keep, by_number=by_number, ended=ended) as new:
            self.put_in_place(new)
        return self.poll()

    def prepare_compaction(
        self,
        *,
        grace: timedelta | None = None,
        keep: Callable[[Change], str | None] | None = None,
        by_number: bool = False,
        ended: Callable[[Change], bool] | None = None,
        apart: Collection[int] = (),
        words: Collection[str] = (),
    ) -> AbstractContextManager[JournalRewrite]:
        """Write a new version without superseded entries older than `grace`.

        Takes seconds with many memories, and no lock. Without `put_in_place` in the block nothing is changed.

        Args:
            grace: Age up to which deleted and replaced versions stay; this journal's when omitted.
            keep: Returns why a `put` is unreadable, which moves its line to the rejected file, or None.
            by_number: Sort the entries by number first: another program has moved lines.
            ended: Returns True if a record, given as a `put`, expired longer ago than its owner keeps it.
            apart: Numbers of checkpoints, as in `FoldRules`.
            words: Names of text fields, as in `FoldRules`.

        Without a key (`AS_IT_STANDS`) `keep`, `ended` and `words` are ignored.

        Raises:
            BusyError: Another process is compacting.
            StorageError: The new file could not be written.
        """
        now, limit = self._clock(), self.grace if grace is None else grace
        rules = FoldRules(self.kinds, keep, ended, apart, words)

        def fold(entries: Sequence[Entry], codec: Codec) -> CompactionResult:
            young = find_first_young(entries, now, limit)
            if codec is AS_IT_STANDS:
                return fold_encrypted(entries, young, rules)
            return fold_entries(entries, young, rules, codec)

        self._look_where()
        self._file.begin()
        judge = None if self._codec is AS_IT_STANDS else keep
        return open_rewrite(self.path, RewritePlan(fold, judge, by_number, self._codec), self._wait)

    def prepare_purge(
        self,
        record_ids: Collection[str],
        hide: Callable[[str], str] = lambda text: text,
        *,
        words_alone: bool = False,
    ) -> AbstractContextManager[JournalRewrite]:
        """Write a new version without some records, as `prepare_compaction` does.

        Nothing else is folded, so other forgotten records can still be restored. Readers read the new file from its
        begin.

        Args:
            record_ids: IDs of records to remove.
            hide: Hides purged words, as in `remove_records`.
            words_alone: Only hide words, as in `remove_records`.

        Raises:
            BusyError, StorageError: As `prepare_compaction` raises.
            UnsupportedError: A newer version wrote a line about one of the records.
        """
        self._look_where()
        self._file.begin()

        def folding(entries: Sequence[Entry], codec: Codec) -> CompactionResult:
            return remove_records(entries, record_ids, hide, codec, words_alone=words_alone)

        new = RewritePlan(folding, None, by_number=False, codec=self._codec, with_purged=True)
        return open_rewrite(self.path, new, self._wait)

    def put_in_place(self, new: JournalRewrite) -> None:
        """Replace the journal by a new version, with lines appended since.

        Takes milliseconds. Records that are gone for good leave the quarantine files too, see `salvage`. The next poll
        returns changes of others, or a reset with every entry.

        Raises:
            BusyError: The lock was not free in time, or another process was faster; nothing was changed.
            StorageError: The old file is in place.
        """
        with self.appending() as writer, translated(self.path, "compact"):
            self._take(writer.update)  # the owner gets it from the poll below, or from a later one on failure
            new.put_in_place(writer.held, to_text(self._clock()))
            writer.is_settled = True
            remove_leftovers(self.path.parent, self.path.name)

    def _take(self, update: JournalUpdate) -> None:
        """Keep an update until the owner gets it.

        The reader has moved on, and an error may come in between.
        """
        generation = self.reader.watermark[0]
        if update.reset or (self._generation and generation != self._generation):
            self._file.proof.forget()  # a compacted file may have the inode of one that it was compacted from
        self._generation = generation
        self._undelivered = self._undelivered.followed_by(update)

    def _deliver(self) -> JournalUpdate:
        update, self._undelivered = self._undelivered, JournalUpdate()
        return update

    def _recover_tail(self) -> None:
        """Read a whole last line that lacks only its newline."""
        try:
            if not self.path.exists() or self.path.stat().st_size <= self.reader.offset:
                return
            with self.locked(wait=0) as writer:
                self._take(writer.update)
        except StorageError:
            return  # another process writes, or the file is read-only: the whole lines have been read already


def rewrite_returned(journals: Iterable[Path]) -> list[Path]:
    """Rewrite put-back journals without purged text; return their paths.

    Raises:
        BusyError: Another process compacts or writes one of them.
        StorageError: One cannot be read or written.
    """
    returned = [path for path in journals if is_returned(path)]
    for path in returned:
        journal = Journal(path, ())
        with journal.prepare_compaction() as new:
            journal.put_in_place(new)
    return returned


def note_current(journal: Journal, count: int | None) -> None:
    """Record a journal as current unless put back; never raises.

    Args:
        journal: The journal, as it was last read.
        count: How many records it has; unknown when None.
    """
    reader, path = journal.reader, journal.path
    _note_purges(path.parent)
    header = reader.header
    if header is None or reader.withheld or (is_put_back(reader) and reader.read.begin):
        return
    state = (read_states(path.parent) or {}).get(path.name)
    if state is not None and not state.follows(header, reader.last_seq):
        return
    if state == JournalState(header.generation, reader.last_seq, count):
        return
    with contextlib.suppress(StorageError), folder_lock(path.parent, 0):
        if (present := read_header_at(path)) is not None and present.generation == header.generation:
            note_journal(path, header, reader.last_seq, count)


def _note_purges(folder: Path) -> None:
    """Record the purge list's length, if an earlier version did not."""
    purges = PurgeList(folder)
    with contextlib.suppress(StorageError):
        if purges.read().purges and not purges.is_noted:
            with folder_lock(folder, 0):
                purges.note()


def check_all_present(folder: Path) -> None:
    """Check that no journal is missing and the purge list is usable.

    Raises:
        StorageError: A journal is missing (`journal_missing`), or the list or its key (`purge_list`, `purge_key`).
    """
    PurgeList(folder).check_key()
    for name in sorted({JOURNAL, *(read_states(folder) or ())}):
        check_present(folder / name)
