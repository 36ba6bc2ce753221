"""`JournalStore`: journal, projection and search index of one agent, kept in step. Synchronous, for one thread.

Every write goes through here: lock, catch up, check, append, project. Backends differ in the index they are given.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.errors import BusyError, StorageError, UnknownIdError, ValidationError
from agent_memory.journal import GRACE, Change, Journal, Update
from agent_memory.models import (
    IDENTITY,
    Clock,
    Memory,
    SearchFilters,
    SearchResults,
    describe,
    utc_now,
)
from agent_memory.storage.answer import LOOKED_AT, answer_of, current_first
from agent_memory.storage.changes import difference, expired_before, lacking, lost_since, overlaid
from agent_memory.storage.compaction_policy import CompactionPolicy
from agent_memory.storage.conditions import check_question, filters_of, where_of
from agent_memory.storage.past import forgotten_with
from agent_memory.storage.projection import KIND, Projection
from agent_memory.storage.recency import Recency
from agent_memory.storage.vector.generations import describe_folder
from agent_memory.storage.worker import TURN_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import date, datetime, timedelta

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.files.layout import AgentFolder
    from agent_memory.journal import Entry, JournalWriter
    from agent_memory.retrieval import SearchIndex

MAX_RESULTS: Final = 100


class JournalStore:
    """The memories of one agent on disk and in this process.

    Args:
        folder: Where the files lie.
        index: Empty search index that this store will own.
        clock: Source of the present.
        grace: How long what was forgotten or replaced can be brought back.

    Attributes:
        changed_at: Memory id to the seq of its last change; accesses do not count. Gone memories stay listed.
    """

    def __init__(
        self, folder: AgentFolder, index: SearchIndex, clock: Clock = utc_now, grace: timedelta = GRACE
    ) -> None:
        self.folder = folder
        self.clock = clock
        # `Worker.write` has patience.
        self._journal = Journal(
            folder.journal, {KIND}, clock=clock, wait=TURN_SECONDS, grace=grace, look_where=folder.look_where
        )
        self._projection = Projection(folder.agent_id)
        self._index = index
        self._recency: dict[int, Recency] = {}  # by promotion threshold
        self._weight = CompactionPolicy(grace)
        self._rewritten = 0
        self._looked_on: date | None = None
        self._gone: list[Memory] | None = None
        self.changed_at: dict[str, int] = {}

    # -- reading ------------------------------------------------------------------------------------------------------

    def refresh(self) -> Projection:
        """Bring this process up to date with the file and return the projection.

        Raises:
            StorageError: The journal is there but cannot be read.
        """
        self._absorb(self._journal.poll())
        return self._projection

    def search(
        self,
        query: str,
        limit: int,
        filters: SearchFilters | Mapping[str, Any] | None,
        *,
        include_superseded: bool,
        explain: bool,
        vector: Vector | None = None,
    ) -> SearchResults:
        """See `MemoryStorage.search`; `vector` is what `meaning_of` returned for this query."""
        conditions = filters_of(filters)
        check_question(query, limit)
        if not 1 <= limit <= MAX_RESULTS:
            raise ValidationError(f"limit must lie between 1 and {MAX_RESULTS}, got {limit}.")
        projection, now = self.refresh(), self.clock()

        def allowed(memory: Memory) -> bool:
            return (
                conditions.admits(memory)
                and not memory.is_expired(now)
                and (include_superseded or projection.replaced_by(memory.id, now) is None)
            )

        # Asking about each of 5,000 candidates takes 1 to 2 ms; most searches have nothing to ask.
        everything = conditions == SearchFilters() and projection.hides_nothing
        with self._narrowed(conditions, allowed):
            ranking = self._index.search(
                query,
                limit=max(limit, LOOKED_AT) if include_superseded else limit,
                now=now,
                allowed=None if everything else allowed,
                where=where_of(conditions),
                explain=explain,
                vector=vector,
            )
        if include_superseded:
            ranking = current_first(ranking, lambda memory_id: projection.replaced_by(memory_id, now))
        return answer_of(ranking, projection.memories, limit, explain=explain)

    def list_recent(self, limit: int) -> list[Memory]:
        """See `MemoryStorage.list_recent`."""
        check_question("", limit)
        valid = self.refresh().valid(self.clock())
        valid.reverse()  # among equal times the last stored comes first; sorting is stable
        return sorted(valid, key=lambda memory: memory.timestamp, reverse=True)[:limit]

    def recent(self, count: int, promotion_threshold: int, admits: Callable[[Memory], bool]) -> list[Memory]:
        """See `MemoryStorage.recent`."""
        projection, now = self.refresh(), self.clock()
        order = self._recency.get(promotion_threshold)
        if order is None:
            order = self._recency[promotion_threshold] = Recency(promotion_threshold)
            order.update(projection.memories)

        def counts(memory_id: str) -> bool:
            memory = projection.memories[memory_id]
            return not memory.is_expired(now) and projection.replaced_by(memory_id, now) is None and admits(memory)

        return [projection.memories[memory_id] for memory_id in order.choose(count, counts)]

    def warm(self, at_most: int) -> bool:
        """Read the words of up to `at_most` memories, so that the first search need not; tell whether all are read."""
        self.refresh()
        return self._index.warm(at_most)

    def meaning_of(self, query: str) -> Vector | None:
        """Return the vector of a query, None without a model. Safe in any thread: a remote embedder takes its time."""
        return self._index.meaning_of(query, self.clock())

    def prune_vectors(self) -> None:
        """Drop cached vectors of texts that no memory has any more: a vector tells something of its text."""
        self.refresh()
        self._index.prune()
        self._gone = []

    def take_gone(self) -> list[Memory] | None:
        """Return what was forgotten here since the last call or pruning; None before the first pruning."""
        gone, self._gone = self._gone, self._gone and []
        return gone

    def health(self) -> dict[str, Any]:
        """See `MemoryStorage.health`."""
        self._absorb(self._journal.poll(thorough=True))
        problems = [f"line {problem.line}: {problem.reason}" for problem in self._journal.problems]
        problems += self._projection.complaints()
        if moved := self._journal.reversed:
            problems.append(f"line {moved[0]}: its number is lower than that of the line before; lines were moved")
        if self._journal.rewritten:
            problems.append(f"{self.folder.journal.name} was rewritten by another program; a copy was kept beside it")
        report: dict[str, Any] = {"status": "damaged" if problems else "ok"}
        if problems:
            report |= {"problems": len(problems), "first_problems": problems[:5]}
        return {**report, "notes": notes} if (notes := self._journal.notes) else report

    @property
    def rewritten(self) -> int:
        """How often another program was found to have rewritten the journal."""
        return self._journal.rewritten

    def watermark(self) -> tuple[str, int]:
        """Return (generation, seq) up to which this process has read."""
        return self._journal.watermark

    # -- writing ------------------------------------------------------------------------------------------------------

    def store(self, memory: Memory, *, unique: bool) -> str:
        """See `MemoryStorage.store`."""
        if memory.agent_id != self.folder.agent_id:
            raise ValidationError(
                f"A memory of agent {memory.agent_id!r} cannot be stored for {self.folder.agent_id!r}."
            )
        with self._writing() as writer:
            now, known = self.clock(), self._projection.memories
            if unique and (same := self._projection.same_text(memory.content, now)) is not None:
                return same.id
            if memory.id in known:
                if known[memory.id] == memory:
                    return memory.id
                raise ValidationError(f"The id {memory.id} is taken.", code="id_taken")
            if memory.supersedes and memory.supersedes not in known:
                raise UnknownIdError(f"There is no memory {memory.supersedes} to supersede; nothing was stored.")
            self._append(writer, [Change("put", KIND, memory.id, memory.to_record())])
            self._describe_folder()
        return memory.id

    def store_many(self, memories: Sequence[Memory]) -> None:
        """See `MemoryStorage.store_many`."""
        with self._writing() as writer:
            new = lacking(self.folder.agent_id, memories, self._projection.memories)
            if new:
                self._append(writer, [Change("put", KIND, each.id, each.to_record()) for each in new])
            self._describe_folder()

    def update(self, memory_id: str, changes: Mapping[str, Any]) -> Memory:
        """See `MemoryStorage.update`."""
        unknown = changes.keys() - Memory.model_fields.keys()
        if unknown or changes.keys() & IDENTITY:
            names = ", ".join(sorted(unknown | (changes.keys() & IDENTITY)))
            raise ValidationError(f"These fields cannot be changed: {names}.")
        with self._writing() as writer:
            before = self._require(memory_id)
            after = overlaid(before, changes)
            if after == before:
                return before
            target = after.supersedes
            if target != before.supersedes and target and target not in self._projection.memories:
                raise UnknownIdError(f"There is no memory {target} to supersede; nothing was changed.")
            if target and memory_id in {target, *self._projection.older_versions(target)}:
                raise ValidationError(f"{memory_id} cannot replace itself; nothing was changed.")
            if memory_id in self._projection.invalid:  # a patch upon a record that is wrong would be without effect
                change = Change("put", KIND, memory_id, after.to_record())
            else:
                change = Change("patch", KIND, memory_id, difference(before, after))
            self._append(writer, [change])
        return self._projection.memories[memory_id]

    def delete(self, memory_id: str) -> Memory:
        """See `MemoryStorage.delete`."""
        with self._writing() as writer:
            memory = self._require(memory_id)
            chain = [memory, *(self._require(each) for each in self._projection.older_versions(memory_id))]
            self._append(writer, [Change("delete", KIND, each.id) for each in chain])
        if self._gone is not None:
            self._gone += chain
        return memory

    def older_versions(self, memory_id: str) -> list[str]:
        """Return the ids that a memory replaced, directly or through others, newest first."""
        return self.refresh().older_versions(memory_id)

    def naming(self, memory_ids: Collection[str]) -> list[Entry]:
        """See `Journal.naming`; without ids, everything."""
        return self._journal.naming(memory_ids)

    def forgotten_with(self, memory_id: str) -> list[Memory]:
        """See `MemoryStorage.forgotten_with`."""
        known = self.refresh().memories
        taken = [] if memory_id in known else forgotten_with(self.folder.agent_id, memory_id, self._journal.naming)
        if not taken:
            raise UnknownIdError(
                f"{str(memory_id)[:40]!r} is no memory that was forgotten and can be brought back.",
                recovery="What was forgotten can be brought back for a time; after that its text is gone for good.",
            )
        return [memory for memory in taken if memory.id not in known]

    def touch(self, memory_ids: Collection[str]) -> None:
        """See `MemoryStorage.touch`."""
        with self._writing() as writer:
            known = [i for i in dict.fromkeys(memory_ids) if i in self._projection.memories]
            if known:
                self._append(writer, [Change("touch", KIND, memory_id) for memory_id in known])

    def compact(self, grace: timedelta | None = None) -> None:
        """See `MemoryStorage.compact`."""
        self._compact(grace)

    def compact_if_worthwhile(self) -> bool:
        """Compact once that pays, unless another process is at it or was faster; tell whether it did.

        Raises:
            StorageError: The files are as they were.
        """
        now = self.clock()
        if self._weight.pays(len(self._projection.memories), now) or self._has_ended(now):
            with contextlib.suppress(BusyError):  # the next write tries again
                self._compact(generation=self.watermark()[0])
                self.prune_vectors()
                return True
        return False

    def _compact(self, grace: timedelta | None = None, generation: str | None = None) -> None:
        until = self.clock() - (self._journal.grace if grace is None else grace)
        self._absorb(
            self._journal.compact(
                grace=grace,
                keep=self._refuse,
                generation=generation,
                ended=lambda put: put.kind == KIND and expired_before(put.data, until),
            )
        )

    def _has_ended(self, now: datetime) -> bool:
        """Tell whether a memory expired longer ago than the grace time; looks once a day."""
        if self._looked_on == now.date() or self._weight.is_of_today(now):
            return False
        self._looked_on = now.date()
        return self._projection.has_expired(now - self._journal.grace)

    def _narrowed(
        self,
        conditions: SearchFilters,  # noqa: ARG002 - for stores whose index can use them
        allowed: Callable[[Memory], bool],  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        return contextlib.nullcontext()

    def _refuse(self, change: Change) -> str | None:
        try:
            if change.kind == KIND:
                Memory.from_record(self.folder.agent_id, change.id, change.data)
        except pydantic.ValidationError as error:
            return describe(error)
        return None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[JournalWriter]:
        with self._journal.locked() as writer:
            self._absorb(writer.update)
            yield writer

    def _append(self, writer: JournalWriter, changes: list[Change]) -> None:
        self._absorb(Update([writer.append(changes)]))

    def _absorb(self, update: Update) -> None:
        known = self._projection.memories if update.reset and self._journal.rewritten > self._rewritten else {}
        self._rewritten = self._journal.rewritten
        if update.reset:
            self._replay_anew(update)
        elif update.entries:
            if self._weight.is_empty:
                self._weight.clear(self._journal.compacted_seq)
            self._count(update)
            self._file(self._projection.apply(update.entries))
        self._keep_lost(known)

    def _replay_anew(self, update: Update) -> None:
        """Replay a whole file, and tell the index what differs: most often somebody compacted and nothing does."""
        before = self._projection.memories
        self._projection.begin_again()
        self._weight.clear(self._journal.compacted_seq)
        self.changed_at.clear()
        self._count(update)
        self._projection.apply(update.entries)
        now = self._projection.memories
        self._file(dict.fromkeys(before.keys() - now.keys()))
        self._file({memory_id: memory for memory_id, memory in now.items() if before.get(memory_id) is not memory})

    def _count(self, update: Update) -> None:
        for entry in update.entries:
            self._weight.add(entry)
            self.changed_at |= {change.id: entry.seq for change in entry.changes if change.op != "touch"}

    def _file(self, changed: Mapping[str, Memory | None]) -> None:
        for order in self._recency.values():
            order.update(changed)
        for memory_id, memory in changed.items():
            if memory is None:
                self._index.remove(memory_id)
            else:
                self._index.put(memory)

    def _keep_lost(self, known: Mapping[str, Memory]) -> None:
        """Write down what this process knew and another program removed or changed: it was acknowledged once."""
        if lost := lost_since(known, self._projection.memories):
            with contextlib.suppress(StorageError):  # no room for it: the rewriting is reported all the same
                self._journal.keep_lost(lost)

    def _require(self, memory_id: str) -> Memory:
        memory = self._projection.memories.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"There is no memory {str(memory_id)[:40]!r}; nothing was changed.")
        return memory

    def _describe_folder(self) -> None:
        """Leave a note beside the journal. Under the lock, or it might replace what a migration has just written."""
        describe_folder(self.folder)
