"""How memories look to a model: plain dicts with explicit counts, never a bare list, no value JSON cannot carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_memory.models import to_text, visible

if TYPE_CHECKING:
    from agent_memory.models import Memory, MemorySearchResult


def shape_memory(memory: Memory) -> dict[str, Any]:
    """Return what a model needs of a memory; trust and pin only where they say something."""
    shaped: dict[str, Any] = {
        "id": memory.id,
        "content": visible(memory.content),
        "category": memory.category,
        "tags": list(memory.tags),
        "timestamp": to_text(memory.timestamp),
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
