"""Topics and people: pages with their quotes, entities with a graph, turns."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnknownIdError
from agent_memory.knowledge.entities.entity_repository import EntityReader
from agent_memory.knowledge.pages.page import PageClaim, parse, unescape
from agent_memory.knowledge.pages.page_items import get_title
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pages.subjects import FILE
from agent_memory.knowledge.passages.forgotten_texts import ForgottenTexts
from agent_memory.models import to_text
from agent_memory.redaction import quoted
from agent_memory.web.page_view import PageView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request

    from agent_memory.knowledge.entities.entity_repository import MergedEntity, TimelineEntry
    from agent_memory.knowledge.pages.page import Footnote, Line
    from agent_memory.models import Episode, Topic
    from agent_memory.web.page_view import PageSession

_MAX_ENTITIES: Final = 100
_MAX_NODES: Final = 60
_MAX_ENTRIES: Final = 200
_TOGETHER: Final = "named together"
_AROUND: Final = 5
"""Turns before and after a quoted one."""
_INNER_NODES: Final = 20
"""Nodes of the inner ring of a graph; further ones are in the outer ring."""
_CENTER: Final = (360.0, 260.0)
_RADII: Final = ((230.0, 150.0), (330.0, 235.0))


async def show_topics(page: PageSession, _request: Request) -> PageView:
    """List the topics with a page, and the entities."""
    service = await page.open()
    async with page.open_knowledge() as knowledge:
        shown = await Pages(knowledge, service).list_shown()
        entities = await EntityReader(knowledge).all()
    titles = Counter(map(get_title, shown))
    topics = [
        {
            "name": topic.name,
            "title": _name_topic(topic, titles),
            "description": topic.description,
            "items": len(topic.item_ids),
        }
        for topic in sorted(shown, key=lambda topic: (-len(topic.item_ids), topic.name))
    ]
    rows = [
        {
            "id": merged.entity.id,
            "name": merged.entity.name,
            "type": merged.entity.entity_type,
            "texts": merged.mentions,
        }
        for merged in entities[:_MAX_ENTITIES]
    ]
    data = {"agent_id": page.agent_id, "topics": topics, "entities": rows, "entity_count": len(entities)}
    return PageView("topics", data)


def _name_topic(topic: Topic, titles: Mapping[str, int]) -> str:
    """Return a title, with the file if the title is not unique."""
    title, file = get_title(topic), str(topic.metadata.get(FILE, ""))
    return f"{title} ({file})" if file and titles[title] > 1 else title


async def show_topic(page: PageSession, request: Request) -> PageView:
    """Show the page of a topic, each claim with its quotes."""
    service, name = await page.open(), request.path_params["name"]
    async with page.open_knowledge() as knowledge:
        pages = Pages(knowledge, service)
        topic = await pages.get_by_name(name)
        if topic is None:
            raise UnknownIdError(f"No topic {quoted(name)}.", recovery="Topics lists all of them.")
        text = await pages.get_text(topic)
    content = parse(text) if text else None
    notes: list[dict[str, Any]] = []
    sections = [
        {"title": section.title, "lines": [_view_line(line, notes) for line in section.lines]}
        for section in (content.sections if content else ())
    ]
    data = {"agent_id": page.agent_id, "name": name, "title": get_title(topic), "description": topic.description}
    made_at = None if topic.consolidated_at is None else to_text(topic.consolidated_at)
    return PageView("topic", {**data, "made_at": made_at, "sections": sections, "notes": notes})


def _view_line(line: Line, notes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a line of a page; add its footnotes."""
    if not isinstance(line, PageClaim):
        return {"text": unescape(line.text), "numbers": [], "said": None, "is_untrusted": False, "is_own": True}
    first = len(notes) + 1
    notes += [_view_note(note) for note in line.notes]
    return {
        "text": line.text,
        "numbers": list(range(first, len(notes) + 1)),
        "said": None if line.said is None else line.said.isoformat(),
        "is_untrusted": line.is_untrusted,
        "is_own": line.is_by_hand,
    }


def _view_note(note: Footnote) -> dict[str, Any]:
    address = f"/turns/{note.source}" if note.source.startswith("epi-") else f"/why/{note.item or note.source}"
    return {"label": note.label or note.source, "quote": note.quote, "address": address, "item": note.item}


