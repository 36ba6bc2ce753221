"""How sure an answer is, and each of its hits, from what a search has found: gathers what `confidence` weighs.

What makes an answer sure is read from documents that vouch for what they say: not from those of low trust, whoever may
have written them, and not from one that merely asks the question. Reads the index, changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_memory.retrieval import confidence, fusion
from agent_memory.retrieval.confidence import Support
from agent_memory.retrieval.dates import is_day_term

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agent_memory.models import Doubt
    from agent_memory.retrieval.candidates import Search
    from agent_memory.retrieval.fusion import Evidence


class _Read(NamedTuple):
    """What some documents tell of a question: what speaks for an answer, and how sure it is."""

    support: Support
    sure: float


class Assurance:
    """What tells how sure an answer is: the nearest document, and the words of the first ones.

    Args:
        search: What was asked.
        evidence: What is known of each candidate.
        ranked: All candidates, best first.

    Attributes:
        coverage: Which of the question's words are found where.
        support: What speaks for the answer.
    """

    def __init__(self, search: Search, evidence: Mapping[str, Evidence], ranked: Sequence[str]) -> None:
        self._search, self._evidence = search, evidence
        documents = search.corpus.documents
        strange = {one for one in ranked if documents[one].document.trust == "low"}
        vouched = [one for one in ranked if one not in strange] if strange else ranked
        near = self._nearest(ranked)
        shown = dict.fromkeys([*ranked[: max(search.request.limit, confidence.ALIKE)], *near[: confidence.FIRST]])
        if strange:
            shown |= dict.fromkeys([*vouched[: confidence.ALIKE], *self._nearest(vouched)[: confidence.FIRST]])
        self.coverage, asking = self._hold(list(shown))
        self._doubts: dict[str, Doubt] = {}
        self._doubts.update(dict.fromkeys(asking, "question"))
        self._doubts.update(dict.fromkeys(strange, "low_trust"))
        self._first = [*near[: confidence.FIRST], *ranked[: confidence.FIRST]]
        self._all = self._read(ranked, near)
        vouched = [one for one in vouched if one not in asking] if asking else vouched
        self._own = self._read(vouched, self._nearest(vouched)) if self._doubts else self._all
        self.support = self._own.support

    def of_answer(self) -> float:
        """Return how sure it is that memory answers the question."""
        return max(self._own.sure, min(self._all.sure, confidence.LIKELY_NONE))

    def doubt(self, least: float) -> Doubt | None:
        """Return what keeps an answer from being as sure as is asked for; None where nothing but its evidence does."""
        if self._all.sure < least:
            return None
        return next((self._doubts[one] for one in self._first if one in self._doubts), None)

    def of_hit(self, record_id: str) -> tuple[float, Support]:
        """Return how sure it is that one of the hits answers the question, and what speaks for it."""
        support = self._support(record_id, [record_id])
        sure = confidence.of_hit(support)
        return min(sure, confidence.LIKELY_NONE) if record_id in self._doubts else sure, support

    def _nearest(self, among: Sequence[str]) -> list[str]:
        """Return some of those nearest by embedding, the nearest first; none where words alone are searched."""
        if self._search.cosines is None:
            return []
        return sorted(among, key=self._cosine, reverse=True)[: confidence.ALIKE]  # of a hundred faster than a heap

    def _hold(self, record_ids: Sequence[str]) -> tuple[confidence.Coverage, set[str]]:
        """Return which of the question's words some documents hold, and those that do nothing but ask it."""
        question, corpus = self._search.question, self._search.corpus
        entries = {one: corpus.documents[one] for one in record_ids}
        numbers = {entry.number: one for one, entry in entries.items()}
        holding: dict[str, set[str]] = {}
        said = dict.fromkeys(record_ids, 0)
        for term, held in corpus.postings.held(question.weights, numbers).items():
            for number, frequency in held:
                holding.setdefault(numbers[number], set()).add(term)
                said[numbers[number]] += 0 if is_day_term(term) else frequency
        coverage = confidence.Coverage(question.weights, corpus.postings.full_score, question.names, holding)
        asking = {
            one
            for one, entry in entries.items()
            if entry.asks and confidence.is_echo(entry.length, said[one], coverage.of([one]))
        }
        return coverage, asking

    def _read(self, ranked: Sequence[str], near: Sequence[str]) -> _Read:
        """Return what some of the candidates, best first, tell of the question; and the nearest of these."""
        support = self._support(next(iter(near or ranked), None), ranked[: confidence.FIRST])
        sure = confidence.of_answer(support)
        none = self._is_asked_of_none(support, near, ranked[: confidence.ALIKE])
        return _Read(support, min(sure, confidence.LIKELY_NONE) if none else sure)

    def _is_asked_of_none(self, support: Support, near: Sequence[str], first: Sequence[str]) -> bool:
        search, postings = self._search, self._search.corpus.postings
        if support.nearness is None or search.question.is_foreign or search.question.asks_for_period:
            return False
        if len(near) < confidence.ALIKE or any(self._evidence[one].talk is not None for one in first[:1]):
            return False  # of a talk no single turn holds what a question says
        words = confidence.Words(
            fusion.scaled(self._cosine(near[-1]), search.least, 1.0),
            support.nearness,
            self.coverage.share(lambda term: postings.frequency(term) > 0),
            max(self.coverage.of([one]) for one in first),
            len(self.coverage),
        )
        return confidence.is_asked_of_none(words)

    def _support(self, nearest: str | None, together: Sequence[str]) -> Support:
        search, question, nearness = self._search, self._search.question, None
        name_only = nearest is not None and self.coverage.is_name_only(nearest)
        # What a question for a time alone has in words says nothing of what was so then.
        within = any(self._evidence[one].place == "within" for one in together)
        covered = float(within) if question.asks_for_period else self.coverage.of(together)
        if search.cosines is not None:
            nearness = fusion.scaled(self._cosine(nearest), search.least, 1.0) if nearest is not None else 0.0
            if question.is_unlatin and search.latin_alone:
                nearness = min(nearness, covered)
        # Words of another language may well be missing; where nothing at all is found, that is no excuse.
        is_foreign = question.is_foreign and bool(nearness or covered)
        return Support(nearness, covered, name_only, is_foreign)

    def _cosine(self, record_id: str) -> float:
        cosine = self._evidence[record_id].cosine
        return self._search.least if cosine is None else cosine
