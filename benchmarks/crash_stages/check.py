"""Looks what a process that was killed while it sealed, merged or compacted has left."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.care.checks.codes import Severity
from agent_memory.care.checks.examination import examine_agent
from agent_memory.models import MEMORY, Memory, utc_now
from agent_memory.storage import folder_of
from benchmarks.crash.model import AcknowledgedState, PendingOperation, compare, shown
from benchmarks.crash.operations import AGENT, settings_for
from benchmarks.crash.recovery_check import age

if TYPE_CHECKING:
    from agent_memory.models import SearchResults
    from benchmarks.crash.model import Shown
    from benchmarks.crash.process import MessagePipe
from benchmarks.crash_stages.victim import seal_all, storage_of
from benchmarks.harness import seal_by_hand

First = tuple[str, str, float]
"""How it was searched, the id of the first hit, and its score."""
_ROUNDED: Final = 0.002
_IN_DERIVED: Final = {"segments.json", ".lock"}
FURTHER: Final = "a further one"


@seal_by_hand()
def examine(say: MessagePipe, root: Path, pending: PendingOperation, expected: AcknowledgedState, seed: int) -> None:
    """Open what is left, compare, repair; tell what was found to be wrong, and what the operation had done."""
    wrong: list[str] = []
    found = asyncio.run(_answers(root, seed))
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        shutil.copytree(root, Path(scratch) / "memory", ignore=shutil.ignore_patterns("derived"))
        whole = asyncio.run(_answers(Path(scratch) / "memory", seed))
    wrong += [
        f"{name} differs from a full replay: {value} {whole[name]}" if name != "records" else f"{name} differ"
        for name, value in found.items()
        if (value != whole[name] if name == "records" else not alike(value, whole[name]))
    ]
    verdict = compare(expected, pending, found["records"], settled=False)
    wrong += [*(f"lost: {what}" for what in verdict.lost), *(f"half done: {what}" for what in verdict.half)]
    report = examine_agent(root, AGENT, now=utc_now(), settings=settings_for(root), kinds=(MEMORY,))
    bad = (Severity.PROBLEM, Severity.WARNING)
    wrong += [f"the doctor: {finding.sentence}" for finding in report.findings if finding.severity in bad]
    asyncio.run(_go_on(root))
    seal_all(root)
    wrong += [f"left over: {name}" for name in leftovers(root)]
    say(wrong=wrong, now={**verdict.now, **asyncio.run(_further(root, expected))})


async def _answers(root: Path, seed: int) -> dict[str, Any]:
    """Return all records, and what is found by words alone and by words and vectors."""
    storage, choose = storage_of(root), random.Random(seed)
    try:
        records = {memory.id: shown(memory) async for memory in storage.iter_all()}
        await storage.prepare(None)
        valid = sorted([memory.content async for memory in storage.iter_all() if FURTHER not in memory.content])
        queries = choose.sample(valid, min(5, len(valid)))
        keys = [_first(await storage.search(query.split()[0], 1)) for query in queries]
        by_vector = [_first(await storage.search(query, 1)) for query in queries]
        return {"records": records, "the answer by words": keys, "the answer by vectors": by_vector}
    finally:
        await storage.close()


def _first(hits: SearchResults) -> First:
    return hits.mode, hits[0].memory.id if hits else "", hits[0].relevance_score if hits else 0.0


def alike(some: list[First], others: list[First]) -> bool:
    """Return True if answers are equal; hits of equal scores may change places.

    Sealed vectors are rounded, which changes a score in the fourth place.
    """
    return len(some) == len(others) and all(
        mode == other_mode and abs(score - other_score) <= _ROUNDED
        for (mode, _, score), (other_mode, _, other_score) in zip(some, others, strict=True)
    )


async def _go_on(root: Path) -> None:
    """Store and compact: what is left of temporary files goes with that."""
    age(folder_of(AGENT, root).path)
    storage = storage_of(root)
    await storage.store(Memory(agent_id=AGENT, content=FURTHER))
    await storage.prepare(None)
    await storage.compact()
    await storage.close()


async def _further(root: Path, expected: AcknowledgedState) -> dict[str, Shown | None]:
    storage = storage_of(root)
    now = {memory.id: shown(memory) async for memory in storage.iter_all() if memory.content == FURTHER}
    await storage.close()
    return {key: value for key, value in now.items() if key not in expected.memories}


def leftovers(root: Path) -> list[str]:
    """Return the unused files of the folder."""
    folder = folder_of(AGENT, root)
    place = folder.segments(MEMORY.name)
    names = json.loads((place / "segments.json").read_bytes())["segments"]
    found = [path.name for path in place.iterdir() if path.name not in {*names, *_IN_DERIVED}]
    found += [f"{path.parent.name}/{path.name}" for path in place.glob("*/.*")]
    return found + [path.name for path in folder.path.iterdir() if path.name.endswith((".tmp", ".bak"))]
