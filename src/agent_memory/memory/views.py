"""JSON of memories, hits and answers, for tools, commands and the page.

Whole for programs, or brief for a model: ID, content, date, and the fields that differ from their default.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.wording import counted
from agent_memory.models import ACCESS, MEMORY, to_text, visible
from agent_memory.models.clock import FILE_TIME
from agent_memory.models.identifiers import INSTRUCTION_CATEGORIES
from agent_memory.models.record import describe_origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from agent_memory.memory.forget_service import ForgetCandidate, ForgetCandidates, Preview
    from agent_memory.memory.results import ForgottenMany, Found, Promoted, Suspect
    from agent_memory.models import (
        LinkedRecord,
        Memory,
        MemorySearchResult,
        Record,
        RecordVersion,
        SearchResults,
        Surroundings,
        Trace,
    )


_SIMILAR_CHARS: Final = (300, 110, 50)
"""Characters of each similar memory where there are one, two or three."""
_CANDIDATE_CHARS: Final = 500
"""Characters of each candidate for forgetting."""
_FORGOTTEN_CHARS: Final = 300
"""Characters of each forgotten memory in an answer."""
_QUOTED: Final = 5
"""Memories that a sentence for the user quotes."""
_QUOTED_CHARS: Final = 80
"""Characters of each memory in a sentence for the user."""
_UNCONFIRMED: Final = "unconfirmed"
"""Status of a hit that waits for a person's yes."""
_OPERATIONS: Final = {"put": "stored", "patch": "changed", "delete": "forgotten", "move": "archived"}
"""Verb of a version, by its operation in the journal."""
_EXPIRED: Final = "expired"
"""Status of a hit that is shown by its ID alone."""
_COMMON_SOURCE: Final = "assistant"
"""Kind of source of most memories: stored by the model."""
MAX_CHARS: Final = 40_000
"""Characters of the memories in one brief answer, some 10,000 tokens: a hundred hits may have a million."""
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
_INSTRUCTIONS: Final = 3
"""Standing instructions that a weak answer shows, however far below the best."""
_NEAR, _NEAR_IF_STRONG, _NEAR_BEHIND, _AS_STRONG = 0.3, 0.6, 0.9, 0.8


@dataclass(frozen=True, slots=True)
class HitWidth:
    """Parts of a hit to show.

    Attributes:
        full: True for every field that the specification prints.
        whole_text: True for whole texts instead of excerpts.
        explain: True for the parts of the score.
        project: Project of the session; a memory of the same project does not repeat it.
    """

    full: bool = False
    whole_text: bool = False
    explain: bool = False
    project: str = ""


def list_unused(values: Mapping[str, Any], memory: Memory) -> dict[str, Any]:
    """Return category and tags that a known text does not take.

    Args:
        values: Fields that were to be stored.
        memory: Memory that has the text already.
    """
    category = values.get("category") or "note"
    tags = [tag for tag in values.get("tags") or () if tag not in memory.tags]
    unused = {"category": category} if category not in {"note", memory.category} else {}
    return {**unused, **({"tags": tags} if tags else {})}


def view_whole_memory(memory: Memory, superseded_by: str | None = None) -> dict[str, Any]:
    """Return every field of a memory."""
    return {**memory.model_dump(mode="json"), "superseded_by": superseded_by}


def view_brief_memory(memory: Memory, *, full: bool = False, project: str = "") -> dict[str, Any]:
    """Return a memory for a model: ID, content, date and unusual fields.

    Args:
        memory: Memory to show.
        full: True for every field that the specification prints, with the time of day.
        project: Project of the session; a memory of the same project does not repeat it.
    """
    view = {name: visible(value) if isinstance(value, str) else value for name, value in MEMORY.view(memory).items()}
    said_day = describe_said_day(memory, memory.content)
    marks: dict[str, Any] = {"said": said_day} if said_day else {}
    if memory.pinned:
        marks["pinned"] = True
    if memory.trust == "low":
        marks |= _view_low_trust(memory)
    if memory.source.kind != _COMMON_SOURCE:
        marks["source"] = memory.source.kind
    if full:
        return {**view, "timestamp": format_moment(memory.timestamp), "access_count": memory.access_count, **marks}
    shared = {"category": "note", "tags": [], "project": project}
    unusual = {name: value for name, value in view.items() if name not in shared or value != shared[name]}
    return {**unusual, "timestamp": memory.moment.date().isoformat(), **marks}


