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


async def recalled(manager: MemoryManager, found: RetrievalResult, query: str, mode: str) -> str:
    """Return what recall prints."""
    if not found.items:
        return f"No relevant memories found for: {query}"
    rows = [
        f"{at}. [{sure:.2f}] {flatten(item.content)}\n"
        f"   Source: {await _source(manager, item)} | Category: {item.category or 'none'}"
        for at, (item, sure) in enumerate(zip(found.items, found.confidence_scores, strict=True), 1)
    ]
    return "\n\n".join([f"Found {len(rows)} relevant memories:", *rows, *_notes(found, mode)])


def remembered(item: MemoryItem) -> str:
    """Return what remember prints."""
    said = [f"Remembered: {item.item_id}", f"Category: {item.category or 'none'}", f"Importance: {item.importance}"]
    return "\n".join([*said, f"Content: {flatten(item.content)[:_PREVIEW]}..."])


async def listed(manager: MemoryManager, most: int | None = None) -> str:
    """Return what list_categories prints."""
    categories = await manager.list_categories()
    counts = await manager.category_layer.count_items()
    theirs = await manager.category_layer.of_strangers()
    rows = [
        f"{at}. {each.name}{_UNTRUSTED * (each.name in theirs)}\n   {flatten(each.description)}\n"
        f"   Items: {counts.get(each.name, 0)}"
        for at, each in enumerate(categories[:most], 1)
    ]
    return "\n\n".join([f"Memory Categories ({len(categories)}):", *rows])


async def page_of(manager: MemoryManager, name: str) -> str:
    """Return what get_category prints.

    Raises:
        CategoryNotFoundError: `not_found` prints it.
    """
    page = await manager.get_category_content(name)
    return "\n".join(visible(line) for line in page.splitlines())


def not_found(error: CategoryNotFoundError) -> str:
    """Return what get_category prints where there is no such topic."""
    there = ", ".join(error.available or ()) or "none"
    lines = [f"Category '{error.category_name}' not found.", f"Available categories: {there}"]
    if error.passages:
        lines.append(
            f"{describe_missing_page(error.category_name, error.passages)} Read them with recall or memory_search."
        )
    return "\n\n".join(lines)


def describe_missing_page(name: str, passages: int) -> str:
    """Return how many passages mention a name without a page."""
    return f'No page "{visible(name)}". {describe_passages(passages)}'


def describe_passages(passages: int) -> str:
    """Return a sentence about how many passages mention a name."""
    return f"{counted(passages, 'passage mentions', 'passages mention') if passages else 'No passage mentions'} it."


async def _source(manager: MemoryManager, item: MemoryItem) -> str:
    """Return of what type the source of an item is."""
    said = "note"
    if item.source_resource_id:
        record = await manager.resource_layer.record(item.source_resource_id)
        said = "deleted" if record is None else record.resource_type
    if item.section:
        said += f", {flatten(item.section)}"
    if item.speaker and not item.content.startswith(f"{item.speaker}: "):
        said += f", said by {flatten(_SPEAKERS.get(item.speaker, item.speaker))}"
    return f"{said}, untrusted" if item.trust == "low" else said


def _notes(found: RetrievalResult, mode: str) -> list[str]:
    """Return in what the answer is weaker than it could be; that no model is there matters to who asked for one."""
    notes = [_WEAK] if found.match == "weak" else []
    scores = [round(sure, 2) for sure in found.confidence_scores]
    if scores != sorted(scores, reverse=True):
        notes.append(_ORDER)
    if found.degraded and (mode == "llm" or found.degraded != NO_MODEL):
        notes.append(found.degraded)
    return [f"Note: {' '.join(notes)}"] if notes else []
