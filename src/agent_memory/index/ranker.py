"""Steps of one search: find candidates, gather evidence, fuse, order, explain.

Reads the index, changes nothing. `fusion` has the arithmetic; the floor is applied here, to raw scores. A match grade
is computed from raw evidence: shared words and identifiers, the rarity of words in the memory, and the cosine. It
does not depend on the other hits, so that hits of different answers can be compared.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.index import fusion
from agent_memory.index.candidates import CandidateLists, SearchContext, SearchCorpus, find
from agent_memory.index.fusion import RankEvidence, TalkEvidence
from agent_memory.index.results import Hit, IndexedDocument, Question, Ranking, RejectedHit
from agent_memory.index.terms import is_day_term
from agent_memory.models.identifiers import INSTRUCTION_CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agent_memory.models import Document, Match, MatchType, SearchMode

_Key = tuple[float, float, str]
"""Sorts candidates: the score, negative; the moment in seconds, negative; the id."""
STRONG_SHARE: Final = 0.5
"""Share of the question's content words from which a hit is a strong match."""
STRONG_COSINE: Final = 0.35
"""Cosine of the local model from which a hit is a strong match. `python -m benchmarks.match` measures all limits."""
MAX_MISSING: Final = 0.3
"""Share of the question that a strong match may lack although other memories have it.

Chosen on one half of the questions of `benchmarks.match` and two worlds of `benchmarks.drift`: at .27 and .35
precision differs by less than .02."""
LEAST_COSINE: Final = 0.05
"""Floor of the closest results, used if nothing shares a word with the question and nothing passes the embedder's."""
GRADED: Final = 10
"""Best hits that are graded, even if fewer are wanted: the grade of an answer does not depend on its limit."""
INSTRUCTION_PLACES: Final = (5, 9, 10)
"""Places of an answer that standing instructions may take: the last of five, and of ten."""
_NEAREST: Final = 12
"""Nearest documents of all, among which instructions compete.

With 100 preferences of PrefEval in each tuning conversation, any@10 of their requests and of questions about the talk:
.748, .859; with the nearest 30 about .758, .854; without this step .712, .862."""
_NEARER: Final = 0.05
"""Cosine by which a hit has to be nearer than an instruction to keep its place."""


class MatchEvidence(NamedTuple):
    """Raw evidence that a hit matches a question.

    Attributes:
        share: Share of the question's content words in the hit, 0..1.
        cosine: Cosine between question and hit, -1..1; None without an embedding.
        has_identifier: True if the hit has an identifier of the question.
        coverage: As `share`, each word weighted by its rarity; one that no memory has weighs as one of a single memory.
        missing: Weighted share of the question's words that other memories have and the hit lacks, 0..1.
    """

    share: float
    cosine: float | None = None
    has_identifier: bool = False
    coverage: float = 0.0
    missing: float = 0.0

    @property
    def strength(self) -> float:
        """The larger of share and cosine, 0..1."""
        return max(self.share, min(1.0, self.cosine or 0.0))

    @property
    def match(self) -> Match:
        """The grade of the hit."""
        if self.cosine is None:
            is_near = self.share >= STRONG_SHARE
        else:
            is_near = self.cosine >= STRONG_COSINE or self.coverage >= STRONG_SHARE
        return "strong" if (is_near or self.has_identifier) and self.missing <= MAX_MISSING else "weak"