def _view_low_trust(memory: Memory) -> dict[str, Any]:
    """Return trust and origin of an untrusted memory."""
    origin = describe_origin(memory)
    return {"trust": "low", "origin": origin} if origin else {"trust": "low"}


def view_whole_hit(hit: MemorySearchResult, *, explain: bool, superseded_by: str | None) -> dict[str, Any]:
    """Return every field of a hit, and parts of its score."""
    memory = hit.memory
    replaced_by = superseded_by or hit.origin.replaced_by or None
    more = {"pinned": memory.pinned, "trust": memory.trust, "superseded_by": replaced_by}
    moment = {"timestamp": to_text(memory.timestamp), "access_count": memory.access_count}
    around = view_links(hit.surroundings)
    return {
        **MEMORY.view(memory),
        "excerpt": hit.excerpt,
        **_view_score(hit),
        "answer_confidence": None,  # a key of earlier versions
        **moment,
        **more,
        **around,
        **_view_parts(hit, explain=explain),
        "kind": hit.origin.kind,
        "source": hit.origin.source,
        "speaker": hit.origin.speaker,
        "status": _get_status(hit) or "confirmed",
    }


def view_brief_hit(
    hit: MemorySearchResult, width: HitWidth = HitWidth(), superseded_by: str | None = None
) -> dict[str, Any]:
    """Return a hit for a model; long texts as excerpts."""
    replaced_by = superseded_by or hit.origin.replaced_by
    replaced = {"superseded_by": replaced_by} if replaced_by else {}
    view = view_brief_memory(hit.memory, full=width.full, project=width.project) | _view_origin(hit)
    if hit.excerpt is not None and not (width.full or width.whole_text):
        view |= {"content": visible(hit.excerpt), "excerpt": True}
    score = _view_score(hit) if width.full or width.explain else {"match": "weak"} if hit.match == "weak" else {}
    return {**view, **score, **replaced, **_view_surroundings(hit), **_view_parts(hit, explain=width.explain)}


def _view_origin(hit: MemorySearchResult) -> dict[str, Any]:
    """Return unusual kind, source, speaker and status of a hit."""
    origin, memory = hit.origin, hit.memory
    shown: dict[str, Any] = {}
    if origin.kind != "note":
        shown |= {"kind": origin.kind, "source": origin.source or memory.source.kind}
    if origin.speaker:
        shown["speaker"] = origin.speaker
    status = _get_status(hit)
    return {**shown, "status": status} if status else shown


def _get_status(hit: MemorySearchResult) -> str:
    """Return the status of a hit; empty for a valid one."""
    return _EXPIRED if hit.origin.is_expired else "" if hit.origin.is_confirmed else _UNCONFIRMED


def view_links(surroundings: Surroundings, name: str = "links") -> dict[str, Any]:
    """Return the links of a memory in both directions, and its doubts."""
    links = [_view_link(link, get_title(link.text)) for link in surroundings.links]
    return {name: links, "doubtful": surroundings.doubt, "disputed": surroundings.disputed}


def _view_surroundings(hit: MemorySearchResult) -> dict[str, Any]:
    links = [_view_link(link, get_title(link.text)) for link in list_shown_links(hit)]
    doubt = hit.surroundings.doubt
    disputed = {"disputed": hit.surroundings.disputed} if hit.surroundings.disputed else {}
    return {**({"doubtful": doubt} if doubt else {}), **disputed, **({"links": links} if links else {})}


def _view_link(link: LinkedRecord, title: str) -> dict[str, Any]:
    end = {"rel": visible(link.rel), "id": link.id, "title": title}
    return {**end, "incoming": True} if link.is_incoming else end


