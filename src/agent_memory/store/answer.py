"""From a ranking of ids to an answer of records. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic

from agent_memory.index import Rejected
from agent_memory.models.kind import R
from agent_memory.store.replacements import path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.index import Hit, Ranking
    from agent_memory.models import SearchRequest, Surroundings
    from agent_memory.times import Period

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
