"""The steps of one search: find candidates (`candidates`), gather evidence about them, fuse, order, explain.

Reads the index, changes nothing. The arithmetic is `fusion`'s; the floor is applied here, to raw scores.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

from agent_memory.retrieval import fusion
from agent_memory.retrieval.candidates import find, score_of
from agent_memory.retrieval.fusion import Evidence, Talk
from agent_memory.retrieval.results import Hit, MatchKind, Ranking, Rejected
from agent_memory.retrieval.text_forms import moment_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from agent_memory.models import Memory
    from agent_memory.retrieval.candidates import Found, Sieve
    from agent_memory.retrieval.dense import Cosines
    from agent_memory.retrieval.index import SearchIndex
    from agent_memory.retrieval.query import Question
    from agent_memory.retrieval.turns.sessions import Turn

_POOL: Final = 60
"""Best of each list that are looked at closely: 40 to 300 differ by .003 frac@10, 60 takes half the time of 100."""

_WITH_NEIGHBOURS: Final = 20
"""Best of each list whose neighbours are looked at too: all of them win nothing."""

_SHOWN_REJECTIONS: Final = 50
"""An explanation is read by a person or paid for in tokens: the best fifty of each reason say enough."""


def rank(
    index: SearchIndex,
    question: Question,
    cosines: Cosines | None,
    *,
    limit: int,
    now: datetime,
    sieve: Sieve | None,
    explain: bool,
) -> Ranking:
    """Rank by words and, when there are cosines, by meaning; arguments as in `SearchIndex.search`."""
    size = max(limit, _POOL)
    found = find(index, question, cosines, size, sieve)
    pool = _pool(index, found, size, sieve)
    evidence = _evidence(index, question, found, pool)
    at = now.timestamp()
    scored = [_scored(index, memory_id, fusion.similarity(each), at) for memory_id, each in evidence.items()]
    scored.sort()
    # Use can lift a score above 1; one divisor for the whole answer keeps the order.
    scale = max(1.0, -scored[0][0]) if scored else 1.0
    hits = tuple(_hit(index, one, evidence[one[2]], found, now, scale) for one in scored[:limit])
    late: Iterable[tuple[float, float, str]] = scored[limit : limit + _SHOWN_REJECTIONS] if explain else ()
    rejected = [
        Rejected(one[2], "beyond_limit", _hit(index, one, evidence[one[2]], found, now, scale).parts) for one in late
    ]
    if explain:
        rejected += _left_out(index, found)
    brought_in = sum(each.bm25 <= 0 and not _is_near(each, found.floor) for each in evidence.values())
    return Ranking(hits, found.total + brought_in, "keyword" if cosines is None else "hybrid", tuple(rejected))


def rank_recent(index: SearchIndex, *, limit: int, now: datetime, allowed: Callable[[Memory], bool] | None) -> Ranking:
    """Answer a query that says nothing with the latest memories."""
    kept = [entry.memory for entry in index.entries.values() if allowed is None or allowed(entry.memory)]
    latest = heapq.nlargest(limit, kept, key=lambda memory: (memory.timestamp, memory.id))
    hits = []
    for memory in latest:
        fresh = fusion.freshness((now - moment_of(memory)).total_seconds(), index.settings)
        score = fusion.RECENT_SIMILARITY * fresh
        hits.append(Hit(memory.id, score, "keyword", {"similarity": fusion.RECENT_SIMILARITY, "freshness": fresh}))
    return Ranking(tuple(hits), len(kept), "keyword")


def _pool(index: SearchIndex, found: Found, size: int, sieve: Sieve | None) -> list[str]:
    """Choose whom to look at closely: the best of each list, and the neighbours of those that are turns."""
    by_words = found.words[:size]
    by_meaning = [memory_id for memory_id, _ in found.meaning[:size]]
    pool = dict.fromkeys([*by_words, *by_meaning])
    for memory_id in [*by_words[:_WITH_NEIGHBOURS], *by_meaning[:_WITH_NEIGHBOURS]]:
        turn = index.conversations.turn(memory_id)
        for near in turn.neighbours if turn is not None else ():
            if near not in pool and (sieve is None or sieve.admits(index.entries[near].memory)):
                pool[near] = None
    return list(pool)


def _evidence(index: SearchIndex, question: Question, found: Found, pool: list[str]) -> dict[str, Evidence]:
    gathered = {memory_id: Evidence(bm25=score_of(index, found.scores, memory_id)) for memory_id in pool}
    most = max((each.bm25 for each in gathered.values()), default=0.0)
    enough = fusion.ENOUGH_WORDS * index.postings.full_score(question.weights)
    for each in gathered.values():
        if most > 0:
            each.words = each.bm25 / most
            each.share = each.bm25 / max(most, enough)
    if found.cosines is not None and index.vectors is not None:
        least = index.vectors.similarity_threshold
        nearest = found.meaning[0][1] if found.meaning else least
        cosines = found.cosines.of(gathered)
        for memory_id, each in gathered.items():
            each.cosine = cosines.get(memory_id)
            # One without a vector yet is judged by its words; it must not lose for being new.
            each.meaning = each.share if each.cosine is None else fusion.scaled(each.cosine, least, nearest)
    _add_talks(index, question, gathered)
    return gathered


def _add_talks(index: SearchIndex, question: Question, gathered: dict[str, Evidence]) -> None:
    """Add the evidence of talks; beside turns a plain memory counts as a talk of its own, of full length.

    Otherwise a turn of the best talk outranks a fact that answers better: with the facts of `benchmarks/data` beside a
    tuning conversation, frac@10 of questions about the facts is .848 without this and .946 with it, and .812 both
    times for questions about the talk.
    """
    turns = {one: turn for one in gathered if (turn := index.conversations.turn(one)) is not None}
    if not turns:
        return
    windows = _window_shares(index, question, turns)
    bases: dict[str, list[float]] = {}
    for memory_id, turn in turns.items():
        bases.setdefault(turn.talk, []).append(fusion.base(gathered[memory_id]))
    talks = {talk: fusion.session_relevance(values) for talk, values in bases.items()}
    most = max(talks.values())
    for memory_id, each in gathered.items():
        turn, entry = turns.get(memory_id), index.entries[memory_id]
        relevance = talks[turn.talk] if turn is not None else fusion.base(each)
        each.talk = Talk(
            window=windows[memory_id] if turn is not None else each.share,
            session=min(1.0, relevance / most) if most > 0 else 0.0,
            length=entry.length_share if turn is not None else 1.0,
            speaker=fusion.speaker_share(turn.speaker if turn is not None else None, question.speakers),
            time=float(question.asks_time and entry.tells_time),
        )


def _window_shares(index: SearchIndex, question: Question, turns: Mapping[str, Turn]) -> dict[str, float]:
    entries = index.entries
    windows: dict[int, tuple[int, ...]] = {}
    for memory_id, turn in turns.items():
        window = [entries[memory_id].document, *[entries[near].document for near in turn.neighbours]]
        documents = tuple([document for document in window if document is not None])
        windows[documents[0]] = documents
    scores = index.postings.window_scores(question.weights, windows)
    most = max(scores.values())
    return {index.owners[document]: score / most if most > 0 else 0.0 for document, score in scores.items()}


def _scored(index: SearchIndex, memory_id: str, similarity: float, now: float) -> tuple[float, float, str]:
    """Return a sort key: best first, ties to the newer, then to the smaller id."""
    entry = index.entries[memory_id]
    fresh = fusion.freshness(now - entry.moment, index.settings)
    score = similarity * fresh * fusion.access(entry.memory.access_count, index.settings)
    score *= fusion.trusted(entry.memory.trust)
    return -score, -entry.moment, memory_id


def _hit(
    index: SearchIndex,
    key: tuple[float, float, str],
    evidence: Evidence,
    found: Found,
    now: datetime,
    scale: float,
) -> Hit:
    memory = index.entries[key[2]].memory
    parts = {
        "bm25": evidence.bm25,
        "similarity": fusion.similarity(evidence),
        "freshness": fusion.freshness((now - moment_of(memory)).total_seconds(), index.settings),
        "access": fusion.access(memory.access_count, index.settings),
    }
    if memory.trust == "low":
        parts["trust"] = fusion.trusted(memory.trust)
    if evidence.cosine is not None:
        parts["cosine"] = evidence.cosine
    if evidence.talk is not None:
        talk = evidence.talk
        parts |= {"window": talk.window, "session": talk.session, "speaker": talk.speaker}
        parts |= {"length": talk.length, "time": talk.time}
    return Hit(memory.id, min(1.0, -key[0] / scale), _kind(evidence, found.floor), parts)


def _is_near(evidence: Evidence, floor: float) -> bool:
    return evidence.cosine is not None and evidence.cosine >= floor


def _kind(evidence: Evidence, floor: float) -> MatchKind:
    if not _is_near(evidence, floor):
        return "keyword"
    return "hybrid" if evidence.bm25 > 0 else "vector"


def _left_out(index: SearchIndex, found: Found) -> list[Rejected]:
    shown = found.filtered[:_SHOWN_REJECTIONS]
    cosines = found.cosines.of(shown) if found.cosines is not None else {}
    filtered = [Rejected(one, "filtered", {"cosine": cosines[one]} if one in cosines else {}) for one in shown]
    if found.cosines is None:
        return filtered
    known = set(found.filtered)
    below = [
        Rejected(memory_id, "below_floor", {"cosine": cosine})
        for memory_id, cosine in found.cosines.below(found.floor, 4 * _SHOWN_REJECTIONS)
        if memory_id not in known and score_of(index, found.scores, memory_id) == 0
    ]
    return filtered + below[:_SHOWN_REJECTIONS]