def view_brief_answer(found: Found, results: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return an answer for a model, with `more` after the hits."""
    view = view_answer(found, results, explain=False, **more)
    del view["search_latency_ms"], view["mode"]
    if found.overview is not None:  # its texts are cut with an ellipsis, and there are counts by source
        unshown = {"excerpt", "source", "tags", "project"}
        view["results"] = [{name: hit[name] for name in hit if name not in unshown} for hit in results]
        del view["total_found"]  # its count of memories
    return view


def view_answer(found: Found, results: list[dict[str, Any]], *, explain: bool, **more: Any) -> dict[str, Any]:
    """Return the answer of a search, with `more` after the hits."""
    view = {
        **({"match": found.match} if found.match is not None else {}),
        **({"overview": dict(found.overview)} if found.overview is not None else {}),
        "results": results,
        **more,
        "total_found": found.results.total_found,
        "search_latency_ms": found.latency_ms,
        "mode": found.mode,
    }
    if found.degraded:
        view["degraded"] = found.degraded
    if explain:
        view["rejected"] = [{**item, "parts": _round_all(item["parts"])} for item in found.results.rejected]
    return view


def view_candidates(candidates: ForgetCandidates, project: str = "") -> list[dict[str, Any]]:
    """Return candidates for forgetting: ID, content, date and owner, best first.

    Args:
        candidates: Candidates of the request.
        project: Project of the session; a memory of the same project does not repeat it.
    """
    return [_view_candidate(candidate, project) for candidate in candidates.listed]


def _view_candidate(candidate: ForgetCandidate, project: str) -> dict[str, Any]:
    view = view_brief_memory(candidate.memory, project=project)
    if len(view["content"]) > _CANDIDATE_CHARS:
        view |= {"content": shorten_line(view["content"], _CANDIDATE_CHARS), "excerpt": True}
    owner = {"owner": visible(candidate.ownership.owner)} if candidate.ownership.owner else {}
    return {**view, **owner, **({"match": "weak"} if candidate.match == "weak" else {})}


def view_forgotten(outcome: ForgottenMany) -> dict[str, Any]:
    """Return forgotten memories, and similar ones that stay, with texts."""
    return {
        "count": len(outcome.memories),
        "memories": [
            {"id": memory.id, "content": shorten_line(visible(memory.content), _FORGOTTEN_CHARS)}
            for memory in outcome.memories
        ],
        **({"older_versions": list(outcome.older_versions)} if outcome.older_versions else {}),
        **({"statements": [memory.id for memory in outcome.statements]} if outcome.statements else {}),
        **({"talk": [memory.id for memory in outcome.talk]} if outcome.talk else {}),
        **({"similar": view_similar(outcome.similar)} if outcome.similar else {}),
    }


def render_forgotten(outcome: ForgottenMany) -> str:
    """Return the sentence for the user about a deletion and its undo."""
    line = f"Forgot {_quote(outcome.memories)}."
    if outcome.older:
        line += f" Also forgot {counted(len(outcome.older), 'older version')}: {_quote(outcome.older)}."
    if outcome.talk:
        line += f" Also forgot in talk: {_quote(outcome.talk)}."
    if outcome.statements:
        line += f" Also forgot what an agent made of it: {_quote(outcome.statements)}."
    if outcome.similar:
        line += f" Kept: {_quote(outcome.similar)}."
    if outcome.kept_until is None:
        return line
    return f"{line} Undo until {outcome.kept_until:%Y-%m-%d}: agent-memory undo {outcome.memories[0].id}"


def _quote(memories: Sequence[Memory]) -> str:
    texts = [shorten_line(visible(memory.content), _QUOTED_CHARS) for memory in memories[:_QUOTED]]
    quoted = ", ".join(f'"{text.rstrip(".")}"' for text in texts)
    return quoted if len(memories) <= _QUOTED else f"{quoted} and {len(memories) - _QUOTED} more"


def view_preview(preview: Preview) -> dict[str, Any]:
    """Return the number of memories in a preview, by category."""
    by_category = dict(sorted(Counter(memory.category for memory in preview.memories).items()))
    return {"count": len(preview.memories), "by_category": by_category}


def view_trace(forgotten: Trace) -> dict[str, Any]:
    """Return the trace of a memory that was forgotten for a reason."""
    return {"memory_id": forgotten.id, "at": format_moment(forgotten.at), "reason": visible(forgotten.reason)}


def view_similar(memories: Sequence[Memory]) -> list[dict[str, Any]]:
    """Return memories to compare with a new one, 120 tokens together."""
    room = _SIMILAR_CHARS[len(memories) - 1] if memories else 0
    return [
        {
            "id": memory.id,
            "content": shorten_line(visible(memory.content), room),
            "timestamp": memory.timestamp.date().isoformat(),
            **(_view_low_trust(memory) if memory.trust == "low" else {}),
        }
        for memory in memories
    ]


def view_suspects(pairs: Iterable[Suspect]) -> list[dict[str, Any]]:
    """Return the older memories that conflict with a written one."""
    return [
        {
            "id": suspect.older.id,
            "title": get_title(suspect.older.content),
            "hint": suspect.hint,
            "evidence": visible(suspect.evidence),
        }
        for suspect in pairs
    ]


def view_pair(suspect: Suspect) -> dict[str, Any]:
    """Return a pair that waits for a decision, with both texts."""
    return {
        "id": suspect.newer.id,
        "other": suspect.older.id,
        "hint": suspect.hint,
        "kind": suspect.kind,
        "evidence": visible(suspect.evidence),
        "newer": {"content": visible(suspect.newer.content), "timestamp": format_moment(suspect.newer.timestamp)},
        "older": {"content": visible(suspect.older.content), "timestamp": format_moment(suspect.older.timestamp)},
    }


def view_promotion(promoted: Promoted) -> dict[str, Any]:
    """Return the outcome of a promotion."""
    fields = ("memory_id", "promoted", "evicted", "scratchpad_size")
    degraded = {"degraded": promoted.degraded} if promoted.degraded else {}
    return {name: getattr(promoted, name) for name in fields} | degraded


def describe_said_day(record: Record, text: str) -> str:
    """Return the day of saying if dates depend on it.

    If only the time of the record's file is known, the day is marked as that.
    """
    from agent_memory.times.date_mentions import describe_saying  # reads dates

    said_day = describe_saying(text, record.said_at)
    if not said_day or FILE_TIME not in record.metadata:
        return said_day
    return f"on an unknown day; {describe_day(record, record.said_at)}"


def describe_day(record: Record, moment: datetime) -> str:
    """Return the day of a moment, marking a file time."""
    return f"file of {moment:%Y-%m-%d}" if FILE_TIME in record.metadata else f"{moment:%Y-%m-%d}"


def format_moment(moment: datetime) -> str:
    """Return a moment as ISO 8601 text, to the second."""
    return to_text(moment.replace(microsecond=0))


def limit_views(views: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the first memories that fit into an answer, at least one.

    The second value joins the answer: empty, or how many were left out, and what to do.
    """
    memories = list(views)
    sizes = accumulate(len(view["content"]) for view in memories)
    shown = memories[: max(1, sum(size <= MAX_CHARS for size in sizes))]
    left_out = len(memories) - len(shown)
    note = f"{left_out} more would make this answer too long; ask for fewer, or more narrowly."
    return shown, {"left_out": note} if left_out else {}


def _view_score(hit: MemorySearchResult) -> dict[str, Any]:
    match = {} if hit.match is None else {"match": hit.match}
    return {**match, "relevance_score": round(hit.relevance_score, 4), "match_type": hit.match_type}


def _view_parts(hit: MemorySearchResult, *, explain: bool) -> dict[str, Any]:
    return {"parts": _round_all(hit.parts)} if explain else {}


def _round_all(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in parts.items()}


def shorten(results: SearchResults, *, explain: bool = False) -> None:
    """Mark hits near the best one; add excerpts to long ones.

    All hits of a listing are near, and so are up to three short ones without others. The stronger the best match is,
    the nearer the others have to be, unless they match as strongly or are standing instructions that took a place.
    A weak answer also shows instructions in their own places.
    """
    if results and results.match is not None and not _has_few(results):
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


def _has_few(results: SearchResults) -> bool:
    """Return True if all hits are few and short."""
    return results.total_found <= _FEW and sum(len(hit.memory.content) for hit in results) <= _LEAST_FOR_TEXTS


def _mark_near(results: SearchResults, *, explain: bool) -> None:
    best, strongest = results[0].relevance_score, max(hit.answer_confidence or 0.0 for hit in results)
    instructions = [rank for rank, hit in enumerate(results) if results.match == "weak" and _is_instruction(hit)]
    for rank, hit in enumerate(results):
        if "instruction" in hit.parts or rank in instructions[:_INSTRUCTIONS]:
            is_near = True
        elif rank < _FIRST:
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


def _is_instruction(hit: MemorySearchResult) -> bool:
    """Return True for a trusted standing instruction that is near in meaning."""
    is_trusted = hit.memory.trust != "low" and hit.memory.category in INSTRUCTION_CATEGORIES
    return is_trusted and hit.match_type in {"vector", "hybrid"} and "project" not in hit.parts  # of another one


def list_shown_links(hit: MemorySearchResult) -> list[LinkedRecord]:
    """Return the links to show with a hit."""
    return list(islice(hit.surroundings.links, LINKS))


def get_title(text: str) -> str:
    """Return the beginning of a text's first line."""
    return shorten_line(visible(text.strip().partition("\n")[0]), TITLE)


def shorten_line(text: str, max_chars: int) -> str:
    """Return a text as one line, cut with `…`."""
    line = text.strip().replace("\n", " ")
    return line if len(line) <= max_chars else f"{line[: max_chars - 1].rstrip()}…"


def _divide_room(hits: Sequence[MemorySearchResult]) -> list[int]:
    """Return the characters for each hit, fewer from rank to rank."""
    titles = sum(len(get_title(link.text)) for hit in hits for link in list_shown_links(hit))
    remaining, rooms = float(max(_LEAST_FOR_TEXTS, ROOM - titles)), [0] * len(hits)
    weights = [_LESS**rank for rank in range(len(hits))]
    sizes = [len(hit.memory.content) for hit in hits]
    waiting = sorted(range(len(hits)), key=lambda rank: sizes[rank] / weights[rank])  # the shortest first
    for position, rank in enumerate(waiting):
        share = remaining * weights[rank] / sum(weights[index] for index in waiting[position:])
        rooms[rank] = int(max(_LEAST_ROOM, share))
        remaining = max(0.0, remaining - min(sizes[rank], rooms[rank]))
    return rooms


def view_versions(versions: Sequence[RecordVersion[Memory]]) -> list[dict[str, Any]]:
    """Return versions of a memory with changed fields, oldest first."""
    rows: list[dict[str, Any]] = []
    before: Memory | None = None
    for version in versions:
        memory = version.record
        changed = [] if memory is None or before is None else _list_changed_fields(before, memory)
        is_restored = version.op == "put" and before is None and bool(rows)
        operation = "brought back" if is_restored else _OPERATIONS.get(version.op, version.op)
        rows.append(
            {
                "seq": version.seq,
                "at": to_text(version.at),
                "what": "changed" if changed and version.op == "put" else operation,
                "fields": changed,
                "content": None if memory is None else memory.content,
                "memory": None if memory is None else memory.model_dump(mode="json"),
            }
        )
        before = memory
    return rows


def _list_changed_fields(before: Memory, after: Memory) -> list[str]:
    names = [name for name in type(after).model_fields if name not in ACCESS]
    return [name for name in names if getattr(before, name) != getattr(after, name)]
