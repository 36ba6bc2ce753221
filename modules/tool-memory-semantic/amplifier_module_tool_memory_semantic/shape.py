"""How memories look to a model: plain dicts with explicit counts, never a bare list, no value JSON cannot carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.models import to_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agent_memory.models import Memory, MemorySearchResult

MAX_CHARS: Final = 40_000
"""Of the memories in one answer, some 10,000 tokens: a hundred hits may hold a million characters."""


def fitting(shaped: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the first of these memories, at least one, whose texts fit into an answer.

    The second value joins the answer: empty, or how many were left out, and what to do.
    """
    all_of_them = list(shaped)
    shown, chars = 0, 0
    for memory in all_of_them:
        chars += len(memory["content"])
        if shown and chars > MAX_CHARS:
            break
        shown += 1
    left = len(all_of_them) - shown
    note = f"{left} more would make this answer too long; ask for fewer, or more narrowly."
    return all_of_them[:shown], {"left_out": note} if left else {}


def shape_moment(moment: datetime) -> str:
    """Return a moment as ISO 8601 text, to the second: more is of no use to a model."""
    return to_text(moment.replace(microsecond=0))


def shape_memory(memory: Memory) -> dict[str, Any]:
    """Return what a model needs of a memory; trust and pin only where they say something."""
    shaped: dict[str, Any] = {
        "id": memory.id,
        "content": visible(memory.content),
        "category": memory.category,
        "tags": list(memory.tags),
        "timestamp": shape_moment(memory.timestamp),
        "access_count": memory.access_count,
    }
    if memory.pinned:
        shaped["pinned"] = True
    if memory.trust == "low":
        shaped["trust"] = "low"
    return shaped


def shape_result(result: MemorySearchResult, *, explain: bool, superseded_by: str | None = None) -> dict[str, Any]:
    """Return one hit, with the parts of its score if asked to explain."""
    shaped = {
        **shape_memory(result.memory),
        "relevance_score": round(result.relevance_score, 4),
        "match_type": result.match_type,
    }
    if superseded_by:
        shaped["superseded_by"] = superseded_by
    if explain:
        shaped["parts"] = rounded(result.parts)
    return shaped


def rounded(parts: dict[str, float]) -> dict[str, float]:
    """Return score parts with four decimals."""
    return {name: round(value, 4) for name, value in parts.items()}
