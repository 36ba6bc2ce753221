"""`Store`: log, state and search index of one kind. For one thread.

Every write goes through here: read new changes, decide, append, apply. Backends differ in log, index and upkeep.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from agent_memory.errors import StorageError
from agent_memory.index import RejectedHit
from agent_memory.models import Clock, SearchFilters, SearchRequest, utc_now
from agent_memory.models.kind import R
from agent_memory.store.changes import find_lost
from agent_memory.store.lookups import follow_chain
from agent_memory.store.queries import get_surroundings
from agent_memory.store.state import State
from agent_memory.times import Period, named_periods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import datetime

    from agent_memory.embeddings.protocol import TextEmbeddings, Vector
    from agent_memory.index import Hit, Question, Ranking, SearchIndex
    from agent_memory.index.parts import Masks
    from agent_memory.journal import Change, JournalUpdate
    from agent_memory.models import Kind, Surroundings
    from agent_memory.store.protocols import ChangeLog, IndexUpkeep, ModelUpkeep, Settle
    from agent_memory.store.sealed_records import SealedRecords

T = TypeVar("T")

_NOTES: Final = SearchFilters()
WARM_AT_ONCE: Final = 200
"""Records read in one batch in the background: about 10 ms, for which another call may have to wait."""
MOST_REPLACED_HITS: Final = 60
"""Hits that are checked for replacements, as many as a ranking compares closely."""
_NEIGHBORS: Final = 24
"""Neighbors of a text by words, and by meaning; some are replaced, have expired or are not wanted."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """Result of a search.

    Attributes:
        ranking: Hits with their scores.
        records: Record of each hit.
        looks_back: True if the question asks for a past time, and so for the records of that time.
        surroundings: Links and doubts of each record.
    """

    ranking: Ranking
    records: tuple[R, ...]
    looks_back: bool = False
    surroundings: tuple[Surroundings, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordNeighbors(Generic[R]):
    """Valid records to compare with a text, best first.

    They are loaded as they are read, so they serve one call of the thread.

    Attributes:
        worded: Records that share the rarest words, each with the share of all words of the text.
        near: Records near by meaning, each with its cosine.
    """

    worded: Iterator[tuple[R, float]]
    near: Iterator[tuple[R, float]]


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
        second_model: Back-fill of a second embedder, None if not needed; set like `upkeep`.
        asked_for_vectors: True once the vectors of all sealed records without vectors were asked for.
        is_pruned: True once the vectors of deleted records were removed from the cache.
    """

    embeddings: TextEmbeddings
    upkeep: IndexUpkeep | None = None
    second_model: ModelUpkeep | None = None

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
        self._rewrite_count = 0
        self.is_pruned = False

    # -- reading ------------------------------------------------------------------------------------------------------

    def refresh(self) -> State[R]:
        """Read new changes of the log and return the state.

        Raises:
            StorageError: The log cannot be read.
        """
        self.absorb(self.log.poll())
        return self.state

    def search(self, request: SearchRequest, question: Question | None = None) -> Answer[R]:
        """Return the best matches, best first.

        Args:
            request: Text, filters and limit.
            question: Text of the request, parsed and embedded; parsed here when omitted.

        Raises:
            StorageError: The log cannot be read.
        """
        state, now = self.refresh(), request.now
        periods = named_periods(request.text, now) if state.replacements and not request.include_superseded else ()
        past = [period for period in periods if period.is_over(now)]
        superseded = bool(state.replacements) and (request.include_superseded or request.text.strip() != "")

        def get_newer(record_id: str) -> str | None:
            return state.replacements.get_newer(record_id, now)

        ranking = self.index.search(
            replace(request, limit=max(request.limit, MOST_REPLACED_HITS) if superseded else request.limit),
            question,
            hidden=_find_hidden(state, now, superseded=superseded),
            among=_mask_visible(state, now, superseded=superseded),
        )
        if past:
            ranking = rank_past(ranking, past, get_newer, lambda record_id: state.records[record_id].moment)
        elif request.include_superseded:
            ranking = rank_current_first(ranking, get_newer)
        elif superseded:
            admits, explain = request.filters.admits, request.explain
            ranking = promote_successors(
                ranking, get_newer, lambda record_id: admits(state.records[record_id]), explain=explain
            )
        hits, cut = ranking.hits[: request.limit], ranking.hits[request.limit :] if request.explain else ()
        late = tuple([RejectedHit(hit.id, "beyond_limit", hit.parts) for hit in cut])
        ranking = replace(ranking, hits=hits, rejected=late + ranking.rejected)
        records = tuple([state.records[hit.id] for hit in hits])
        around = tuple([get_surroundings(state, record, now, request.filters.group) for record in records])
        return Answer(ranking, records, bool(past), around)

    def find_neighbors(
        self,
        text: str,
        filters: SearchFilters = _NOTES,
        vector: Vector | None = None,
        *,
        floor: float = 0.0,
        most_unread: int | None = None,
    ) -> RecordNeighbors[R] | None:
        """Return valid records with a text's words or near its vector.

        Args:
            text: Text to compare with.
            filters: Conditions that all records meet.
            vector: Vector of the text; None compares words alone.
            floor: Lowest cosine of a record near by meaning, on MiniLM's scale.
            most_unread: Return None rather than read the words of more records; None reads all.
        """
        state, now = self.refresh(), self.clock()
        if most_unread is not None and self.index.unread > most_unread:
            return None
        among = _mask_visible(state, now, superseded=False)

        def load(pairs: Iterable[tuple[str, float]]) -> Iterator[tuple[R, float]]:
            records = ((state.records[record_id], value) for record_id, value in pairs)
            return (pair for pair in records if state.is_valid(pair[0], now))

        def load_worded() -> Iterator[tuple[R, float]]:
            yield from load(self.index.alike(text, _NEIGHBORS, among, filters))  # costs nothing until it is read

        request = SearchRequest("", _NEIGHBORS, now, filters)
        if vector is None or self.index.vectors is None:
            near = []
        else:
            near = self.index.find_nearest(request, vector, floor / self.index.vectors.cosine_scale, among)
        return RecordNeighbors(load_worded(), load(near))

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
        adopted = self.state.adopt(sealed)
        if vectors is not None and corpus is not None:
            # The vectors of a record in memory and in a segment would be found as if there were two records.
            held = [record_id for record_id in self._embedded if record_id not in self.state.table.records]
            self._embedded = [record_id for record_id in held if not corpus.has_vectors(record_id)]
            for record_id in [*adopted, *set(held).difference(self._embedded)]:
                vectors.remove(record_id)
        self._unembedded, self.asked_for_vectors = iter(unembedded), False
        index.keep_order(self.state.table.records)
        for _, document in self.state.iter_documents(self.state.table.records):
            if document is not None:
                index.put(document)
        self.index = index

    def health(self) -> dict[str, Any]:
        """Read the files again in full and return their problems."""
        self.absorb(self.log.poll(thorough=True))
        problems, notes = self.log.report()
        problems += [f"{record_id}: {reason}" for record_id, reason in self.state.table.invalid.items()]
        problems += self.state.replacements.describe_circles()
        report: dict[str, Any] = {"status": "damaged" if problems else "ok"}
        if problems:
            report |= {"problems": len(problems), "first_problems": problems[:5]}
        return {**report, "notes": notes} if notes else report

    # -- writing ------------------------------------------------------------------------------------------------------

    def change(self, decide: Callable[[State[R]], tuple[list[Change], T]]) -> tuple[T, Settle]:
        """Make the decided changes as one; return the answer and their sync.

        The change must not be acknowledged before the sync, which raises `StorageError` (`unknown`) on failure.

        Args:
            decide: Function of `agent_memory.store.changes`.

        Raises:
            StorageError: Nothing was written, unless the message says that this is not known.
        """
        return self.log.commit(self.absorb, lambda: decide(self.state))

    def after_compaction(self) -> None:
        """Read the compacted log and drop data of deleted records."""
        self.refresh()
        self.index.prune()
        self.is_pruned = True

    def absorb(self, update: JournalUpdate) -> None:
        """Apply an update of the log to state and index.

        Records that another program removed or changed in the log are written to a file of their own.
        """
        if not (update.reset or update.entries):
            return
        before: Iterable[R] = ()
        hidden: list[str] = []
        if update.reset:
            before = self.state.iter_records() if self.log.rewrite_count > self._rewrite_count else ()
            self._rewrite_count = self.log.rewrite_count
            hidden = list(self.state.sealed.iter_ids()) if self.state.sealed is not None else []  # some may be deleted
        changed = self.state.absorb(update)
        self.index.forget_sealed({*changed, *hidden} if hidden else changed)
        for record_id, document in self.state.iter_documents(changed):
            if document is None:
                self.index.remove(record_id)
            else:
                self.index.put(document)
        if lost := find_lost(before, self.state.records):  # it was acknowledged once
            with contextlib.suppress(StorageError):  # without room for it the rewriting is still reported
                self.log.keep_lost(lost)


