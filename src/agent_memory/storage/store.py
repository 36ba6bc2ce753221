"""`JournalStore`: journal, projection and search index of one agent, kept in step. Synchronous, for one thread.

Every write goes through here: lock, catch up, check, append, project. Backends differ in the index they are given.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import pydantic

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.journal import GRACE, Change, Journal, Update
from agent_memory.journal.files import replace_file
from agent_memory.models import (
    Clock,
    Memory,
    MemorySearchResult,
    SearchFilters,
    SearchResults,
    record_of,
    to_text,
    utc_now,
)
from agent_memory.storage.conditions import where_of
from agent_memory.storage.projection import KIND, Projection, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager

    from agent_memory.embeddings.protocol import Vector
    from agent_memory.journal import JournalWriter
    from agent_memory.retrieval import SearchIndex
    from agent_memory.storage.folder import AgentFolder

SCHEMA: Final = 1
_FIXED_FIELDS: Final = frozenset({"id", "agent_id", "timestamp", "created_by_session"})
# Fold the journal once this many lines could go and they outnumber the memories: rare enough to cost nothing.
_COMPACT_AT: Final = 1000


class JournalStore:
    """The memories of one agent on disk and in this process.

    Args:
        folder: Where the files lie.
        index: Empty search index that this store will own.
        clock: Source of the present.

    Attributes:
        changed_at: Memory id to the seq of its last change; accesses do not count. Gone memories stay listed.
    """

    def __init__(self, folder: AgentFolder, index: SearchIndex, clock: Clock = utc_now) -> None:
        self.folder = folder
        self.clock = clock
        self._journal = Journal(folder.journal, {KIND}, clock=clock)
        self._projection = Projection(folder.agent_id)
        self._index = index
        self._touches = self._aged = 0
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
        if not 1 <= limit <= 100:  # noqa: PLR2004 - the documented range
            raise ValidationError(f"limit must lie between 1 and 100, got {limit}.")
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
                limit=limit,
                now=now,
                allowed=None if everything else allowed,
                where=where_of(conditions),
                explain=explain,
                vector=vector,
            )
        results = [
            MemorySearchResult(
                memory=projection.memories[hit.memory_id],
                relevance_score=hit.score,
                match_type=hit.match_type,
                parts=hit.parts,
            )
            for hit in ranking.hits
        ]
        rejected = [{"id": r.memory_id, "reason": r.reason, "parts": r.parts} for r in ranking.rejected]
        return SearchResults(results, total_found=ranking.total_found, mode=ranking.mode, rejected=rejected)

    def list_recent(self, limit: int) -> list[Memory]:
        """See `MemoryStorage.list_recent`."""
        valid = self.refresh().valid(self.clock())
        valid.reverse()  # among equal times the last stored comes first; sorting is stable
        return sorted(valid, key=lambda memory: memory.timestamp, reverse=True)[:limit]

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

    def health(self) -> dict[str, Any]:
        """See `MemoryStorage.health`."""
        projection = self.refresh()
        problems = [f"line {problem.line}: {problem.reason}" for problem in self._journal.problems]
        problems += [f"{memory_id}: {reason}" for memory_id, reason in projection.invalid.items()]
        if self._journal.rewritten:
            problems.append(f"{self.folder.journal.name} was rewritten by another program; a copy was kept beside it")
        report: dict[str, Any] = {"status": "damaged" if problems else "ok"}
        return {**report, "problems": len(problems), "first_problems": problems[:5]} if problems else report

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

    def update(self, memory_id: str, changes: Mapping[str, Any]) -> Memory:
        """See `MemoryStorage.update`."""
        unknown = changes.keys() - Memory.model_fields.keys()
        if unknown or changes.keys() & _FIXED_FIELDS:
            names = ", ".join(sorted(unknown | (changes.keys() & _FIXED_FIELDS)))
            raise ValidationError(f"These fields cannot be changed: {names}.")
        with self._writing() as writer:
            before = self._require(memory_id)
            after = _overlaid(before, changes)
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
                change = Change("patch", KIND, memory_id, _difference(before, after))
            self._append(writer, [change])
        return self._projection.memories[memory_id]

    def delete(self, memory_id: str) -> Memory:
        """See `MemoryStorage.delete`."""
        with self._writing() as writer:
            memory = self._require(memory_id)
            chain = [memory_id, *self._projection.older_versions(memory_id)]
            self._append(writer, [Change("delete", KIND, each) for each in chain])
        return memory

    def older_versions(self, memory_id: str) -> list[str]:
        """Return the ids that a memory replaced, directly or through others, newest first."""
        return self.refresh().older_versions(memory_id)

    def touch(self, memory_ids: Collection[str]) -> None:
        """See `MemoryStorage.touch`."""
        with self._writing() as writer:
            known = [i for i in dict.fromkeys(memory_ids) if i in self._projection.memories]
            if known:
                self._append(writer, [Change("touch", KIND, memory_id) for memory_id in known])

    def compact(self) -> None:
        """See `MemoryStorage.compact`."""
        self._absorb(self._journal.compact(keep=self._refuse))

    def compact_if_worthwhile(self) -> None:
        """Compact once enough lines could go: accesses that add up, and what is older than the grace time and replaced.

        After a compaction there are at most as many of them as memories, so this never runs twice for nothing.

        Raises:
            StorageError: The files are as they were.
        """
        live = len(self._projection.memories)
        if self._touches + max(0, self._aged - live) > max(_COMPACT_AT, live):
            self.compact()

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
        if update.reset:
            self._projection.clear()
            self._index.clear()
            self._touches = self._aged = 0
            self.changed_at.clear()
        if not update.entries:
            return
        cutoff = to_text(self.clock() - GRACE)
        for entry in update.entries:
            if entry.changes and all(change.op == "touch" for change in entry.changes):
                self._touches += 1
            elif entry.at < cutoff:
                self._aged += 1
            self.changed_at |= {change.id: entry.seq for change in entry.changes if change.op != "touch"}
        for memory_id, memory in self._projection.apply(update.entries).items():
            if memory is None:
                self._index.remove(memory_id)
            else:
                self._index.put(memory)

    def _require(self, memory_id: str) -> Memory:
        memory = self._projection.memories.get(memory_id)
        if memory is None:
            raise UnknownIdError(f"There is no memory {str(memory_id)[:40]!r}; nothing was changed.")
        return memory

    def _describe_folder(self) -> None:
        """Leave a note for people and other versions beside the journal; derived, so a failure costs nothing."""
        if not self.folder.metadata.exists():
            note = {"schema": SCHEMA, "backend": "file", "journal": self.folder.journal.name}
            with contextlib.suppress(OSError):
                replace_file(self.folder.metadata, json.dumps(note, indent=2).encode() + b"\n", durable=False)


def filters_of(filters: SearchFilters | Mapping[str, Any] | None) -> SearchFilters:
    """Return checked filters.

    Raises:
        ValidationError: Names the field and the rule.
    """
    if isinstance(filters, SearchFilters):
        return filters
    try:
        return SearchFilters.model_validate(dict(filters or {}))
    except (pydantic.ValidationError, TypeError, ValueError) as error:
        reason = describe(error) if isinstance(error, pydantic.ValidationError) else str(error)
        raise ValidationError(f"The filters are wrong: {reason}.", code="invalid_filter") from None


def _overlaid(memory: Memory, changes: Mapping[str, Any]) -> Memory:
    values = memory.model_dump()
    for field, value in changes.items():
        if value is None:
            values.pop(field)
        else:
            values[field] = value
    try:
        return Memory.model_validate(values)
    except pydantic.ValidationError as error:
        raise ValidationError(f"Nothing was changed: {describe(error)}.") from None


def _difference(before: Memory, after: Memory) -> dict[str, Any]:
    """Return the patch that leads from one to the other: None removes a field, which then has its default."""
    old, new = before.to_record(), after.to_record()
    return record_of({key: new.get(key) for key in old.keys() | new.keys() if old.get(key) != new.get(key)})
