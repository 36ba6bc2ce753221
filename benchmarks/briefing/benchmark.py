"""Measure the share of tasks whose decisions a briefing shows.

    python -m benchmarks.briefing --sde FOLDER [--embedder local|none] [--json]
    python -m benchmarks.briefing --chats [--sde FOLDER] [the same options]

FOLDER is a clone of vectorize-io/sde-bench (MIT): 33 tasks whose rule was settled in earlier conversations, and 140
conversations about other things. All of them are in one store, 20 hours apart, in an order drawn by a fixed seed, an
amendment behind what it amends. Each turn is a memory of its session. Then each task's report is the first prompt.

What has to be readable stands in `benchmarks/briefing/briefing.yaml`, written for this benchmark from each task's rule.
The columns:

- `whole`: share of the tasks of which everything that is needed is readable, with a 95 % interval (Wilson).
- `parts`: share of what is needed of all tasks.
- `tokens`: of the longest text, by our estimate, which overshoots.
- `ms`: CPU time, median and longest.

The rows: the briefing; the best hits of a search, whole, as many as fit into 500 tokens; the scratchpad with 500 and
with 2,000 tokens; the briefing without a prompt.

With `--chats` the tasks are the 24 of `benchmarks/briefing/briefing_chats.yaml`, conversations about other work that no
weight was set on; those of sde-bench, if named, are the others in the store.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import MemoryService, open_service
from agent_memory.memory.briefing import TOKENS, Briefer
from agent_memory.models import Memory
from agent_memory.scratchpad import estimate_tokens, render
from agent_memory.settings import ScratchpadSettings, ServiceSettings
from benchmarks.harness import build_parser, get_wilson_interval, open_scratch, print_report

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

NEEDED: Final = Path(__file__).with_name("briefing.yaml")
CHATS: Final = NEEDED.with_name("briefing_chats.yaml")
_BEGINNING: Final = datetime(2025, 1, 1, 9, tzinfo=UTC)
_APART: Final = timedelta(hours=20)
_TURN: Final = timedelta(minutes=2)
_PATIENCE: Final = 5.0
_HITS: Final = 20
_CONTENT: Final = 10_000

Turns = list[tuple[str, str]]
"""Who speaks (`user` or `assistant`), and what."""


@dataclass(frozen=True, slots=True)
class BriefingTasks:
    """Tasks with their reports, and conversations in order, by name.

    `needed` are patterns of what has to be readable before the task of that name is begun.
    """

    reports: Mapping[str, str]
    talks: Mapping[str, Turns]
    needed: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class WayFigures:
    """Figures of one way."""

    whole: int
    tasks: int
    parts: float
    tokens: int
    milliseconds: tuple[float, float]


def read(folder: Path, seed: int = 1) -> BriefingTasks:
    """Read a clone of sde-bench.

    Raises:
        OSError: It is none.
    """
    reports: dict[str, str] = {}
    talks: dict[str, Turns] = {}
    for file in sorted(folder.glob("*/tasks/main/task.json")):
        task = json.loads(file.read_text("utf-8"))
        led = task.get("conversations")
        if led:
            name = str(task["codebase"]).removeprefix("boltons-")
            reports[name] = task["bug_report"]
            for number, talk in enumerate(led if isinstance(led[0], list) else [led]):
                talks[f"{name}/{number}"] = [(turn["role"], turn["text"]) for turn in talk]
    for decoy in json.loads((folder / "gen" / "decoy_conversations.json").read_text("utf-8")):
        talks[f"decoy/{decoy['id']}"] = [(turn["role"], turn["text"]) for turn in decoy["turns"]]
    order = sorted(talks)
    random.Random(seed).shuffle(order)
    amended = {name.partition("/")[0] for name in order if name.endswith("/1")}
    for name in amended:
        first, second = sorted((order.index(f"{name}/0"), order.index(f"{name}/1")))
        order[first], order[second] = f"{name}/0", f"{name}/1"
    needed = yaml.safe_load(NEEDED.read_text("utf-8"))
    return BriefingTasks(reports, {name: talks[name] for name in order}, needed)


def read_chats(others: Mapping[str, Turns], seed: int = 1) -> BriefingTasks:
    """Return the unweighted tasks, with their conversations among others."""
    chats = yaml.safe_load(CHATS.read_text("utf-8"))
    talks = dict(others) | {f"chat/{name}": [tuple(turn) for turn in chat["turns"]] for name, chat in chats.items()}
    order = sorted(talks)
    random.Random(seed).shuffle(order)
    return BriefingTasks(
        {name: chat["prompt"] for name, chat in chats.items()},
        {name: talks[name] for name in order},
        {name: chat["needed"] for name, chat in chats.items()},
    )


def readable(task: str, text: str, needed: Mapping[str, Sequence[str]]) -> list[bool]:
    """Return True for each needed part that a text has."""
    flat = " ".join(text.split())
    return [re.search(each, flat, re.IGNORECASE) is not None for each in needed[task]]


async def fill(root: Path, bench: BriefingTasks, embedder: str) -> None:
    """Store all conversations."""
    service = open_service("dev", ServiceSettings(storage_root=str(root), embedder=embedder))
    try:
        await service.storage.store_many(_memories(bench.talks))
        await service.storage.prepare(None)
    finally:
        await service.close()


def _memories(talks: Mapping[str, Turns]) -> list[Memory]:
    every = []
    for number, (name, turns) in enumerate(talks.items()):
        for place, (role, text) in enumerate(turns):
            at = _BEGINNING + number * _APART + place * _TURN
            fields: dict[str, Any] = {"timestamp": at, "created_by_session": name, "source": {"kind": role}}
            every.append(Memory(agent_id="dev", content=text[:_CONTENT], **fields))
    return every


def ways_of(service: MemoryService, knowledge: Knowledge) -> dict[str, Callable[[str], Awaitable[str]]]:
    """Return the ways: each returns what is read before the first answer."""
    briefer = Briefer(service, episodes=knowledge.episodes, patience=_PATIENCE)

    async def briefing(report: str) -> str:
        return (await briefer.brief(report)).text

    async def hits(report: str) -> str:
        shown, left = [], TOKENS
        for hit in (await service.search(report, _HITS, {"include_items": True})).results:
            cost = estimate_tokens(hit.memory.content) + 2
            if cost <= left:
                shown.append(hit.memory.content)
                left -= cost
        return "\n".join(shown)

    def pad(tokens: int) -> Callable[[str], Awaitable[str]]:
        async def shown(_report: str) -> str:
            entries = (await service.scratchpad()).entries
            return render(entries, "dev", ScratchpadSettings(token_budget=tokens)).text

        return shown

    async def unasked(_report: str) -> str:
        return (await briefer.brief()).text

    return {
        "briefing": briefing,
        "best hits": hits,
        "scratchpad, 500": pad(TOKENS),
        "scratchpad, 2,000": pad(4 * TOKENS),
        "briefing, no prompt": unasked,
    }


async def measured(bench: BriefingTasks, way: Callable[[str], Awaitable[str]]) -> WayFigures:
    """Ask one way for the text of each task."""
    whole, found, tokens, times = 0, list[bool](), 0, list[float]()
    for task, report in bench.reports.items():
        begun = time.process_time()
        text = await way(report)
        times.append((time.process_time() - begun) * 1000)
        tokens = max(tokens, estimate_tokens(text))
        parts = readable(task, text, bench.needed)
        whole += all(parts)
        found += parts
    return WayFigures(
        whole, len(bench.reports), sum(found) / len(found), tokens, (sorted(times)[len(times) // 2], max(times))
    )


async def run(bench: BriefingTasks, embedder: str) -> dict[str, WayFigures]:
    """Fill a store, and measure each way."""
    with open_scratch() as folder:
        root = folder
        await fill(root, bench, embedder)
        service = open_service("dev", ServiceSettings(storage_root=str(root), embedder=embedder))
        knowledge = Knowledge("dev", service.settings)
        try:
            await service.storage.prepare(None)
            await Briefer(service, episodes=knowledge.episodes, patience=_PATIENCE).brief("A first prompt.")
            return {name: await measured(bench, way) for name, way in ways_of(service, knowledge).items()}
        finally:
            await knowledge.close()
            await service.close()


def main() -> int:
    """Measure and print."""
    parser = build_parser("briefing", __doc__, "--embedder", "--json")
    parser.add_argument("--sde", type=Path, help="a clone of vectorize-io/sde-bench")
    parser.add_argument("--chats", action="store_true", help="the tasks of this benchmark's own conversations instead")
    args = parser.parse_args()
    if args.sde is None and not args.chats:
        parser.error("say --sde or --chats")
    bench = read(args.sde) if args.sde is not None else None
    if args.chats:
        bench = read_chats({} if bench is None else bench.talks)
    assert bench is not None
    rows = asyncio.run(run(bench, args.embedder))
    print_report({name: _as_json(row) for name, row in rows.items()}, as_json=args.json)
    return 0


def _as_json(row: WayFigures) -> dict[str, Any]:
    return {
        "whole": row.whole / row.tasks,
        "between": get_wilson_interval(row.whole, row.tasks),
        "tasks": row.tasks,
        "parts": row.parts,
        "tokens": row.tokens,
        "ms": row.milliseconds,
    }