def _find_hidden(state: State[Any], now: datetime, *, superseded: bool) -> set[str]:
    """Return the IDs of expired and, unless wanted, replaced unsealed records."""
    records = state.table.records
    hidden = {
        record_id
        for record_id in state.expiring
        if (record := records.get(record_id)) is not None and record.is_expired(now)
    }
    if state.replacements and not superseded:
        hidden.update(record_id for record_id in records if state.replacements.get_newer(record_id, now) is not None)
    return hidden


def _mask_visible(state: State[Any], now: datetime, *, superseded: bool) -> Masks | None:
    """Return the sealed rows a search may find, None without segments."""
    if state.sealed is None:
        return None
    overrides = state.replacements.list_overrides(now)
    return state.sealed.replacements.mask_visible(now, overrides, superseded=superseded)


def rank_past(
    ranking: Ranking,
    periods: Sequence[Period],
    get_newer: Callable[[str], str | None],
    get_moment: Callable[[str], datetime],
) -> Ranking:
    """Rank records of past times and current ones.

    A record that held then has at least the score of its later replacements. A replaced record that was replaced
    before, or came later, is left out.

    Args:
        ranking: Ranking with replaced records.
        periods: Past periods, each with an end.
        get_newer: Returns the replacement of a record, or None.
        get_moment: Returns the time from which on a record holds.
    """
    scores = {hit.id: hit.score for hit in ranking.hits}
    ranked: list[tuple[float, bool, Hit]] = []
    for hit in ranking.hits:
        newer = get_newer(hit.id)
        if newer is None:
            ranked.append((-hit.score, True, hit))
            continue
        replaced, moment = get_moment(newer), get_moment(hit.id)
        ends = [
            period.end
            for period in periods
            if period.end is not None and moment < period.end and (period.start is None or period.start < replaced)
        ]
        if ends:
            chain = dict.fromkeys(follow_chain(hit.id, get_newer)[1:])
            later = [record_id for record_id in chain if get_moment(record_id) >= min(ends)]
            score = max([hit.score, *(scores[record_id] for record_id in later if record_id in scores)])
            ranked.append((-score, False, replace(hit, score=score)))
    ranked.sort(key=lambda entry: entry[:2])
    left_out = len(ranking.hits) - len(ranked)
    return replace(ranking, hits=tuple(hit for *_, hit in ranked), total_found=ranking.total_found - left_out)


