"""Measure candidates for requests to forget, and wrong acts.

    python -m benchmarks.forgetting [FILE...] [--json] [--failed] [--embedder local|none]

Each line of a FILE (by default `benchmarks/forgetting/forgetting.jsonl`) is a memory, `{"world", "id", "memory"}`, or a
request, `{"world", "id", "language", "request", "right": [ids]}`. The memories of a world are stored together. A
request asks for its candidates, and for what `agent-memory forget REQUEST --yes` would forget without a choice.

Prints wrong acts first: memories forgotten that were not asked for. Then the share of requests, of those with a right
memory, whose right memories are all among the first five candidates, and whose first candidate is right.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, get_share, open_scratch, print_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CASES: Final = Path(__file__).with_name("forgetting.jsonl")
_FIRST: Final = 5
_MEMORY: Final = frozenset({"world", "id", "memory"})
_REQUEST: Final = frozenset({"world", "id", "language", "request", "right"})


@dataclass(frozen=True)
class RequestOutcome:
    """Outcome of one request.

    Attributes:
        request: Its words.
        language: Its language.
        right: Keys of the memories that it asks for; none if there is no such memory.
        candidates: Keys of the candidates, best first.
        forgotten: Key of the memory that is forgotten without a choice, or None.
        stored: True if listing the candidates left all memories stored.
    """

    request: str
    language: str
    right: frozenset[str]
    candidates: tuple[str, ...]
    forgotten: str | None
    stored: bool

    @property
    def is_wrong(self) -> bool:
        """True if a memory was forgotten that was not asked for."""
        return not self.stored or (self.forgotten is not None and self.forgotten not in self.right)

    @property
    def is_found(self) -> bool:
        """True if all right memories are among the first five candidates."""
        return self.right <= frozenset(self.candidates[:_FIRST])

    @property
    def is_first(self) -> bool:
        """True if the first candidate is right."""
        return bool(self.candidates) and self.candidates[0] in self.right


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; exit with 2 if the arguments are wrong."""
    parser = build_parser("forgetting", __doc__, "--json", "--embedder")
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", default=[CASES])
    parser.add_argument("--failed", action="store_true", help="print the requests that failed, too")
    args = parser.parse_args(argv)
    try:
        lines = [line for path in args.files for line in load(path)]
    except (OSError, ValueError) as error:
        parser.error(str(error))
    outcomes = asyncio.run(run(lines, args.embedder))
    report = summarize(outcomes)
    if args.failed:
        report["failed"] = [_describe(outcome) for outcome in outcomes if _has_failed(outcome)]
    print_report(report, _render(report), as_json=args.json)
    return 0


def load(path: Path) -> list[dict[str, Any]]:
    """Return the memories and requests of a file.

    Raises:
        ValueError: A line is neither a memory nor a request; names it.
    """
    lines = []
    for number, text in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not text.strip():
            continue
        line = json.loads(text)
        needed = _REQUEST if "request" in line else _MEMORY
        if absent := needed - line.keys():
            raise ValueError(f"{path}, line {number}: without {', '.join(sorted(absent))}")
        lines.append(line)
    return lines


async def run(lines: Iterable[dict[str, Any]], embedder: str = "local") -> list[RequestOutcome]:
    """Return the outcome of each request, one memory per world.

    Args:
        lines: Memories and requests.
        embedder: "local" for words and meaning, "none" for words alone.
    """
    settings = ServiceSettings.model_validate({"embedder": embedder})
    worlds: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        worlds[line["world"]].append(line)
    outcomes = []
    with open_scratch() as folder:
        for number, world in enumerate(worlds.values()):
            service = MemoryService(FileStorage(f"world-{number}", folder, settings=settings), settings)
            try:
                outcomes += await _run_world(world, service)
            finally:
                await service.close()
    return outcomes


async def _run_world(world: list[dict[str, Any]], service: MemoryService) -> list[RequestOutcome]:
    keys = {}
    for line in world:
        if "memory" in line:
            keys[(await service.store(line["memory"])).memory.id] = line["id"]
    await service.storage.prepare()
    outcomes = []
    for line in world:
        if "request" in line:
            candidates = await service.searcher.find_candidates(line["request"])
            only = candidates.get_only_match()
            outcomes.append(
                RequestOutcome(
                    line["request"],
                    line["language"],
                    frozenset(line["right"]),
                    tuple(keys[candidate.memory.id] for candidate in candidates.listed),
                    None if only is None else keys[only.id],
                    len(await service.searcher.list_all()) == len(keys),
                )
            )
    return outcomes


def summarize(outcomes: Sequence[RequestOutcome]) -> dict[str, Any]:
    """Return counts of wrong and right acts, then shares of requests, 0..1."""
    answerable = [outcome for outcome in outcomes if outcome.right]
    not_english = [outcome for outcome in answerable if outcome.language != "en"]
    return {
        "requests": len(outcomes),
        "without_right": len(outcomes) - len(answerable),
        "wrongly_forgotten": sum(outcome.is_wrong for outcome in outcomes),
        "rightly_forgotten": sum(outcome.forgotten in outcome.right for outcome in answerable),
        "recall_at_5": get_share([outcome.is_found for outcome in answerable]),
        "recall_at_1": get_share([outcome.is_first for outcome in answerable]),
        "recall_at_5_not_english": get_share([outcome.is_found for outcome in not_english]),
        "recall_at_1_not_english": get_share([outcome.is_first for outcome in not_english]),
    }


def _has_failed(outcome: RequestOutcome) -> bool:
    return outcome.is_wrong or bool(outcome.right and not (outcome.is_found and outcome.is_first))


def _describe(outcome: RequestOutcome) -> dict[str, Any]:
    return {
        "request": outcome.request,
        "right": sorted(outcome.right),
        "candidates": list(outcome.candidates),
        "forgotten": outcome.forgotten,
    }


def _render(report: dict[str, Any]) -> list[str]:
    lines = [f"{name:26}{value}" for name, value in report.items() if name != "failed"]
    return lines + [
        f"{outcome['request']}: {outcome['right']} among {outcome['candidates']}, forgot {outcome['forgotten']}"
        for outcome in report.get("failed", ())
    ]
