"""The steps of one search: find candidates (`candidates`), gather evidence about them, fuse, order, explain.

Reads the index, changes nothing. The arithmetic is `fusion`'s; the floor is applied here, to raw scores.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from agent_memory.retrieval import fusion, turns
from agent_memory.retrieval.candidates import find
from agent_memory.retrieval.fusion import Evidence
from agent_memory.retrieval.results import Hit, Ranking, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_memory.models import MatchType
    from agent_memory.retrieval.candidates import CandidateLists, Search
    from agent_memory.retrieval.results import IndexedDocument

_Key = tuple[float, float, str]
"""Sorts candidates: the score, negative; the moment in seconds, negative; the id."""


def rank(search: Search) -> Ranking:
    """Rank by words and, when there are cosines, by embeddings."""
    limit, explain = search.request.limit, search.request.explain
    found = find(search)
    evidence = _evidence(search, found, _pool(search, found))
    now = search.request.now.timestamp()
    scored = sorted([_key(search, record_id, each, now) for record_id, each in evidence.items()])
    # Use can lift a score above 1; one divisor for the whole answer keeps the order.
    scale = max(1.0, -scored[0][0]) if scored else 1.0
    hits = tuple([_hit(search, key, evidence[key[2]], now, scale) for key in scored[:limit]])
    late: Iterable[_Key] = scored[limit : limit + search.limits.rejections] if explain else ()
    rejected = [Rejected(key[2], "beyond_limit", _hit(search, key, evidence[key[2]], now, scale).parts) for key in late]
    if explain:
        rejected += _left_out(search, found)
    brought_in = sum(each.bm25 <= 0 and _match_type(each, search.floor) == "keyword" for each in evidence.values())
    total = found.total + brought_in
    return Ranking(hits, total, "keyword" if search.cosines is None else "hybrid", tuple(rejected))


def rank_recent(search: Search) -> Ranking:
    """Answer a query that says nothing with the latest documents."""
    admits, now = search.scope.admits if search.scope is not None else None, search.request.now.timestamp()
    documents, sealed, limit = search.corpus.documents, search.corpus.sealed, search.request.limit
    kept = [each for one, each in documents.items() if admits is None or admits(one)]
    total = len(kept)
    if sealed is not None:
        kept += [documents[each.id] for each in sealed.latest(limit, search.masks)]
        total += sum(int(mask.sum()) for mask in search.masks)
    latest = heapq.nlargest(limit, kept, key=lambda each: (each.document.timestamp, each.document.id))
    hits = []
    for each in latest:
        fresh = fusion.freshness(now - each.moment, search.settings)
        parts = {"similarity": fusion.RECENT_SIMILARITY, "freshness": fresh}
        hits.append(Hit(each.document.id, fusion.RECENT_SIMILARITY * fresh, "keyword", parts))
    return Ranking(tuple(hits), total, "keyword")


def _pool(search: Search, found: CandidateLists) -> list[str]:
    """Choose which candidates to look at closely: the best of each list, and what stands beside the very best."""
    among_best = search.limits.with_neighbours
    by_words = found.words[: search.size]
    by_embedding = [record_id for record_id, _ in found.near[: search.size]]
    pool = dict.fromkeys([*by_words, *by_embedding])
    corpus = search.corpus
    best = dict.fromkeys([*by_words[:among_best], *by_embedding[:among_best]])
    places = corpus.talks.places([corpus.documents[record_id].number for record_id in best])
    for place in places.values():
        for near in map(corpus.id_of, place.neighbours):
            if near not in pool and search.admits(near):
                pool[near] = None
    return list(pool)


def _evidence(search: Search, found: CandidateLists, pool: list[str]) -> dict[str, Evidence]:
    corpus, question = search.corpus, search.question
    gathered = {one: Evidence(bm25=score) for one, score in search.bm25_of(found.scores, pool).items()}
    most = max((each.bm25 for each in gathered.values()), default=0.0)
    enough = fusion.ENOUGH_WORDS * corpus.postings.full_score(question.weights)
    for each in gathered.values():
        if most > 0:
            each.words = each.bm25 / most
            each.share = each.bm25 / max(most, enough)
    if search.cosines is not None:
        nearest = found.near[0][1] if found.near else search.least
        cosines = search.cosines_of(gathered)
        for record_id, each in gathered.items():
            each.cosine = cosines.get(record_id)
            # One without a vector yet is judged by its words; it must not lose for being new.
            each.dense = each.share if each.cosine is None else fusion.scaled(each.cosine, search.least, nearest)
    talks = turns.evidence(gathered, question, corpus.talks, corpus.documents, corpus.postings)
    for record_id, talk in talks.items():
        gathered[record_id].talk = talk
    return gathered


def _key(search: Search, record_id: str, evidence: Evidence, now: float) -> _Key:
    """Return a sort key: best first, ties to the newer, then to the smaller id."""
    indexed = search.corpus.documents[record_id]
    fresh, access, trusted = _factors(search, indexed, now)
    return -(fusion.similarity(evidence) * fresh * access * trusted), -indexed.moment, record_id


def _factors(search: Search, indexed: IndexedDocument, now: float) -> tuple[float, float, float]:
    """Return what a similarity is multiplied by, whatever the question: for its age, for its use, for its source."""
    document, settings = indexed.document, search.settings
    fresh = fusion.freshness(now - indexed.moment, settings)
    return fresh, fusion.access(document.access_count, settings), fusion.trusted(document.trust)


def _hit(search: Search, key: _Key, evidence: Evidence, now: float, scale: float) -> Hit:
    fresh, access, trusted = _factors(search, search.corpus.documents[key[2]], now)
    parts = {"bm25": evidence.bm25, "similarity": fusion.similarity(evidence), "freshness": fresh, "access": access}
    if trusted != 1:
        parts["trust"] = trusted
    if evidence.cosine is not None:
        parts["cosine"] = evidence.cosine
    if evidence.talk is not None:
        parts |= evidence.talk._asdict()
    return Hit(key[2], min(1.0, -key[0] / scale), _match_type(evidence, search.floor), parts)


def _match_type(evidence: Evidence, floor: float) -> MatchType:
    if evidence.cosine is None or evidence.cosine < floor:
        return "keyword"
    return "hybrid" if evidence.bm25 > 0 else "vector"


def _left_out(search: Search, found: CandidateLists) -> list[Rejected]:
    most = search.limits.rejections
    shown = found.filtered[:most]
    if search.cosines is None:
        return [Rejected(one, "filtered") for one in shown]
    cosines = search.cosines_of(shown)
    filtered = [Rejected(one, "filtered", {"cosine": cosines[one]} if one in cosines else {}) for one in shown]
    known = set(found.filtered)
    low = dict(search.cosines.below(search.floor, 4 * most))
    scores = search.bm25_of(found.scores, low)
    below = [
        Rejected(record_id, "below_floor", {"cosine": cosine})
        for record_id, cosine in low.items()
        if record_id not in known and scores[record_id] == 0
    ]
    return filtered + below[:most]
