"""A topic's page in Markdown: each item a line, with a footnote that names what it was drawn from. Pure."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.shapes import source_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from agent_memory.models import Memory
    from agent_memory.models import Resource as ResourceRecord

_SECTIONS: Final = {
    "preference": "Preferences",
    "decision": "Decisions",
    "task": "Tasks",
    "question": "Questions",
    "bugfix": "Fixes",
    "pattern": "Patterns",
    "discovery": "Discoveries",
    "insight": "Insights",
    "note": "Facts",
}


def page_of(name: str, items: Sequence[Memory], sources: Mapping[str, ResourceRecord | None], now: datetime) -> str:
    """Return the page of a topic.

    Args:
        name: The topic's.
        items: What it is made of, the oldest first.
        sources: For each id that an item names as its source, the resource; None for one that is gone.
        now: When it is made.
    """
    title = name.replace("_", " ").title()
    if not items:
        return f"# {title}\n\n*No items yet.*"
    numbers: dict[str, int] = {}
    sections: defaultdict[str, list[str]] = defaultdict(list)
    for item in items:
        number = numbers.setdefault(source_of(item), len(numbers) + 1)
        said = " ".join(item.content.split())
        sections[_SECTIONS.get(item.category, item.category.replace("_", " ").title())].append(f"- {said} [^{number}]")
    parts = [f"# {title}"]
    order = [*_SECTIONS.values(), *sorted(sections.keys() - set(_SECTIONS.values()))]
    parts += [f"## {section}\n\n" + "\n".join(sections[section]) for section in order if section in sections]
    notes = "\n".join(f"[^{number}]: {_named(source, sources.get(source))}" for source, number in numbers.items())
    living = sum(resource is not None for resource in sources.values())
    stamp = f"*Last consolidated: {now:%Y-%m-%d %H:%M:%S}*\n*Items: {len(items)} | Resources: {living}*"
    return "\n\n".join([*parts, "---", f"## Sources\n\n{notes}", f"---\n{stamp}"]) + "\n"


def _named(source: str, resource: ResourceRecord | None) -> str:
    if not source:
        return "Noted by the agent"
    if resource is None:
        return f"Extracted from what was deleted since ({source})"
    title = f" {' '.join(resource.title.split())!r}" if resource.title else ""
    return f"Extracted from {resource.resource_type}{title} ({source})"