def rank(search: SearchContext) -> Ranking:
    """Rank by words and, when there are cosines, by embeddings."""
    limit, explain = search.request.limit, search.request.explain
    lists = find(search)
    if not (lists.words or lists.near) and search.cosines is not None and search.settings.similarity_threshold is None:
        search = replace(search, floor=LEAST_COSINE, least=LEAST_COSINE)
        lists = find(search)
    evidence = _evidence(search, lists, _pool(search, lists))
    now = search.request.now.timestamp()
    scored = sorted([_key(search, record_id, candidate, now) for record_id, candidate in evidence.items()])
    if lists.near:
        scored = _place_instructions(search, scored, evidence, [record_id for record_id, _ in lists.near[:_NEAREST]])
    # Use can lift a score above 1; one divisor for the whole answer keeps the order.
    scale = max(1.0, -scored[0][0]) if scored else 1.0
    matches = get_match_evidence(search, evidence, [key[2] for key in scored[: max(limit, GRADED)]])
    hits = tuple([_hit(search, key, evidence[key[2]], now, scale, matches[key[2]]) for key in scored[:limit]])
    late: Iterable[_Key] = scored[limit : limit + search.limits.rejections] if explain else ()
    rejected = [
        RejectedHit(key[2], "beyond_limit", _hit(search, key, evidence[key[2]], now, scale).parts) for key in late
    ]
    if explain:
        rejected += _left_out(search, lists, evidence)
    neighbours = sum(hit.bm25 <= 0 and _match_type(hit, search.floor) == "keyword" for hit in evidence.values())
    total = lists.total + neighbours
    mode: SearchMode = "keyword" if search.cosines is None else "hybrid"
    first = [replace(hit, pieces=search.get_pieces(hit.id)) for hit in hits[: search.limits.excerpted]]
    hits = (*first, *hits[search.limits.excerpted :])
    match, strength = (
        get_answer_match(matches.values()),
        max((match.strength for match in matches.values()), default=0.0),
    )
    return Ranking(hits, total, mode, tuple(rejected), match, strength, weigh_words(search))


def _place_instructions(
    search: SearchContext, scored: list[_Key], evidence: Mapping[str, RankEvidence], nearest: Sequence[str]
) -> list[_Key]:
    """Move up to three standing instructions to `INSTRUCTION_PLACES`.

    "Book me a flight" and "I prefer aisle seats" share no word, so notes on flights score higher. Instructions among
    the nearest documents therefore compete by cosine alone. A strong match keeps its place, and stays in the first ten.
    """
    documents = [search.corpus.parts[record_id].document for record_id in nearest]
    waiting = [document.id for document in documents if document.trust != "low" and _is_instruction(document)]
    waiting, keys = waiting[: len(INSTRUCTION_PLACES)], list(scored)
    for place in INSTRUCTION_PLACES:
        before = {key[2] for key in keys[:place]}
        instruction = next((record_id for record_id in waiting if record_id not in before), None)
        if instruction is None or len(keys) < place:
            break
        holder, last = keys[place - 1], keys[min(len(keys), GRADED) - 1]
        ousted = {holder[2]} if instruction in {key[2] for key in keys[:GRADED]} else {holder[2], last[2]}
        if holder[2] in waiting or not _is_as_near(search, evidence[instruction], evidence[holder[2]]):
            continue
        if any(match.match == "strong" for match in get_match_evidence(search, evidence, ousted).values()):
            continue
        keys = [key for key in keys if key[2] != instruction]
        keys.insert(place - 1, (holder[0], -search.corpus.parts[instruction].moment, instruction))
        evidence[instruction].moved_to = place
    return keys


def _is_instruction(document: Document) -> bool:
    return any(("category", category) in document.facets for category in INSTRUCTION_CATEGORIES)


def _is_as_near(search: SearchContext, instruction: RankEvidence, holder: RankEvidence) -> bool:
    """Return True if an instruction is about as near as a hit.

    It is not if only the hit is of the time that the question names.
    """
    if instruction.cosine is None or holder.cosine is None:
        return False
    is_timely = holder.place == "within" and instruction.place != "within"
    return not is_timely and (holder.cosine - instruction.cosine) * search.cosine_scale <= _NEARER


def rank_recent(search: SearchContext) -> Ranking:
    """Answer a query without words with the latest documents.

    Their match is `weak` if the query has a text, which has no searchable word then.
    """
    match: Match | None = "weak" if search.request.text.strip() else None
    now = search.request.now.timestamp()
    latest, total = _latest(search, search.request.limit)
    hits = []
    for entry in latest:
        fresh = fusion.freshness(now - entry.moment, search.settings)
        parts = {"similarity": fusion.RECENT_SIMILARITY, "freshness": fresh}
        strength = None if match is None else 0.0
        hits.append(Hit(entry.document.id, fusion.RECENT_SIMILARITY * fresh, "keyword", parts, match, strength))
    if match is None:
        return Ranking(tuple(hits), total, "keyword")
    return Ranking(tuple(hits), total, "keyword", match="weak" if hits else "none", strength=0.0)


