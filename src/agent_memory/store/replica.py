"""`Replica`: log, state and search index of one agent's records of one kind, kept in step. For one thread.

Every write goes through here: catch up, decide, append, absorb. What differs between backends is the log and the index.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agent_memory.errors import StorageError
from agent_memory.models import Clock, utc_now
from agent_memory.models.kind import R
from agent_memory.store.answer import LOOKED_AT, Answer, answer_of, as_it_was, current_first, with_successors
from agent_memory.store.changes import lost_since, to_forget, to_store, to_store_many, to_update
from agent_memory.store.state import State, snapshot
from agent_memory.store.surroundings import surroundings_of
from agent_memory.times import named_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.index import Question, SearchIndex
    from agent_memory.index.sealed_rows import Masks
    from agent_memory.journal import Change, Update
    from agent_memory.models import Kind, SearchRequest
    from agent_memory.store.change_log import Absorb, ChangeLog
    from agent_memory.store.sealed_records import SealedRecords

T = TypeVar("T")


class Replica(Generic[R]):
    """The records of one kind, as this process holds them.

    Args:
        kind: Of which kind.
        agent_id: Whose.
        log: What keeps their changes.
        index: Empty search index that this store will own.
        clock: Source of the present.
        sealed: Records before those that the log tells of, which the index knows; None where it tells of all.
        unembedded: Those of them that are to be embedded.

    Attributes:
        kind, log, index, clock: As given.
        state: As of the last look at the log.
        asked_for_vectors: Whether those of everything that is sealed without were asked for.
    """

    def __init__(
        self,
        kind: Kind[R],
        agent_id: str,
        log: ChangeLog,
        index: SearchIndex,
        clock: Clock = utc_now,
        sealed: SealedRecords[R] | None = None,
        unembedded: Iterable[R] = (),
    ) -> None:
        self.kind = kind
        self.log = log
        self.index = index
        self.clock = clock
        self.state = State(kind, agent_id, sealed)
        self._unembedded = iter(unembedded)
        self._embedded: list[str] = []  # those whose vectors the index holds, or held
        self.asked_for_vectors = False
        self._rewritten = 0
        self._gone: list[R] | None = None

    # -- reading ------------------------------------------------------------------------------------------------------

    def refresh(self) -> State[R]:
        """Bring this process up to date with the log and return the state.

        Raises:
            StorageError: The log cannot be read.
        """
        self._absorb(self.log.poll())
        return self.state

    def parse_question(self, request: SearchRequest) -> Question:
        """Return a request's text, parsed with the names that are known now."""
        self.refresh()
        return self.index.parse_question(request)

    def search(self, request: SearchRequest, question: Question | None = None) -> Answer[R]:
        """See `Storage.search`; `question` is the request's text, parsed and embedded."""
        state, now = self.refresh(), request.now
        periods = named_periods(request.text, now) if state.replacements and not request.include_superseded else ()
        past = [period for period in periods if period.is_over(now)]
        superseded = bool(state.replacements) and (request.include_superseded or request.text.strip() != "")

        def replaced_by(record_id: str) -> str | None:
            return state.replacements.of(record_id, now)

        def hides(record_id: str) -> bool:
            return state.records[record_id].is_expired(now) or (not superseded and replaced_by(record_id) is not None)

        ranking = self.index.search(
            replace(request, limit=max(request.limit, LOOKED_AT) if superseded else request.limit),
            question,
            hides=hides if state.replacements or state.expiring else None,
            among=shown_rows(state, now, superseded=superseded),
        )
        if past:
            ranking = as_it_was(ranking, past, replaced_by, lambda one: state.records[one].moment)
        elif request.include_superseded:
            ranking = current_first(ranking, replaced_by)
        elif superseded:
            admits, explain = request.filters.admits, request.explain
            ranking = with_successors(
                ranking, replaced_by, lambda record_id: admits(state.records[record_id]), explain=explain
            )
        answer = answer_of(ranking, state.records, request, looks_back=bool(past))
        around = tuple([surroundings_of(state, record, now, request.filters.group) for record in answer.records])
        return replace(answer, surroundings=around)

    def warm(self, at_most: int) -> bool:
        """Read the words of up to `at_most` records, so that the first search need not; tell whether all are read."""
        if self.log.is_near:
            self.refresh()
        some = list(islice(self._unembedded, at_most))
        for record in some:
            self._embedded.append(record.id)
            self.index.embed_sealed(self.kind.document(record))
        self.asked_for_vectors = len(some) < at_most
        return self.index.warm(at_most) and not some

    def adopt(self, sealed: SealedRecords[R], index: SearchIndex, unembedded: Iterable[R]) -> None:
        """Take new segments into use.

        Args:
            sealed: Their records; all their changes are known here.
            index: Empty but for these, with the vectors of the index so far.
            unembedded: Those of them that are to be embedded.
        """
        vectors, corpus = index.vectors, index.corpus.sealed
        gone = self.state.adopt(sealed)
        if vectors is not None and corpus is not None:
            # What is held of a record is found beside what is sealed of it, as if there were two.
            held = [one for one in self._embedded if one not in self.state.table.records]
            self._embedded = [one for one in held if not corpus.has_vectors(one)]
            for record_id in [*gone, *set(held).difference(self._embedded)]:
                vectors.remove(record_id)
        self._unembedded, self.asked_for_vectors = iter(unembedded), False
        index.keep_order(self.state.table.records)
        for _, document in self.state.columns(self.state.table.records):
            if document is not None:
                index.put(document)
        self.index = index

    def health(self) -> dict[str, Any]:
        """See `Storage.health`."""
        self._absorb(self.log.poll(thorough=True))
        problems, notes = self.log.report()
        problems += [f"{record_id}: {reason}" for record_id, reason in self.state.table.invalid.items()]
        problems += self.state.replacements.complaints()
        report: dict[str, Any] = {"status": "damaged" if problems else "ok"}
        if problems:
            report |= {"problems": len(problems), "first_problems": problems[:5]}
        return {**report, "notes": notes} if notes else report

    # -- writing ------------------------------------------------------------------------------------------------------

    def store(self, record: R, *, unique: bool) -> str:
        """Keep a record; return the id under which its text is known. See `MemoryStorage.store`."""
        return self.log.commit(self._absorb, lambda: to_store(self.state, record, self.clock(), unique=unique))

    def store_many(self, records: Sequence[R]) -> None:
        """See `Storage.store_many`."""
        self.log.commit(self._absorb, lambda: to_store_many(self.state, records))

    def update(self, record_id: str, changes: Mapping[str, Any], expect_seq: int | None = None) -> R:
        """See `Storage.update`."""
        self.log.commit(self._absorb, lambda: to_update(self.state, record_id, changes, expect_seq))
        return self.state.records[record_id]

    def forget(self, gone: Collection[str], reason: str) -> list[R]:
        """See `Releasing.forget_many`."""
        chain = self.log.commit(self._absorb, lambda: to_forget(self.state, gone, reason, self.clock()))
        if self._gone is not None:
            self._gone += chain
        return chain

    def make(self, decide: Callable[[State[R]], tuple[list[Change], T]]) -> T:
        """Have changes made that one of `agent_memory.store.changes` decides upon; return its answer."""
        return self.log.commit(self._absorb, lambda: decide(self.state))

    def finish_compaction(self, finish: Callable[[Absorb], bool]) -> bool:
        """Do what `ChangeLog.compacting` got ready; tell whether `after_compaction` has to follow.

        Raises:
            StorageError: The log is as it was.
        """
        return finish(self._absorb)

    def after_compaction(self) -> None:
        """Take in what came of it, and drop what is kept of records that are gone."""
        self.refresh()
        self.index.prune()
        self._gone = []

    def take_gone(self) -> list[R]:
        """Return what was forgotten here since the last call.

        The first call drops, from the cache of vectors, those of all texts that no record has any more: a vector tells
        something of its text. Not each time: looking through all of them takes as long as ten searches.
        """
        if self._gone is None:
            self.after_compaction()
        gone, self._gone = self._gone or [], []
        return gone

    def _absorb(self, update: Update) -> None:
        """Take in what the log brought; write down what this process knew and another program removed or changed."""
        known = snapshot(self.state) if update.reset and self.log.rewritten > self._rewritten else ()
        self._rewritten = self.log.rewritten
        if update.reset or update.entries:
            sealed = self.state.sealed if update.reset else None
            hidden = list(sealed.ids()) if sealed is not None else []  # all are read anew, and some may be gone
            changed = self.state.absorb(update)
            self.index.forget_sealed({*changed, *hidden} if hidden else changed)
            for record_id, document in self.state.columns(changed):
                if document is None:
                    self.index.remove(record_id)
                else:
                    self.index.put(document)
        if lost := lost_since(known, self.state.records):  # it was acknowledged once
            with contextlib.suppress(StorageError):  # no room for it: the rewriting is reported all the same
                self.log.keep_lost(lost)


def shown_rows(state: State[Any], now: datetime, *, superseded: bool) -> Masks | None:
    """Return which sealed rows may be found; None where nothing is sealed."""
    if state.sealed is None:
        return None
    replaced = state.replacements.beside_sealed(now)
    return state.sealed.replacements.shown(now, replaced, superseded=superseded)