async def show_turn(page: PageSession, request: Request) -> PageView:
    """Show a turn in its conversation."""
    service, turn_id = await page.open(), request.path_params["turn_id"]
    async with page.open_knowledge() as knowledge:
        turn = await knowledge.episodes.get(turn_id)
        if turn is None:
            raise UnknownIdError(f"No turn {quoted(turn_id)}.", recovery="It may have been forgotten.")
        talk = None if turn.conversation is None else await knowledge.resources.get(turn.conversation)
        turns = [turn] if talk is None else await knowledge.episodes.linked_to(talk.id)
        turns = await ForgottenTexts(knowledge, service).filter_turns(sorted(turns, key=lambda shown: shown.order))
    place = next((place for place, shown in enumerate(turns) if shown.id == turn_id), None)
    if place is None:
        raise UnknownIdError("This turn was forgotten.", recovery="Forget lists what can be restored.")
    around = turns[max(0, place - _AROUND) : place + _AROUND + 1]
    title = talk.title if talk is not None else ""
    rows = [_view_turn(shown, is_quoted=shown.id == turn_id) for shown in around]
    return PageView("turn", {"agent_id": page.agent_id, "id": turn_id, "title": title, "turns": rows})


def _view_turn(turn: Episode, *, is_quoted: bool) -> dict[str, Any]:
    return {
        "id": turn.id,
        "speaker": turn.speaker or turn.event_type or turn.role,
        "content": turn.content,
        "at": to_text(turn.moment),
        "trust": turn.trust,
        "is_quoted": is_quoted,
    }


async def show_entity(page: PageSession, request: Request) -> PageView:
    """Show an entity: its facts in order, and a graph."""
    entity_id = request.path_params["entity_id"]
    await page.open()
    async with page.open_knowledge() as knowledge:
        reader = EntityReader(knowledge)
        merged = await reader.get(entity_id)
        entries = await reader.timeline(merged)
        everything = await reader.all()
    by_id = {entity.id: related for related in everything for entity in (related.entity, *related.merged)}
    by_name = {related.entity.name: related.entity.id for related in everything}
    nodes = _place_nodes(_list_related(merged, entries, by_id), by_name)
    return PageView(
        "entity",
        {
            "agent_id": page.agent_id,
            "id": merged.entity.id,
            "name": merged.entity.name,
            "type": merged.entity.entity_type,
            "names": list(merged.names[1:]),
            "texts": merged.mentions,
            "timeline": [_view_entry(entry) for entry in entries[-_MAX_ENTRIES:]],
            "entry_count": len(entries),
            "nodes": nodes,
            "center": _CENTER,
        },
    )


def _view_entry(entry: TimelineEntry) -> dict[str, Any]:
    return {
        "at": to_text(entry.at),
        "until": None if entry.until is None else to_text(entry.until),
        "what": entry.what.replace("_", " "),
        "other": entry.other,
        "text": entry.text,
        "trust": entry.trust,
        "address": f"/turns/{entry.source}" if entry.source.startswith("epi-") else f"/why/{entry.source}",
    }


def _list_related(
    merged: MergedEntity, entries: Iterable[TimelineEntry], by_id: dict[str, MergedEntity]
) -> dict[str, set[str]]:
    """Return the relations to other entities by name, the most frequent first."""
    counts: Counter[str] = Counter()
    related: dict[str, set[str]] = {}
    for entry in entries:
        pairs = [(entry.other, entry.what.replace("_", " "))] if entry.other else []
        named = [
            by_id[entity_id].entity
            for entity_id in (entry.record.entities if entry.record else ())
            if entity_id in by_id
        ]
        for name, relation in [
            *pairs,
            *((entity.name, _TOGETHER) for entity in named if entity.id != merged.entity.id),
        ]:
            related.setdefault(name, set()).add(relation)
            counts[name] += 1
    return {name: related[name] for name, _ in counts.most_common(_MAX_NODES - 1)}


def _place_nodes(related: dict[str, set[str]], by_name: dict[str, str]) -> list[dict[str, Any]]:
    """Return the related entities on two rings around the center."""
    nodes = []
    for place, (name, relations) in enumerate(related.items()):
        ring = int(place >= _INNER_NODES)
        count = len(related) - _INNER_NODES if ring else min(len(related), _INNER_NODES)
        angle = 2 * math.pi * (place - _INNER_NODES * ring) / count - math.pi / 2
        x = round(_CENTER[0] + _RADII[ring][0] * math.cos(angle), 1)
        y = round(_CENTER[1] + _RADII[ring][1] * math.sin(angle), 1)
        named = sorted(relations - {_TOGETHER}) or [_TOGETHER]
        nodes.append({"name": name, "id": by_name.get(name), "relations": named, "x": x, "y": y})
    return nodes