def _latest(search: SearchContext, count: int) -> tuple[list[IndexedDocument], int]:
    """Return the last stored documents and the number that pass the filters."""
    parts = search.corpus.parts
    latest = parts.latest(count, search.masks)
    latest = heapq.nlargest(count, latest, key=lambda entry: (entry.document.timestamp, entry.arrival))
    return latest, parts.count(search.masks)


def _pool(search: SearchContext, lists: CandidateLists) -> list[str]:
    """Return the candidates to read closely.

    They are the best of each list and, in a talk, the neighbours of the very best. Without talk there are none: notes
    of one session need not belong together. If most of a list are of low trust, as many others are read, too.
    """
    among_best = search.limits.with_neighbours
    by_words = lists.words[: search.size]
    by_embedding = [record_id for record_id, _ in lists.near[: search.size]]
    pool = dict.fromkeys([*by_words, *by_embedding])
    corpus = search.corpus
    if _is_crowded(search, by_words) or _is_crowded(search, by_embedding):
        vouched = find(search.above_low_trust())
        near_ids = [record_id for record_id, _ in vouched.near[: search.size]]
        pool |= dict.fromkeys([*vouched.words[: search.size], *near_ids])
    best = dict.fromkeys([*by_words[:among_best], *by_embedding[:among_best]])
    places = corpus.talks.places([corpus.parts[record_id].number for record_id in best])
    for place in places.values() if corpus.holds_talk() else ():
        for neighbour in map(corpus.parts.get_id, place.neighbours):
            if neighbour not in pool and search.admits(neighbour):
                pool[neighbour] = None
    for period in search.within:
        pool |= dict.fromkeys(_find_in_period(period))
    return list(pool)


def _is_crowded(search: SearchContext, best: Sequence[str]) -> bool:
    """Return True if most of a list are of low trust.

    A page may be stored many times in the words of a question.
    """
    parts = search.corpus.parts
    return 2 * sum(parts[record_id].document.trust == "low" for record_id in best) > len(best)


def _find_in_period(search: SearchContext) -> list[str]:
    """Return the candidates of a period, also without a shared word."""
    lists, most = find(search), search.limits.in_period
    all_near = search.cosines is not None and search.corpus.parts.is_embedded  # by any cosine
    wants_latest = search.question.asks_for_period and not all_near
    latest = [entry.document.id for entry in _latest(search, most)[0]] if wants_latest else []
    return [*lists.words[:most], *[record_id for record_id, _ in lists.near[:most]], *latest]


def _evidence(search: SearchContext, lists: CandidateLists, pool: list[str]) -> dict[str, RankEvidence]:
    corpus, question = search.corpus, search.question
    gathered = {record_id: RankEvidence(bm25=score) for record_id, score in search.compute_bm25(pool).items()}
    most = max((candidate.bm25 for candidate in gathered.values()), default=0.0)
    enough = fusion.ENOUGH_WORDS * corpus.words.full_score(question.weights)
    for candidate in gathered.values():
        if most > 0:
            candidate.words = candidate.bm25 / most
            candidate.share = candidate.bm25 / max(most, enough)
    if search.cosines is not None:
        nearest = lists.near[0][1] if lists.near else search.least
        missing = [record_id for record_id in gathered if record_id not in lists.cosines]
        cosines = {**lists.cosines, **search.compute_cosines(missing)}
        for record_id, candidate in gathered.items():
            candidate.cosine = cosine = cosines.get(record_id)
            # A document without a vector yet is judged by its words; it must not lose for being new.
            candidate.dense = candidate.share if cosine is None else fusion.scale(cosine, search.least, nearest)
    for record_id, talk in _talk_evidence(corpus, question, gathered).items():
        gathered[record_id].talk = talk
    if question.periods:
        _place(search, gathered)
    return gathered


