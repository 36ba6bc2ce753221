"""Texts that the knowledge tools print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.files.wording import counted
from agent_memory.knowledge.llm.language_model import NO_MODEL
from agent_memory.models import flatten, visible

if TYPE_CHECKING:
    from agent_memory.errors import CategoryNotFoundError
    from agent_memory.knowledge import MemoryItem, MemoryManager, RetrievalResult


_PREVIEW: Final = 100
_SPEAKERS: Final = {"user": "the user", "assistant": "the assistant"}
"""Of roles."""
_ORDER: Final = "The best result comes first; the number is how well its words or meaning match."
_UNTRUSTED: Final = " (from untrusted sources)"
_WEAK: Final = "No confident match; these are the closest results."


async def render_recall(manager: MemoryManager, result: RetrievalResult, query: str, mode: str) -> str:
    """Return the answer of recall."""
    if not result.items:
        return f"No relevant memories found for: {query}"
    rows = [
        f"{number}. [{sure:.2f}] {flatten(item.content)}\n"
        f"   Source: {await _source(manager, item)} | Category: {item.category or 'none'}"
        for number, (item, sure) in enumerate(zip(result.items, result.confidence_scores, strict=True), 1)
    ]
    return "\n\n".join([f"Found {len(rows)} relevant memories:", *rows, *_notes(result, mode)])


def render_remember(item: MemoryItem) -> str:
    """Return the answer of remember."""
    lines = [f"Remembered: {item.item_id}", f"Category: {item.category or 'none'}", f"Importance: {item.importance}"]
    return "\n".join([*lines, f"Content: {flatten(item.content)[:_PREVIEW]}..."])


async def render_categories(manager: MemoryManager, most: int | None = None) -> str:
    """Return the answer of list_categories."""
    categories = await manager.list_categories()
    counts = await manager.category_layer.count_items()
    theirs = await manager.category_layer.of_strangers()
    rows = [
        f"{number}. {category.name}{_UNTRUSTED * (category.name in theirs)}\n   {flatten(category.description)}\n"
        f"   Items: {counts.get(category.name, 0)}"
        for number, category in enumerate(categories[:most], 1)
    ]
    return "\n\n".join([f"Memory Categories ({len(categories)}):", *rows])


async def render_page(manager: MemoryManager, name: str) -> str:
    """Return the answer of get_category.

    Raises:
        CategoryNotFoundError: `not_found` prints it.
    """
    page = await manager.get_category_content(name)
    return "\n".join(visible(line) for line in page.splitlines())


def not_found(error: CategoryNotFoundError) -> str:
    """Return the answer of get_category for an unknown topic."""
    available = ", ".join(error.available or ()) or "none"
    lines = [f"Category '{error.category_name}' not found.", f"Available categories: {available}"]
    if error.passages:
        lines.append(
            f"{describe_missing_page(error.category_name, error.passages)} Read them with recall or memory_search."
        )
    return "\n\n".join(lines)


def describe_missing_page(name: str, passages: int) -> str:
    """Return a sentence about a name without a page."""
    return f'No page "{visible(name)}". {describe_passages(passages)}'


def describe_passages(passages: int) -> str:
    """Return a sentence about how many passages mention a name."""
    return f"{counted(passages, 'passage mentions', 'passages mention') if passages else 'No passage mentions'} it."


async def _source(manager: MemoryManager, item: MemoryItem) -> str:
    """Return type, section and speaker of an item's source."""
    description = "note"
    if item.source_resource_id:
        record = await manager.resource_layer.record(item.source_resource_id)
        description = "deleted" if record is None else record.resource_type
    if item.section:
        description += f", {flatten(item.section)}"
    if item.speaker and not item.content.startswith(f"{item.speaker}: "):
        description += f", said by {flatten(_SPEAKERS.get(item.speaker, item.speaker))}"
    return f"{description}, untrusted" if item.trust == "low" else description


def _notes(result: RetrievalResult, mode: str) -> list[str]:
    """Return notes about weaknesses of an answer."""
    notes = [_WEAK] if result.match == "weak" else []
    scores = [round(sure, 2) for sure in result.confidence_scores]
    if scores != sorted(scores, reverse=True):
        notes.append(_ORDER)
    if result.degraded and (mode == "llm" or result.degraded != NO_MODEL):
        notes.append(result.degraded)
    return [f"Note: {' '.join(notes)}"] if notes else []
