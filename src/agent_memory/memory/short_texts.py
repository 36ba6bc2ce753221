"""Short texts of an answer: excerpts, titles and lines. No I/O."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.models import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.models import LinkedRecord, MemorySearchResult, SearchResults

ROOM: Final = 820
"""Characters of the texts in one answer; most take less."""
WHOLE: Final = 160
"""Length of a text that is shown whole."""
TITLE: Final = 40
"""Characters of a linked memory."""
LINKS: Final = 3
"""Links of one hit."""

_LEAST_ROOM: Final = 100
_LESS: Final = 0.55
_LEAST_FOR_TEXTS: Final = 480
_FIRST: Final = 5
_FEW: Final = 3
_NEAR, _NEAR_IF_STRONG, _NEAR_BEHIND, _AS_STRONG = 0.3, 0.6, 0.9, 0.8


def shorten(results: SearchResults, *, explain: bool = False) -> None:
    """Mark hits near the best one; add excerpts to long ones.

    All hits of a listing are near, and so are up to three short ones without others. The stronger the best match is,
    the nearer the others have to be, unless they match as strongly.
    """
    if results and results.match is not None and not _are_few(results):
        _mark_near(results, explain=explain)
    near = [rank for rank, hit in enumerate(results) if hit.is_near]
    from agent_memory.index import excerpt  # reads dates and words, for long texts

    spare = 0  # characters that earlier excerpts did not use
    for rank, room in zip(near, _divide_room([results[rank] for rank in near]), strict=True):
        hit, text = results[rank], results[rank].memory.content
        if len(text) <= room:
            continue
        shown = text if len(text) <= WHOLE else excerpt(text, results.words, room + spare, hit.pieces)
        spare = max(0, room + spare - len(shown))
        results[rank] = hit.model_copy(update={"excerpt": shown} if len(shown) < len(text) else {})


def _are_few(results: SearchResults) -> bool:
    """Return True if all hits are few and short."""
    return results.total_found <= _FEW and sum(len(hit.memory.content) for hit in results) <= _LEAST_FOR_TEXTS


def _mark_near(results: SearchResults, *, explain: bool) -> None:
    best, strongest = results[0].relevance_score, max(hit.answer_confidence or 0.0 for hit in results)
    for rank, hit in enumerate(results):
        if rank < _FIRST:
            is_as_strong = (hit.answer_confidence or 0.0) >= _AS_STRONG * strongest > 0
            is_near = is_as_strong or hit.relevance_score >= best * (_NEAR + _NEAR_IF_STRONG * strongest)
        else:
            is_near = hit.relevance_score >= best * _NEAR_BEHIND
        if not is_near:
            results[rank] = hit.model_copy(update={"is_near": False})
            results.rejected += [{"id": hit.memory.id, "reason": "not_near", "parts": hit.parts}] if explain else []
    if not results[-1].is_near:  # nor is any later one
        for rejected in results.rejected:
            if rejected["reason"] == "beyond_limit":
                rejected["reason"] = "not_near"


def shown_links(hit: MemorySearchResult) -> list[LinkedRecord]:
    """Return the links to show with a hit."""
    return list(islice(hit.surroundings.links, LINKS))


def title_of(text: str) -> str:
    """Return the beginning of a text's first line."""
    return shorten_line(visible(text.strip().partition("\n")[0]), TITLE)


def shorten_line(text: str, max_chars: int) -> str:
    """Return a text as one line, cut with `…`."""
    line = text.strip().replace("\n", " ")
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def _divide_room(hits: Sequence[MemorySearchResult]) -> list[int]:
    """Return the characters for each hit, fewer from rank to rank."""
    titles = sum(len(title_of(link.text)) for hit in hits for link in shown_links(hit))
    left, rooms = float(max(_LEAST_FOR_TEXTS, ROOM - titles)), [0] * len(hits)
    weights = [_LESS**rank for rank in range(len(hits))]
    sizes = [len(hit.memory.content) for hit in hits]
    waiting = sorted(range(len(hits)), key=lambda rank: sizes[rank] / weights[rank])  # the shortest first
    for position, rank in enumerate(waiting):
        share = left * weights[rank] / sum(weights[other] for other in waiting[position:])
        rooms[rank] = int(max(_LEAST_ROOM, share))
        left = max(0.0, left - min(sizes[rank], rooms[rank]))
    return rooms