def _talk_evidence(
    corpus: SearchCorpus, question: Question, pool: Mapping[str, RankEvidence]
) -> dict[str, TalkEvidence]:
    """Return the evidence of each candidate from its session.

    Empty if no candidate is in a session.

    If some documents are in sessions, one without counts as a session of its own, of full length. Otherwise a turn of
    the best session outranks a fact that answers better: with the facts of `benchmarks.retrieval` in a tuning
    conversation, frac@10 of questions about the facts is .848 without this and .946 with it, and .812 both times for
    questions about the talk.
    """
    entries = {record_id: corpus.parts[record_id] for record_id in pool}
    places = corpus.talks.places(entry.number for entry in entries.values())
    if not places:
        return {}
    windows = {number: (number, *place.neighbours) for number, place in places.items()}
    scores = corpus.words.window_scores(question.weights, windows)
    enough = fusion.ENOUGH_WORDS * corpus.words.full_score(question.weights)
    most = max(enough, *scores.values()) or 1.0
    bases: dict[int, list[float]] = {}
    for record_id, entry in entries.items():
        if entry.number in places:
            bases.setdefault(places[entry.number].session, []).append(fusion.base(pool[record_id]))
    relevances = {session: fusion.session_relevance(values) for session, values in bases.items()}
    greatest = max(relevances.values())
    result = {}
    for record_id, candidate in pool.items():
        entry = entries[record_id]
        place = places.get(entry.number)
        relevance = relevances[place.session] if place is not None else fusion.base(candidate)
        speaker = corpus.talks.speaker(entry.number) if place is not None and question.speakers else ""
        result[record_id] = TalkEvidence(
            window=scores[entry.number] / most if place is not None else candidate.share,
            session=min(1.0, relevance / greatest) if greatest > 0 else 0.0,
            length=entry.length_share if place is not None else 1.0,
            speaker=fusion.speaker_share(speaker or None, question.speakers),
            time=float(question.asks_time and entry.tells_time),
        )
    return result


def _place(search: SearchContext, gathered: dict[str, RankEvidence]) -> None:
    """Set the place of each candidate in the time of the question.

    A candidate that names the dates of the question is within.
    """
    parts, question, now = search.corpus.parts, search.question, search.request.now.timestamp()
    numbers = {parts[record_id].number: record_id for record_id in gathered}
    held = search.corpus.words.held(question.dates, numbers)
    holding = [{numbers[number] for number, _ in held.get(term, ())} for term in question.dates]
    naming = set.intersection(*holding) if holding else set[str]()
    for record_id, candidate in gathered.items():
        moment = parts[record_id].moment
        candidate.place = "within" if record_id in naming else fusion.classify_time(moment, question.periods, now)
        candidate.alone = question.asks_for_period


def _key(search: SearchContext, record_id: str, evidence: RankEvidence, now: float) -> _Key:
    """Return a sort key: best first, then newest, then smallest ID."""
    indexed = search.corpus.parts[record_id]
    factors = _factors(search, indexed, now)
    return -(fusion.similarity(evidence) * math.prod(factors.values())), -indexed.moment, record_id


def _factors(search: SearchContext, indexed: IndexedDocument, now: float) -> dict[str, float]:
    """Return the factors of a similarity: age, use and source."""
    document, settings = indexed.document, search.settings
    return {
        "freshness": fusion.freshness(now - indexed.moment, settings),
        "access": fusion.access(document.access_count, settings),
        "trust": fusion.weigh_trust(document.trust),
    }


