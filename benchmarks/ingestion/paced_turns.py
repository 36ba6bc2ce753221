"""Time until turns at a steady rate are found, and disk space of talks."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.files.entries import get_disk_size
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.records import Knowledge
from agent_memory.models import SearchRequest, utc_now
from agent_memory.settings import ServiceSettings
from benchmarks.retrieval.data import load_locomo

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ASKED_EVERY: Final = 0.02
_LOOKED_FOR: Final = 10
"""One turn in so many is looked for: each search takes processor time from the writes."""
_PART: Final = 80
_GIVEN_UP: Final = 30.0
"""Seconds after which a turn counts as found then: among many alike by meaning it may stand behind the first twenty."""


async def paced(root: Path, turns: Sequence[ReceivedTurn], rate: int, embedder: str) -> dict[str, Any]:
    """Take in turns at a steady rate; return milliseconds until some of them were found, and processor time a turn.

    They are looked for by a word of their own or, with an embedder, by meaning: a part of their other words, where the
    answer tells a cosine of the very turn.
    """
    knowledge = Knowledge(f"paced-{rate}", ServiceSettings(storage_root=str(root), embedder=embedder))
    ingest, looking = Ingest(knowledge), list[asyncio.Task[float]]()
    begun = await ingest.conversation("session", title="A talk")
    await ingest.turn(ReceivedTurn("Begin."), conversation=begun.record.id)
    await knowledge.episodes.prepare(None if embedder != "none" else 0)
    cpu, started = time.process_time(), time.perf_counter()
    for order, turn in enumerate(turns, 1):
        await asyncio.sleep(max(0.0, started + order / rate - time.perf_counter()))
        kept = await ingest.turn(turn, conversation=begun.record.id, order=order, is_live=True)
        if order % _LOOKED_FOR == 0:
            looking.append(asyncio.create_task(_found(knowledge, kept.record.id, turn.text, embedder != "none")))
    wrote = time.perf_counter() - started
    found = sorted([1000 * each for each in await asyncio.gather(*looking)])
    spent = time.process_time() - cpu
    await knowledge.close()
    return {
        "asked_per_second": rate,
        "written_per_second": round(len(turns) / wrote),
        "p50": round(found[len(found) // 2]),
        "p95": round(found[min(len(found) - 1, int(0.95 * len(found)))]),
        "cpu_ms_a_turn": round(1000 * spent / len(turns), 1),
    }


async def _found(knowledge: Knowledge, record_id: str, text: str, by_meaning: bool) -> float:  # noqa: FBT001
    word, _, rest = text.partition(" ")
    request, began = SearchRequest(rest[:_PART] if by_meaning else word, 20, utc_now(), patience=0), time.perf_counter()
    while time.perf_counter() - began < _GIVEN_UP:
        answer = await knowledge.episodes.answer(request)
        hit = next((hit for hit in answer.ranking.hits if hit.id == record_id), None)
        if hit is not None and (not by_meaning or "cosine" in hit.parts):
            return time.perf_counter() - began
        await asyncio.sleep(_ASKED_EVERY)
    return _GIVEN_UP


async def talks_on_disk(root: Path, file: Path, embedder: str) -> dict[str, Any]:
    """Take in the conversations of a set as they are; return what a turn of them takes on the disk."""
    knowledge = Knowledge("talks", ServiceSettings(storage_root=str(root), embedder=embedder))
    ingest, size, count = Ingest(knowledge), 0, 0
    for talk in load_locomo(file, [], "turn"):
        begun = await ingest.conversation(talk.name)
        for order, item in enumerate(talk.items):
            speaker, _, text = item.text.partition(": ")
            await ingest.turn(ReceivedTurn(text, speaker=speaker), conversation=begun.record.id, order=order)
            size, count = size + len(text.encode()), count + 1
    if embedder != "none":
        await knowledge.episodes.prepare(None)
    await knowledge.close()
    disk = get_disk_size(knowledge.folder.path)
    return {"turns": count, "given_a_turn": round(size / count), "bytes_a_turn": round(disk / count)}
