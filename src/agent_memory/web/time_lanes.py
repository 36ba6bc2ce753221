"""Time: lanes of memories that replaced each other, as bars."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import UnsupportedError, ValidationError
from agent_memory.models import Listing, filters_of, to_text, utc_now
from agent_memory.models.clock import parse_bound
from agent_memory.web.page_view import PageView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from agent_memory.memory import MemoryService
    from agent_memory.memory.history import PastMemories
    from agent_memory.models import Memory, RecordState
    from agent_memory.web.page_view import PageSession

_MAX_RECORDS: Final = 500
_MAX_SUBJECTS: Final = 30
_TICKS: Final = 6
_EVERY_STATE: Final[frozenset[RecordState]] = frozenset({"valid", "superseded", "expired"})
_NONE: Final = "-"
"""Subject of memories without a project."""
_LEAST_WIDTH: Final = 0.4
"""Least width of a bar, in percent, so that a click hits it."""


async def show_time(page: PageSession, request: Request) -> PageView:
    """Show lanes of a subject, now or after an earlier change."""
    service, query = await page.open(), request.query_params
    asked = {name: query.get(name, "").strip() for name in ("q", "project", "as_of")}
    past = await load_past(service, asked["as_of"], limit=_MAX_RECORDS) if asked["as_of"] else None
    if past is not None:
        memories, replaced = [*past.memories], past.replaced_by
        memories = [memory for memory in memories if _is_of_subject(memory, asked)]
    else:
        memories, replaced = await _load_present(service, page, asked)
    end = datetime.fromisoformat(past.at) if past is not None and past.at else utc_now()
    lanes = _build_lanes(memories, replaced, end)
    tally = await service.storage.tally()
    return PageView(
        "time",
        {
            "agent_id": page.agent_id,
            "asked": asked,
            "past": None if past is None else view_past(past),
            "changes": await _load_range(service),
            "projects": dict(tally.by_facet["project"].most_common(_MAX_SUBJECTS))
            if "project" in tally.by_facet
            else {},
            "shown": len(memories),
            "stored": tally.records if past is None else past.total,
            **_place_lanes(lanes, end),
        },
    )


async def load_past(service: MemoryService, as_of: str, *, offset: int = 0, limit: int = _MAX_RECORDS) -> PastMemories:
    """Return the memories after a change or day.

    Raises:
        ValidationError: It is neither a number nor a day.
    """
    if as_of.isascii() and as_of.isdigit() and len(as_of) < 16:  # noqa: PLR2004 - beyond any number of a change
        return await service.history.list_past(int(as_of), offset=offset, limit=limit)
    try:
        moment = parse_bound(as_of, end=True, is_ahead=False)
    except ValueError as error:
        raise ValidationError(f"{error}.", code="invalid_filter", recovery="Write a day as 2026-01-30.") from None
    return await service.history.list_past(moment=moment, offset=offset, limit=limit)


def view_past(past: PastMemories) -> dict[str, Any]:
    """Return number, time and range of an earlier state."""
    return {"seq": past.seq, "at": past.at, "first": past.first, "last": past.last, "total": past.total}


async def _load_range(service: MemoryService) -> dict[str, Any] | None:
    try:
        return view_past(await service.history.list_past(0, limit=0))
    except UnsupportedError:  # a server keeps no versions
        return None


def _is_of_subject(memory: Memory, asked: dict[str, str]) -> bool:
    is_of_project = asked["project"] in {"", memory.project or _NONE}
    return is_of_project and asked["q"].casefold() in memory.content.casefold()


async def _load_present(
    service: MemoryService, page: PageSession, asked: dict[str, str]
) -> tuple[list[Memory], dict[str, str]]:
    """Return the memories of a subject with those that they replaced."""
    storage = service.storage
    filters = filters_of({"project": asked["project"]} if asked["project"] not in {"", _NONE} else {})
    if asked["q"]:
        hits = (await service.search(asked["q"], 50, filters, caller=page.caller)).results
        memories = [hit.memory for hit in hits]
        older = [older_id for memory in memories for older_id in await storage.older_versions(memory.id)]
        memories += (await storage.get_many(older)).values()
    else:
        listing = Listing("newest", filters, _EVERY_STATE, limit=_MAX_RECORDS)
        memories = list((await storage.browse(listing)).records)
    if asked["project"] == _NONE:
        memories = [memory for memory in memories if not memory.project]
    return memories, await storage.replaced_by([memory.id for memory in memories])


def _build_lanes(memories: Sequence[Memory], replaced: dict[str, str], end: datetime) -> list[list[dict[str, Any]]]:
    """Return chains of memories, the oldest of each first."""
    by_id = {memory.id: memory for memory in memories}
    lanes: dict[str, list[dict[str, Any]]] = {}
    for memory in sorted(by_id.values(), key=_get_begin):
        newer = by_id.get(replaced.get(memory.id, ""))
        until = memory.expires_at if newer is None else _get_begin(newer)
        head, seen = memory.id, {memory.id}
        while (following := replaced.get(head)) in by_id and following not in seen:
            head = following
            seen.add(head)
        bar = {
            "id": memory.id,
            "content": memory.content,
            "project": memory.project or "",
            "trust": memory.trust,
            "begin": _get_begin(memory),
            "end": until,
            "is_over": memory.id in replaced or (until is not None and until < end),
        }
        lanes.setdefault(head, []).append(bar)
    return sorted(lanes.values(), key=lambda lane: lane[-1]["begin"], reverse=True)


def _get_begin(memory: Memory) -> datetime:
    return (memory.observed_at or memory.timestamp).astimezone(UTC)


def _place_lanes(lanes: list[list[dict[str, Any]]], end: datetime) -> dict[str, Any]:
    """Return lanes with places in percent of the shown time, by subject."""
    first = min((bar["begin"] for lane in lanes for bar in lane), default=end - timedelta(days=1))
    span = max((end - first).total_seconds(), 1.0)

    def place(moment: datetime) -> float:
        return round(100 * min(max((moment - first).total_seconds() / span, 0.0), 1.0), 2)

    subjects: dict[str, list[dict[str, Any]]] = {}
    for lane in lanes:
        bars = [{**bar, **_place_bar(bar, place, end)} for bar in lane]
        subjects.setdefault(lane[-1]["project"], []).append({"label": lane[-1]["content"], "bars": bars})
    ticks = [first + timedelta(seconds=span * number / (_TICKS - 1)) for number in range(_TICKS)]
    return {
        "subjects": [{"name": name, "lanes": rows} for name, rows in sorted(subjects.items())],
        "ticks": [{"x": place(tick), "day": f"{tick.astimezone():%Y-%m-%d}"} for tick in ticks],
    }


def _place_bar(bar: dict[str, Any], place: Any, end: datetime) -> dict[str, Any]:
    until = bar["end"]
    begin, width = place(bar["begin"]), place(until or end) - place(bar["begin"])
    width = max(round(width, 2), _LEAST_WIDTH)
    return {
        "x": min(begin, 100 - _LEAST_WIDTH),
        "width": width,
        "begin": to_text(bar["begin"]),
        "end": None if until is None else to_text(until),
    }