def _hit(
    search: SearchContext,
    key: _Key,
    evidence: RankEvidence,
    now: float,
    scale: float,
    match: MatchEvidence | None = None,
) -> Hit:
    factors = _factors(search, search.corpus.parts[key[2]], now)
    parts = {"bm25": evidence.bm25, "similarity": fusion.similarity(evidence)}
    parts |= {name: factor for name, factor in factors.items() if factor != 1 or name in {"freshness", "access"}}
    if evidence.cosine is not None:
        parts["cosine"] = evidence.cosine
    if evidence.talk is not None:
        parts |= evidence.talk._asdict()
    if evidence.moved_to:
        parts["instruction"] = float(evidence.moved_to)
    grade, strength = (None, None) if match is None else (match.match, match.strength)
    if match is not None:
        parts["share"] = match.share
    return Hit(key[2], min(1.0, -key[0] / scale), _match_type(evidence, search.floor), parts, grade, strength)


def _match_type(evidence: RankEvidence, floor: float) -> MatchType:
    if evidence.cosine is None or evidence.cosine < floor:
        return "keyword"
    return "hybrid" if evidence.bm25 > 0 else "vector"


def _left_out(search: SearchContext, lists: CandidateLists, ranked: Iterable[str]) -> list[RejectedHit]:
    most, parts = search.limits.rejections, search.corpus.parts
    shown = lists.filtered[:most]
    if search.cosines is None:
        return [RejectedHit(record_id, "filtered") for record_id in shown]
    cosines = search.compute_cosines(shown)
    filtered = [
        RejectedHit(record_id, "filtered", {"cosine": cosines[record_id]} if record_id in cosines else {})
        for record_id in shown
    ]
    listed = {*lists.filtered, *ranked}
    reach = parts.masks(search.request.filters.reach)
    below_floor = search.cosines.below(search.floor, 4 * most)
    low = {record_id: cosine for record_id, cosine in below_floor if parts.admits(parts[record_id].number, reach)}
    scores = search.compute_bm25(low)
    below = [
        RejectedHit(record_id, "below_floor", {"cosine": cosine})
        for record_id, cosine in low.items()
        if record_id not in listed and scores[record_id] == 0
    ]
    return filtered + below[:most]


def get_match_evidence(
    search: SearchContext, evidence: Mapping[str, RankEvidence], record_ids: Iterable[str]
) -> dict[str, MatchEvidence]:
    """Return the raw evidence for each of `record_ids`."""
    question, words = search.question, search.corpus.words
    numbers = {search.corpus.parts[record_id].number: record_id for record_id in record_ids}
    frequencies = {term: words.frequency(term) for term in question.weights if not is_day_term(term)}
    weights = {term: words.compute_idf(max(1, frequency)) for term, frequency in frequencies.items()}
    shared: dict[str, set[str]] = {record_id: set() for record_id in numbers.values()}
    for term, documents in words.held(weights, numbers).items():
        for number, _ in documents:
            shared[numbers[number]].add(term)
    total = sum(weights.values()) or 1.0
    held_terms = {term for term, frequency in frequencies.items() if frequency}
    has_no_cosine = question.is_unlatin and search.latin_alone
    result = {}
    for record_id, terms in shared.items():
        hit = evidence[record_id]
        cosine = None if has_no_cosine or hit.cosine is None else hit.cosine * search.cosine_scale
        share, has_identifier = len(terms) / max(1, len(weights)), not terms.isdisjoint(question.identifiers)
        coverage = sum(weights[term] for term in terms) / total
        missing = sum(weights[term] for term in held_terms - terms) / total
        result[record_id] = MatchEvidence(share, cosine, has_identifier, coverage, missing)
        if question.asks_for_period and hit.place == "within":
            result[record_id] = MatchEvidence(1.0, cosine, coverage=1.0)
    return result


def get_answer_match(matches: Iterable[MatchEvidence]) -> Match:
    """Return the best grade among `matches`, or "none" if there are none."""
    return max((hit.match for hit in matches), key=("weak", "strong").index, default="none")


def weigh_words(search: SearchContext) -> dict[str, float]:
    """Return each content word of the question with its inverse document frequency."""
    full_score = search.corpus.words.full_score
    weights = search.question.weights.items()
    return {term: full_score({term: weight}) for term, weight in weights if not is_day_term(term)}
