"""What a storage offers to the layers above, whatever the backend and the kind of record: small protocols.

The contract suite in tests/contract holds each implementation to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from agent_memory.models.kind import R

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence
    from datetime import datetime, timedelta

    from agent_memory.models import Listing, ListPage, RecordCounts, RecordVersion, SearchRequest, Surroundings, Trace
    from agent_memory.store.answer import Answer
    from agent_memory.store.cleaning import Redacted
    from agent_memory.store.migration_plan import Built, Estimate, Progress
    from agent_memory.store.past import RecordChange, Taken
    from agent_memory.store.recency import Order
    from agent_memory.store.trouble import Trouble


class Reporting(Protocol):
    """What a storage says of itself.

    Attributes:
        agent_id: Whose records.
    """

    agent_id: str

    @property
    def backend(self) -> str:
        """What answers searches: `file`, `vector` or `server`."""

    def embedding_status(self) -> dict[str, Any]:
        """Return how search by embeddings stands.

        `status` is off, found (not loaded yet), loading, ready or failing; the rest says why.
        """

    def troubles(self) -> list[Trouble]:
        """Return what does not work as it could, without waiting for anything."""

    async def health(self) -> dict[str, Any]:
        """Return what is wrong with the files, in numbers and short sentences; `{"status": "ok"}` at best."""

    async def tally(self) -> RecordCounts:
        """Count the records."""


class Storage(Reporting, Protocol[R]):
    """One agent's records of one kind behind one interface.

    Asynchronous at this edge, synchronous below: each call runs in the storage's own worker thread, one at a time,
    reads and writes each in the order of the calls; a read does not wait for a write that waits for another process.
    A cancelled call still finishes; its result is dropped.

    Nothing gets past the redactor: what is stored or changed has its secrets taken out here, unless it is marked as
    `Redacted`.
    """

    async def answer(self, request: SearchRequest) -> Answer[R]:
        """Return the best matches, best first. Does not count as an access.

        Raises:
            StorageError: The records cannot be read.
        """

    async def store(self, record: R | Redacted[R], *, unique: bool = False) -> str:
        """Store a record without its secrets; durable when this returns.

        Args:
            record: What to keep; its `agent_id` must be this storage's.
            unique: Do not store a text that is already known; see `get_duplicate_key`.

        Returns:
            The id under which the text is now known: that of `record`, or with `unique` that of the one it repeats.

        Raises:
            ValidationError: The id is taken by another text, it supersedes an unknown record, or it is nothing but a
                secret.
            StorageError: Nothing was written.
        """

    async def store_many(self, records: Sequence[R | Redacted[R]]) -> None:
        """Keep records that are not there yet, as one change; what they supersede need not be there.

        For bringing back what was stored once: all of them are there afterwards, or none. A server takes some hundred
        at most: they travel in one request.

        Raises:
            ValidationError: One is another agent's, its id is taken by another text, or it would replace itself through
                others, or is nothing but a secret; nothing was stored.
            StorageError: Nothing was written, unless the message says that this is not known.
        """

    async def get(self, record_id: str) -> R | None:
        """Return one record, also a superseded or expired one, or None."""

    async def list_recent(self, limit: int = 10) -> list[R]:
        """Return the newest valid records, newest first."""

    async def recent(self, order: Order) -> list[R]:
        """Return what a scratchpad is chosen from, in the order of storing; more than that does no harm.

        Args:
            order: The scratchpad's rule. All pinned records that it admits are wanted, and as many of the others, by
                their moment, as it has places.
        """

    async def update(
        self, record_id: str, changes: Mapping[str, Any] | Redacted[dict[str, Any]], *, expect_seq: int | None = None
    ) -> R:
        """Change fields of a record; None gives a field its default again. Returns the record as it is now.

        Args:
            record_id: Which.
            changes: The new values.
            expect_seq: The number of the record's last change as the caller knows it (`RecordVersion.seq` of the last
                in `history`); where another one came after it, nothing is changed. Accesses do not count, but a
                compaction may give the record the number of one: then it is refused, too, and to be read again.

        Raises:
            ConflictError: The record's last change has another number.
            UnknownIdError: There is no such record.
            ValidationError: A field is unknown, cannot be changed, or its value is wrong; nothing was written.
            StorageError: Nothing was written.
        """

    async def delete(self, record_id: str) -> R:
        """Forget a record, together with the older versions that it replaced, and return it.

        Without them, forgetting a person's address would bring back the previous one.

        Raises:
            UnknownIdError: There is no such record.
            StorageError: Nothing was written.
        """

    async def touch(self, record_ids: Collection[str]) -> None:
        """Count one access for each id; unknown ids are skipped.

        Raises:
            StorageError: Nothing was written.
        """

    async def browse(self, listing: Listing) -> ListPage[R]:
        """Return a part of a list of records, and how long the whole list is; loads no others."""

    async def texts_of(self, record_ids: Collection[str]) -> dict[str, str]:
        """Return the texts of those of these records that are known, superseded and expired ones too."""

    def iter_all(self) -> AsyncIterator[R]:
        """Yield every record in the order of storing, as of the moment of the first step."""

    async def count(self) -> int:
        """Return how many records there are, superseded and expired ones included."""

    async def compact(self, grace: timedelta | None = None) -> None:
        """Drop what is no longer needed from the files.

        Args:
            grace: What was forgotten or replaced longer ago than this goes for good; the storage's own time (30 days)
                when omitted. With `timedelta(0)` nothing can be brought back afterwards.

        Raises:
            StorageError: The files are as they were.
        """

    async def close(self) -> None:
        """Finish what is under way; close files and threads. May be called more than once.

        What is stored after that gets its vectors in the next storage that is opened.
        """


class Versioned(Storage[R], Protocol[R]):
    """A storage that keeps the past: what replaced what, what records said before, and what was forgotten."""

    @property
    def grace(self) -> timedelta | None:
        """How long at least the text of what is forgotten stays and can be brought back; None: not at all."""

    async def last_change(self) -> str | None:
        """Return when a record was last stored, changed or forgotten, UTC as text; None if none was, or long ago.

        Accesses do not count.
        """

    async def superseded(self) -> dict[str, str]:
        """Return which records are replaced: id to the id of the record that replaces it."""

    async def replaced_by(self, record_ids: Collection[str]) -> dict[str, str]:
        """Do as `superseded` for some records alone."""

    async def surroundings(self, record_ids: Collection[str], group: str | None = None) -> dict[str, Surroundings]:
        """Return what is told of those of some records that are known, besides themselves: links, and doubts.

        With a group, without what belongs to another one.
        """

    async def older_versions(self, record_id: str) -> list[str]:
        """Return the ids that a record replaced, directly or through others, newest first."""

    async def history(self, record_id: str) -> list[RecordVersion[R]]:
        """Return the versions of a record that are still known, oldest first; empty for an id that is not known.

        Also of one that was forgotten, as long as its text is there. Accesses are no versions.

        Raises:
            UnsupportedError: This storage keeps no versions.
            StorageError: They cannot be read.
        """

    async def load_changes(self, record_ids: Collection[str]) -> list[RecordChange[R]]:
        """Return the changes of some records that are still known, oldest first.

        Raises:
            UnsupportedError: This storage keeps no versions.
            StorageError: They cannot be read.
        """

    async def forgotten_with(self, record_id: str) -> list[R]:
        """Return what forgetting a record took, as it was before: itself first, then the versions it had replaced.

        `store_many` brings them back. What is there again by now is left out.

        Raises:
            UnknownIdError: It was not forgotten, or so long ago that its text is gone for good.
            UnsupportedError: This storage keeps nothing of what was forgotten.
            StorageError: They cannot be read.
        """

    async def forgotten(self) -> list[tuple[R, datetime]]:
        """Return all that was forgotten and can be brought back, as it was, and when; the last first.

        Raises:
            UnsupportedError: This storage keeps nothing of what was forgotten.
            StorageError: It cannot be read.
        """

    async def was_forgotten(self, text: str) -> bool:
        """Tell whether this text was stored once, was forgotten, and stands in the log still."""

    async def forgotten_among(self, texts: Collection[str]) -> set[str]:
        """Return those of these texts for which `was_forgotten` holds."""


class Releasing(Versioned[R], Protocol[R]):
    """A storage that forgets several records as one change, and keeps a trace of what was released for a reason."""

    async def forget_many(self, gone: Collection[str], *, reason: str = "") -> list[R]:
        """Forget records and the older versions they replaced, as one change.

        Args:
            gone: IDs of records to forget.
            reason: Why, kept without secrets as a trace of each record; empty leaves no trace.

        Returns:
            The forgotten records as they were, each with its older versions after it.

        Raises:
            UnknownIdError: There is no such record.
            StorageError: Nothing was written.
        """

    async def update_many(self, changes: Mapping[str, Mapping[str, Any]]) -> None:
        """Change fields of several records as one change.

        Args:
            changes: New values by record ID, as of `Storage.update`.

        Raises:
            UnknownIdError: One of the records does not exist; nothing was changed.
            ValidationError: A value is wrong; nothing was changed.
            StorageError: Nothing was changed.
        """

    async def move_out(self, records: Sequence[R], to: str, *, whole: bool = True) -> list[str]:
        """Take records out that another journal of the folder has as they are; that is no forgetting.

        One that is not here exactly as it is given stays.

        Args:
            records: As the other journal has them, on disk.
            to: Its name.
            whole: One also stays without which an older record would count again that is not to go, or that is
                replaced by one that is not to go.

        Returns:
            The ids of those that are out, in their order.

        Raises:
            StorageError: Nothing was written.
        """

    async def taken_with(self, record_id: str) -> Taken[R]:
        """Return what the change took that last forgot a record or clauses of it; nothing where that is not known."""

    async def traces(self) -> list[Trace]:
        """Return what stays of records that were released, the last first."""

    async def add_traces(self, traces: Sequence[Trace]) -> int:
        """Add traces of records that are neither here nor have one; return how many were added.

        Raises:
            StorageError: Nothing was written.
        """

    async def released(self, text: str) -> Trace | None:
        """Return the last trace of a record with this text (ignoring case, width and white space), or None."""


class Movable(Protocol):
    """What can be moved to the vector engine and back, or says why not."""

    @property
    def can_migrate(self) -> bool:
        """Whether this agent can be moved to the vector engine and back while it is in use."""

    async def estimate(self) -> Estimate:
        """Return what `migrate` would take.

        Raises:
            ConfigurationError: This storage cannot be moved.
            StorageError: The records cannot be read.
        """

    async def migrate(self, progress: Progress | None = None) -> Built:
        """Build an index and answer from it from then on; stores and searches go on meanwhile.

        Args:
            progress: Called with the progress made so far.

        Raises:
            ConfigurationError: This storage cannot be moved.
            BusyError: Another process is building.
            EmbeddingError: The embedder fails; the backend is what it was.
            MigrationError: It failed; the backend is what it was.
            StorageError: The records cannot be read.
        """

    async def migration_begun(self) -> bool:
        """Tell whether a migration was begun, here or in an earlier session, and has neither ended nor failed."""

    async def note_migration(self, *, begun: bool) -> None:
        """Note that a migration has begun, or has come to an end; what cannot be noted costs nothing else."""

    async def rollback(self) -> bool:
        """Answer from the files alone again; tell whether that was not so already.

        Raises:
            ConfigurationError: This storage cannot be moved.
            StorageError: Nothing has changed.
        """


class Upkeep(Movable, Protocol):
    """What a backend needs with its records: an index that is opened, kept and built behind searches and writes.

    Attributes:
        backend: `file`, `vector` or `server`: where searches find their candidates.
    """

    backend: str

    def before_search(self) -> None:
        """See to the index in the background, unless that was done a moment ago."""

    def after_write(self) -> None:
        """See to the index in the background, unless that is being done."""

    def after_compaction(self) -> None:
        """Remove what was made of texts that are gone from the log now. Blocking."""

    def health(self) -> dict[str, Any]:
        """Return what a report of health should say besides."""

    def troubles(self) -> list[Trouble]:
        """Return what does not work as it could."""

    async def close(self) -> None:
        """Close the index; the next search opens it again."""
