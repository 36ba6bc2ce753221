"""`Store`: changes, records and search index of one agent's records of one kind, kept in step. For one thread.

Every write goes through here: read what is new, decide, append, take in. Backends differ in log, index and upkeep.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from agent_memory.errors import StorageError
from agent_memory.index import Rejected
from agent_memory.models import Clock, utc_now
from agent_memory.models.kind import R
from agent_memory.store.changes import lost_since, to_forget, to_store, to_store_many, to_update
from agent_memory.store.lookups import path
from agent_memory.store.queries import surroundings_of
from agent_memory.store.state import State, snapshot
from agent_memory.times import named_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.embeddings.protocol import TextEmbeddings
    from agent_memory.index import Hit, Question, Ranking, SearchIndex
    from agent_memory.index.parts import Masks
    from agent_memory.journal import Change, JournalUpdate
    from agent_memory.models import Kind, SearchRequest, Surroundings
    from agent_memory.store.protocols import Absorb, ChangeLog, IndexUpkeep, Settle
    from agent_memory.store.sealed_records import SealedRecords
    from agent_memory.times import Period

T = TypeVar("T")

WARM_AT_ONCE: Final = 200
"""Records read in one go in the background: about 10 ms, which is what another call may have to wait."""


class Store(Generic[R]):
    """One agent's records of one kind, as this process holds them.

    Args:
        kind: Kind of the records.
        agent_id: Name of the agent.
        log: Changes of the records.
        index: Empty search index that the store owns from now on.
        clock: Source of the present.
        sealed: Records before those of the log, which the index has; None where the log has all.
        unembedded: Sealed records without vectors.

    Attributes:
        kind: Kind of the records.
        log: Changes of the records.
        index: Search index of the records.
        clock: Source of the present.
        state: Records as of the last `refresh`.
        embeddings: Vectors of their texts; set by the backend that opens the store.
        upkeep: Work on the index between calls, None for none; set by the backend that opens the store.
        asked_for_vectors: True once the vectors of all sealed records without vectors were asked for.
    """

    embeddings: TextEmbeddings
    upkeep: IndexUpkeep | None = None

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
        self._forgotten: list[R] | None = None
        self._settle: Settle = None

    # -- reading ------------------------------------------------------------------------------------------------------

    def refresh(self) -> State[R]:
        """Read what is new in the log and return the state.

        Raises:
            StorageError: The log cannot be read.
        """
        self._absorb(self.log.poll())
        return self.state

    def parse_question(self, request: SearchRequest) -> Question:
        """Parse the text of a request with the known names."""
        self.refresh()
        return self.index.parse_question(request)

    def search(
        self, request: SearchRequest, question: Question | None = None, keeps: Callable[[Hit], bool] | None = None
    ) -> Answer[R]:
        """Return the best matches, best first.

        Args:
            request: Text, filters and limit.
            question: Text of the request, parsed and embedded; parsed here when omitted.
            keeps: As in `answer_of`.

        Raises:
            StorageError: The log cannot be read.
        """
        state, now = self.refresh(), request.now
        periods = named_periods(request.text, now) if state.replacements and not request.include_superseded else ()
        past = [period for period in periods if period.is_over(now)]
        superseded = bool(state.replacements) and (request.include_superseded or request.text.strip() != "")

        def replaced_by(record_id: str) -> str | None:
            return state.replacements.of(record_id, now)

        ranking = self.index.search(
            replace(request, limit=max(request.limit, LOOKED_AT) if superseded else request.limit),
            question,
            hidden=hidden_ids(state, now, superseded=superseded),
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
        answer = answer_of(ranking, state.records, request, keeps, looks_back=bool(past))
        around = tuple([surroundings_of(state, record, now, request.filters.group) for record in answer.records])
        return replace(answer, surroundings=around)

    def warm(self, at_most: int) -> bool:
        """Index the words of some records; return True if all are.

        So that the first search need not.

        Args:
            at_most: Number of records to index in this call.
        """
        records = list(islice(self._unembedded, at_most))
        for record in records:
            self._embedded.append(record.id)
            self.index.embed_sealed(self.kind.document(record))
        self.asked_for_vectors = len(records) < at_most
        return self.index.warm(at_most) and not records

    def adopt(self, sealed: SealedRecords[R], index: SearchIndex, unembedded: Iterable[R]) -> None:
        """Take new segments into use.

        Args:
            sealed: Records of the segments; all their changes are known here.
            index: Index of these records alone, with the vectors of the index so far.
            unembedded: Sealed records without vectors.
        """
        vectors, corpus = index.vectors, index.parts.sealed
        gone = self.state.adopt(sealed)
        if vectors is not None and corpus is not None:
            # The vectors of a record in memory and in a segment would be found as if there were two records.
            held = [record_id for record_id in self._embedded if record_id not in self.state.table.records]
            self._embedded = [record_id for record_id in held if not corpus.has_vectors(record_id)]
            for record_id in [*gone, *set(held).difference(self._embedded)]:
                vectors.remove(record_id)
        self._unembedded, self.asked_for_vectors = iter(unembedded), False
        index.keep_order(self.state.table.records)
        for _, document in self.state.columns(self.state.table.records):
            if document is not None:
                index.put(document)
        self.index = index

    def health(self) -> dict[str, Any]:
        """Read the files again whole and return their problems."""
        self._absorb(self.log.poll(thorough=True))
        problems, notes = self.log.report()
        problems += [f"{record_id}: {reason}" for record_id, reason in self.state.table.invalid.items()]
        problems += self.state.replacements.complaints()
        report: dict[str, Any] = {"status": "damaged" if problems else "ok"}
        if problems:
            report |= {"problems": len(problems), "first_problems": problems[:5]}
        return {**report, "notes": notes} if notes else report

    # -- writing ------------------------------------------------------------------------------------------------------

    def change(self, decide: Callable[[State[R]], tuple[list[Change], T]]) -> T:
        """Make the decided changes as one; return the answer.

        `decide` is a function of `agent_memory.store.changes`.

        Raises:
            StorageError: Nothing was written, unless the message says that this is not known.
        """
        answer, self._settle = self.log.commit(self._absorb, lambda: decide(self.state))
        return answer

    def take_settle(self) -> Settle:
        """Return once the function that makes the last change durable, or None.

        Until it has returned, the change must not be acknowledged. It raises `StorageError` (`unknown`) on failure.
        """
        settle, self._settle = self._settle, None
        return settle

    def store(self, record: R, *, unique: bool) -> str:
        """Store a record and return the ID of its text.

        See `RecordStorage.store`.
        """
        return self.change(lambda state: to_store(state, record, self.clock(), unique=unique))

    def store_many(self, records: Sequence[R]) -> None:
        """Store records as one change. See `RecordStorage.store_many`."""
        self.change(lambda state: to_store_many(state, records))

    def update(self, record_id: str, changes: Mapping[str, Any], expect_seq: int | None = None) -> R:
        """Change fields of a record and return the record. See `RecordStorage.update`."""
        self.change(lambda state: to_update(state, record_id, changes, expect_seq))
        return self.state.records[record_id]

    def forget(self, record_ids: Collection[str], reason: str) -> list[R]:
        """Forget records as one change and return them. See `RecordStorage.forget_many`."""
        records = self.change(lambda state: to_forget(state, record_ids, reason, self.clock()))
        if self._forgotten is not None:
            self._forgotten += records
        return records

    def finish_compaction(self, finish: Callable[[Absorb], bool]) -> bool:
        """Finish what `ChangeLog.compacting` prepared; return True if `after_compaction` has to follow.

        Raises:
            StorageError: The log is as it was.
        """
        return finish(self._absorb)

    def after_compaction(self) -> None:
        """Read the compacted log and drop what is kept of deleted records."""
        self.refresh()
        self.index.prune()
        self._forgotten = []

    def take_forgotten(self) -> list[R]:
        """Return the records forgotten here since the last call.

        The first call drops the cached vectors of all texts that no record has any more: a vector shows something of
        its text. Later calls do not, since looking through all of them takes as long as ten searches.
        """
        if self._forgotten is None:
            self.after_compaction()
        records, self._forgotten = self._forgotten or [], []
        return records

    def _absorb(self, update: JournalUpdate) -> None:
        """Apply an update of the log to state and index.

        Records that another program removed or changed in the log are written to a file of their own.
        """
        if not (update.reset or update.entries):
            return
        known: Iterable[R] = ()
        hidden: list[str] = []
        if update.reset:
            known = snapshot(self.state) if self.log.rewritten > self._rewritten else ()
            self._rewritten = self.log.rewritten
            hidden = list(self.state.sealed.ids()) if self.state.sealed is not None else []  # some may be deleted
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


def hidden_ids(state: State[Any], now: datetime, *, superseded: bool) -> set[str]:
    """Return the IDs of the records in memory that a search must not find: expired or, unless asked for, replaced."""
    records = state.table.records
    hidden = {
        record_id
        for record_id in state.expiring
        if (record := records.get(record_id)) is not None and record.is_expired(now)
    }
    if state.replacements and not superseded:
        hidden.update(record_id for record_id in records if state.replacements.of(record_id, now) is not None)
    return hidden


def shown_rows(state: State[Any], now: datetime, *, superseded: bool) -> Masks | None:
    """Return the sealed rows a search may find, None without segments."""
    if state.sealed is None:
        return None
    replaced = state.replacements.beside_sealed(now)
    return state.sealed.replacements.shown(now, replaced, superseded=superseded)


_SPARE: Final = 2
"""How many times as many records are looked up as are wanted: some are replaced or have expired."""


def alike(store: Store[R], text: str, count: int, *, most_unread: int | None = None) -> list[R] | None:
    """Return valid records that share most words with a text.

    Best first.

    Args:
        store: Records to compare with.
        text: What they are compared with.
        count: How many.
        most_unread: Return None rather than read the words of more records than these; None reads all.
    """
    state, now = store.refresh(), store.clock()
    if most_unread is not None and store.index.unread > most_unread:
        return None
    found = store.index.alike(text, _SPARE * count, among=shown_rows(state, now, superseded=False))
    return list(islice((record for one in found if state.is_valid(record := state.records[one], now)), count))


LOOKED_AT: Final = 60
"""Hits among which replacements are looked for, as many as a ranking looks at closely."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """What was found.

    Attributes:
        ranking: The hits.
        records: The record of each hit.
        looks_back: Whether a time that is over was asked for, and so what held then.
        surroundings: What is told of each record besides itself.
    """

    ranking: Ranking
    records: tuple[R, ...]
    looks_back: bool = False
    surroundings: tuple[Surroundings, ...] = ()


def answer_of(
    ranking: Ranking,
    records: Mapping[str, R],
    request: SearchRequest,
    keeps: Callable[[Hit], bool] | None = None,
    *,
    looks_back: bool = False,
) -> Answer[R]:
    """Return the best `request.limit` hits with their records; the rest are rejected if asked to explain.

    Args:
        ranking: All hits, best first.
        records: Records by ID; loading one costs more than ranking it.
        request: Limit, and whether to explain.
        keeps: Returns True for a hit that is wanted; None wants all.
        looks_back: As in `Answer`.
    """
    hits, cut = ranking.hits[: request.limit], ranking.hits[request.limit :] if request.explain else ()
    late = tuple([Rejected(hit.id, "beyond_limit", hit.parts) for hit in cut])
    hits = hits if keeps is None else tuple([hit for hit in hits if keeps(hit)])
    ranking = replace(ranking, hits=hits, rejected=late + ranking.rejected)
    return Answer(ranking, tuple([records[hit.id] for hit in hits]), looks_back)


def as_it_was(
    ranking: Ranking,
    periods: Sequence[Period],
    replaced_by: Callable[[str], str | None],
    moment_of: Callable[[str], datetime],
) -> Ranking:
    """Return the ranking for times that are over: what held then is no worse than what has replaced it since.

    What had been replaced before, or came later, and is replaced, is left out.

    Args:
        ranking: With what was replaced.
        periods: The times, each with an end.
        replaced_by: Returns what replaced a record, if anything did.
        moment_of: Returns when what a record tells came to be so.
    """
    found = {hit.id: hit.score for hit in ranking.hits}
    kept: list[tuple[float, bool, Hit]] = []
    for hit in ranking.hits:
        newer = replaced_by(hit.id)
        if newer is None:
            kept.append((-hit.score, True, hit))
            continue
        replaced, moment = moment_of(newer), moment_of(hit.id)
        held = [
            each
            for each in periods
            if each.end is not None and moment < each.end and (each.start is None or each.start < replaced)
        ]
        if held:
            later = [each for each in dict.fromkeys(path(hit.id, replaced_by)[1:]) if moment_of(each) >= _end_of(held)]
            score = max([hit.score, *(found[each] for each in later if each in found)])
            kept.append((-score, False, replace(hit, score=score)))
    kept.sort(key=lambda each: each[:2])
    left_out = len(ranking.hits) - len(kept)
    return replace(ranking, hits=tuple(hit for *_, hit in kept), total_found=ranking.total_found - left_out)


def _end_of(periods: Iterable[Period]) -> datetime:
    return min(each.end for each in periods if each.end is not None)


def with_successors(
    ranking: Ranking, replaced_by: Callable[[str], str | None], admits: Callable[[str], bool], *, explain: bool = False
) -> Ranking:
    """Return the ranking with the newest successor in the place of each replaced record.

    A new fact often repeats no word of the question ("Poetry was replaced by uv."); the text that it replaced does.

    Args:
        ranking: With what was replaced.
        replaced_by: Returns what replaced a record, if anything did.
        admits: Returns True if a successor meets the filters of the request.
        explain: List what was replaced among the rejected.
    """
    found = {hit.id: hit for hit in ranking.hits}
    hits: dict[str, Hit] = {}
    for hit in ranking.hits:
        newest = path(hit.id, replaced_by)[-1]
        if newest not in hits and (newest == hit.id or admits(newest)):
            own = found.get(newest) or replace(hit, id=newest, pieces=())
            hits[newest] = replace(own, score=hit.score)
    left_out = len(ranking.hits) - len(hits)
    rejected = [Rejected(hit.id, "filtered", hit.parts) for hit in ranking.hits if explain and hit.id not in hits]
    return replace(
        ranking,
        hits=tuple(hits.values()),
        total_found=ranking.total_found - left_out,
        rejected=(*rejected, *ranking.rejected),
    )


def current_first(ranking: Ranking, replaced_by: Callable[[str], str | None]) -> Ranking:
    """Return the ranking with every record behind the one that replaced it, if that was found too.

    What is no longer true may be asked for; it is never the better answer.
    """
    found = {hit.id: hit for hit in ranking.hits}

    def ranked(hit: Hit) -> tuple[float, int]:
        newer = dict.fromkeys(path(hit.id, replaced_by)[1:])
        return -min([hit.score, *(found[each].score for each in newer if each in found)]), len(newer)

    hits: Sequence[Hit] = sorted(ranking.hits, key=ranked)  # stable, and the scores stay in order
    return replace(ranking, hits=tuple(replace(hit, score=-ranked(hit)[0]) for hit in hits))