def promote_successors(
    ranking: Ranking, get_newer: Callable[[str], str | None], admits: Callable[[str], bool], *, explain: bool = False
) -> Ranking:
    """Put newest successors in the places of replaced records.

    A new fact often repeats no word of the question ("Poetry was replaced by uv."); the text that it replaced does.

    Args:
        ranking: Ranking with replaced records.
        get_newer: Returns the replacement of a record, or None.
        admits: Returns True if a successor meets the filters of the request.
        explain: True to list replaced records among the rejected.
    """
    by_id = {hit.id: hit for hit in ranking.hits}
    hits: dict[str, Hit] = {}
    for hit in ranking.hits:
        newest = follow_chain(hit.id, get_newer)[-1]
        if newest not in hits and (newest == hit.id or admits(newest)):
            hits[newest] = replace(by_id.get(newest) or replace(hit, id=newest, pieces=()), score=hit.score)
    left_out = len(ranking.hits) - len(hits)
    rejected = [RejectedHit(hit.id, "filtered", hit.parts) for hit in ranking.hits if explain and hit.id not in hits]
    return replace(
        ranking,
        hits=tuple(hits.values()),
        total_found=ranking.total_found - left_out,
        rejected=(*rejected, *ranking.rejected),
    )


def rank_current_first(ranking: Ranking, get_newer: Callable[[str], str | None]) -> Ranking:
    """Rank every record after its replacement, if that is a hit.

    A question may ask for records that are no longer true; they are never the better answer.
    """
    scores = {hit.id: hit.score for hit in ranking.hits}

    def get_rank(hit: Hit) -> tuple[float, int]:
        newer = dict.fromkeys(follow_chain(hit.id, get_newer)[1:])
        return -min([hit.score, *(scores[record_id] for record_id in newer if record_id in scores)]), len(newer)

    hits: Sequence[Hit] = sorted(ranking.hits, key=get_rank)  # stable, and the scores stay in order
    return replace(ranking, hits=tuple(replace(hit, score=-get_rank(hit)[0]) for hit in hits))
