"""The steps of one search: find candidates (`candidates`), gather evidence about them, fuse, order, explain.

Reads the index, changes nothing. The arithmetic is `fusion`'s; the floor is applied here, to raw scores.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_memory.index import fusion
from agent_memory.index import talks as turns
from agent_memory.index.candidates import find
from agent_memory.index.fusion import Evidence
from agent_memory.index.match_grades import (
    GRADED,
    LEAST_COSINE,
    MatchEvidence,
    get_answer_match,
    get_match_evidence,
    weigh_words,
)
from agent_memory.index.results import Hit, Ranking, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.index.candidates import CandidateLists, Search
    from agent_memory.index.results import IndexedDocument
    from agent_memory.models import Match, MatchType, SearchMode

_Key = tuple[float, float, str]
"""Sorts candidates: the score, negative; the moment in seconds, negative; the id."""


def rank(search: Search) -> Ranking:
    """Rank by words and, when there are cosines, by embeddings."""
    limit, explain = search.request.limit, search.request.explain
    found = find(search)
    if not (found.words or found.near) and search.cosines is not None and search.settings.similarity_threshold is None:
        search = replace(search, floor=LEAST_COSINE, least=LEAST_COSINE)
        found = find(search)
    evidence = _evidence(search, found, _pool(search, found))
    now = search.request.now.timestamp()
    scored = sorted([_key(search, record_id, each, now) for record_id, each in evidence.items()])
    # Use can lift a score above 1; one divisor for the whole answer keeps the order.
    scale = max(1.0, -scored[0][0]) if scored else 1.0
    matches = get_match_evidence(search, evidence, [key[2] for key in scored[: max(limit, GRADED)]])
    hits = tuple([_hit(search, key, evidence[key[2]], now, scale, matches[key[2]]) for key in scored[:limit]])
    late: Iterable[_Key] = scored[limit : limit + search.limits.rejections] if explain else ()
    rejected = [Rejected(key[2], "beyond_limit", _hit(search, key, evidence[key[2]], now, scale).parts) for key in late]
    if explain:
        rejected += _left_out(search, found, evidence)
    brought_in = sum(each.bm25 <= 0 and _match_type(each, search.floor) == "keyword" for each in evidence.values())
    total = found.total + brought_in
    mode: SearchMode = "keyword" if search.cosines is None else "hybrid"
    first = [replace(hit, pieces=search.pieces_of(hit.id)) for hit in hits[: search.limits.excerpted]]
    hits = (*first, *hits[search.limits.excerpted :])
    match, strength = get_answer_match(list(matches.values())), _get_strength(matches.values())
    return Ranking(hits, total, mode, tuple(rejected), match, strength, weigh_words(search))


def rank_recent(search: Search) -> Ranking:
    """Answer a query without words with the latest documents: one that is not empty asks for what cannot be found."""
    match: Match | None = "weak" if search.request.text.strip() else None
    now = search.request.now.timestamp()
    latest, total = _latest(search, search.request.limit)
    hits = []
    for each in latest:
        fresh = fusion.freshness(now - each.moment, search.settings)
        parts = {"similarity": fusion.RECENT_SIMILARITY, "freshness": fresh}
        strength = None if match is None else 0.0
        hits.append(Hit(each.document.id, fusion.RECENT_SIMILARITY * fresh, "keyword", parts, match, strength))
    if match is None:
        return Ranking(tuple(hits), total, "keyword")
    return Ranking(tuple(hits), total, "keyword", match="weak" if hits else "none", strength=0.0)


def _get_strength(matches: Iterable[MatchEvidence]) -> float:
    return max((match.strength for match in matches), default=0.0)


def _latest(search: Search, count: int) -> tuple[list[IndexedDocument], int]:
    """Return the documents that were stored last, the latest first, of a moment the last; and how many there are."""
    corpus, scope, sealed = search.corpus, search.scope, search.corpus.sealed
    meeting = scope.meeting if scope is not None else None
    every = corpus.documents if meeting is None else [corpus.ids[int(number)] for number in meeting]
    kept = [corpus.documents[one] for one in every if scope is None or scope.admits(one)]
    total = len(kept)
    if sealed is not None:
        kept += [corpus.documents[each.id] for each in sealed.latest(count, search.masks)]
        total += sum(int(mask.sum()) for mask in search.masks)
    return heapq.nlargest(count, kept, key=lambda each: (each.document.timestamp, each.arrival)), total


def _pool(search: Search, found: CandidateLists) -> list[str]:
    """Choose which candidates to look at closely: the best of each list, and in a talk what is beside the very best.

    What an agent noted in one session is no talk: a note beside the best one answers nothing by that. Where most of a
    list are of low trust, as many that are not are looked at, too.
    """
    among_best = search.limits.with_neighbours
    by_words = found.words[: search.size]
    by_embedding = [record_id for record_id, _ in found.near[: search.size]]
    pool = dict.fromkeys([*by_words, *by_embedding])
    corpus = search.corpus
    if any(_is_crowded(search, one) for one in (by_words, by_embedding)):
        vouched = find(search.above_low_trust())
        pool |= dict.fromkeys([*vouched.words[: search.size], *[one for one, _ in vouched.near[: search.size]]])
    best = dict.fromkeys([*by_words[:among_best], *by_embedding[:among_best]])
    places = corpus.talks.places([corpus.documents[record_id].number for record_id in best])
    for place in places.values() if corpus.holds_talk() else ():
        for near in map(corpus.id_of, place.neighbours):
            if near not in pool and search.admits(near):
                pool[near] = None
    for each in search.within:
        pool |= dict.fromkeys(_of_period(each))
    return list(pool)


def _is_crowded(search: Search, best: Sequence[str]) -> bool:
    """Tell whether most of a list are of low trust: a page may be stored many times in the words of a question."""
    documents = search.corpus.documents
    return 2 * sum(documents[one].document.trust == "low" for one in best) > len(best)


def _of_period(search: Search) -> list[str]:
    """Choose what to look at closely of a stretch of time that is asked about: it may share no word with a question."""
    found, most = find(search), search.limits.in_period
    sealed = search.corpus.sealed
    all_near = search.cosines is not None and not (sealed is not None and None in sealed.vectors)  # by any cosine
    wants_latest = search.question.asks_for_period and not all_near
    latest = [each.document.id for each in _latest(search, most)[0]] if wants_latest else []
    return [*found.words[:most], *[record_id for record_id, _ in found.near[:most]], *latest]


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
        cosines = {**found.cosines, **search.cosines_of([one for one in gathered if one not in found.cosines])}
        for record_id, each in gathered.items():
            each.cosine = cosines.get(record_id)
            # One without a vector yet is judged by its words; it must not lose for being new.
            each.dense = each.share if each.cosine is None else fusion.scaled(each.cosine, search.least, nearest)
    talks = turns.evidence(gathered, question, corpus.talks, corpus.documents, corpus.postings)
    for record_id, talk in talks.items():
        gathered[record_id].talk = talk
    if question.periods:
        _place(search, gathered)
    return gathered


def _place(search: Search, gathered: dict[str, Evidence]) -> None:
    """Note where each candidate lies in the time that is asked about; one that names its dates lies within."""
    documents, question, now = search.corpus.documents, search.question, search.request.now.timestamp()
    numbers = {documents[record_id].number: record_id for record_id in gathered}
    held = search.corpus.postings.held(question.dates, numbers)
    holding = [{numbers[at] for at, _ in held.get(term, ())} for term in question.dates]
    naming = set.intersection(*holding) if holding else set[str]()
    for record_id, each in gathered.items():
        is_named = record_id in naming
        each.place = "within" if is_named else fusion.place_of(documents[record_id].moment, question.periods, now)
        each.alone = question.asks_for_period


def _key(search: Search, record_id: str, evidence: Evidence, now: float) -> _Key:
    """Return a sort key: best first, ties to the newer, then to the smaller id."""
    indexed = search.corpus.documents[record_id]
    factors = _factors(search, indexed, now)
    return -(fusion.similarity(evidence) * math.prod(factors.values())), -indexed.moment, record_id


def _factors(search: Search, indexed: IndexedDocument, now: float) -> dict[str, float]:
    """Return what a similarity is multiplied by: for its age, for its use, for its source."""
    document, settings = indexed.document, search.settings
    return {
        "freshness": fusion.freshness(now - indexed.moment, settings),
        "access": fusion.access(document.access_count, settings),
        "trust": fusion.trusted(document.trust),
    }


def _hit(
    search: Search, key: _Key, evidence: Evidence, now: float, scale: float, match: MatchEvidence | None = None
) -> Hit:
    factors = _factors(search, search.corpus.documents[key[2]], now)
    parts = {"bm25": evidence.bm25, "similarity": fusion.similarity(evidence)}
    parts |= {name: factor for name, factor in factors.items() if factor != 1 or name in {"freshness", "access"}}
    if evidence.cosine is not None:
        parts["cosine"] = evidence.cosine
    if evidence.talk is not None:
        parts |= evidence.talk._asdict()
    grade, strength = (None, None) if match is None else (match.match, match.strength)
    if match is not None:
        parts["share"] = match.share
    return Hit(key[2], min(1.0, -key[0] / scale), _match_type(evidence, search.floor), parts, grade, strength)


def _match_type(evidence: Evidence, floor: float) -> MatchType:
    if evidence.cosine is None or evidence.cosine < floor:
        return "keyword"
    return "hybrid" if evidence.bm25 > 0 else "vector"


def _left_out(search: Search, found: CandidateLists, ranked: Iterable[str]) -> list[Rejected]:
    most, is_there = search.limits.rejections, search.reaches()
    shown = list(filter(is_there, found.filtered))[:most]
    if search.cosines is None:
        return [Rejected(one, "filtered") for one in shown]
    cosines = search.cosines_of(shown)
    filtered = [Rejected(one, "filtered", {"cosine": cosines[one]} if one in cosines else {}) for one in shown]
    known = {*found.filtered, *ranked}
    low = {one: cosine for one, cosine in search.cosines.below(search.floor, 4 * most) if is_there(one)}
    scores = search.bm25_of(found.scores, low)
    below = [
        Rejected(record_id, "below_floor", {"cosine": cosine})
        for record_id, cosine in low.items()
        if record_id not in known and scores[record_id] == 0
    ]
    return filtered + below[:most]
