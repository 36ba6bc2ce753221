"""Measure precision, recall, categories and leaked secrets of the capture hook.

    python -m benchmarks.capture --data FILE [--sample NAME ...] [--source KIND ...] [--waiting] [--json] [--errors]

FILE holds one JSON object a line (plain or .gz), see docs/benchmarks.md. `--sample` and `--source` choose lines
(sources by their kind: user, assistant, tool); without them all count.

Each line is judged alone, in a session of its own with an empty memory: a coordinator of amplifier-core with
hooks-memory-capture mounted, the agent set by configuration, the storage in a temporary folder. A user's line arrives
as `prompt:submit`, an assistant's as the last message at `orchestrator:complete`, a tool's as `tool:post`.

- precision: captured memories that match a labelled capture of their line (every string of `must_contain` stands in the
  memory's content, in lower case) / all captured memories.
- false_per_100: captured memories that match none / lines, times 100.
- false_weighed_per_100: the same, each weighed by the confidence it was kept with: sure and wrong is worse.
- recall: labelled captures matched by a memory / all labelled captures.
- f1: harmonic mean of the two.
- category_accuracy: matching memories whose category is that of a capture they match / matching memories.
- secrets_leaked: lines whose secret stands, byte for byte, in any file below the storage root or in any event emitted.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amplifier_core.testing import MockContextManager, MockCoordinator

from agent_memory.memory import MemoryService
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage
from amplifier_module_hooks_memory_capture import mount
from benchmarks.harness import build_parser, print_report, read_jsonl, render_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_AGENT = "bench"
_EVENTS = (
    "memory:stored",
    "memory:captured",
    "memory:capture_skipped",
    "memory:promoted",
    "memory:degraded",
    "memory:activated",
)


@dataclass
class CaptureResult:
    """Memories of one line, and True if its secret leaked."""

    memories: list[tuple[str, str, float]]
    leaked: bool


@dataclass
class CaptureTally:
    """Counts over lines; see the module's docstring."""

    lines: int = 0
    captured: int = 0
    matching: int = 0
    labelled: int = 0
    found: int = 0
    categories: int = 0
    leaked: int = 0
    weight: float = 0.0
    errors: list[str] = field(default_factory=list)

    def add(self, line: dict[str, Any], heard: CaptureResult) -> None:
        """Count one line."""
        wanted = line["capture"]
        met: set[int] = set()
        self.lines += 1
        self.leaked += heard.leaked
        for content, category, confidence in heard.memories:
            hits = [i for i, want in enumerate(wanted) if all(part in content.lower() for part in want["must_contain"])]
            met.update(hits)
            self.matching += bool(hits)
            self.categories += any(wanted[i]["category"] == category for i in hits)
            if not hits:
                self.weight += confidence
                self.errors.append(f"{line['id']} not wanted: [{category}] {content[:200]}")
        self.errors += [f"{line['id']} missed: {want}" for i, want in enumerate(wanted) if i not in met]
        self.captured += len(heard.memories)
        self.labelled += len(wanted)
        self.found += len(met)

    def figures(self) -> dict[str, float | int]:
        """Return the metrics; a share of nothing counts as 1."""
        precision = self.matching / self.captured if self.captured else 1.0
        recall = self.found / self.labelled if self.labelled else 1.0
        return {
            "lines": self.lines,
            "captured": self.captured,
            "labelled": self.labelled,
            "false_per_100": round(100 * (self.captured - self.matching) / max(1, self.lines), 2),
            "false_weighed_per_100": round(100 * self.weight / max(1, self.lines), 2),
            "precision": round(precision, 4),
            "recall": round(recall, 4),
            "f1": round(2 * precision * recall / (precision + recall), 4) if precision + recall else 0.0,
            "category_accuracy": round(self.categories / self.matching, 4) if self.matching else 1.0,
            "secrets_leaked": self.leaked,
        }


def chosen(
    lines: Iterable[dict[str, Any]], samples: Collection[str] = (), sources: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the lines of these samples and kinds of source; nothing named is everything.

    Lines marked `either` are left out: those who labelled them could not say.
    """
    return [
        line
        for line in lines
        if not line.get("either")
        and (not samples or line.get("sample", "") in samples)
        and (not sources or {line["source"], line["source"].partition(":")[0]} & set(sources))
    ]


async def hear(line: dict[str, Any], root: Path, *, with_waiting: bool = False) -> CaptureResult:
    """Send one message through the mounted hook and return what was kept.

    Args:
        line: Labelled message to send.
        root: Empty folder for the storage.
        with_waiting: True to return waiting notes, too.
    """
    coordinator = MockCoordinator()
    emitted: list[str] = []

    async def listen(event: str, data: dict[str, Any]) -> None:
        emitted.append(json.dumps([event, data], ensure_ascii=False, default=str))

    for event in _EVENTS:
        coordinator.hooks.register(event, listen, priority=999, name="benchmark")
    context = MockContextManager()
    await coordinator.mount("context", context)
    cleanup = await mount(coordinator, {"agent_id": _AGENT, "storage_root": str(root), "embedder": "none"})
    try:
        await _say(coordinator, context, line)
        await coordinator.hooks.emit("session:end", {})
    finally:
        await cleanup()
    memories = await _stored(root)
    if with_waiting:
        memories += await _list_waiting(root)
    secret: str = line.get("secret") or ""
    leaked = bool(secret) and (any(secret in text for text in emitted) or _stands_below(root, secret))
    return CaptureResult(memories, leaked)


async def _say(coordinator: Any, context: Any, line: dict[str, Any]) -> None:
    source, text = line["source"], line["text"]
    if source == "user":
        await coordinator.hooks.emit("prompt:submit", {"prompt": text})
    elif source == "assistant":
        await context.add_message({"role": "assistant", "content": [{"type": "text", "text": text}]})
    else:
        name = source.partition(":")[2]
        result = {"success": True, "output": text, "error": None}
        await coordinator.hooks.emit("tool:post", {"tool_name": name, "tool_input": {}, "result": result})
    await coordinator.hooks.emit(
        "orchestrator:complete", {"orchestrator": "bench", "turn_count": 1, "status": "success"}
    )


async def _stored(root: Path) -> list[tuple[str, str, float]]:
    if not (root / _AGENT).exists():
        return []
    storage = FileStorage(_AGENT, root)
    try:
        return [(each.content, each.category, each.confidence or 0.0) async for each in storage.iter_all()]
    finally:
        await storage.close()


async def _list_waiting(root: Path) -> list[tuple[str, str, float]]:
    service = MemoryService(
        FileStorage(_AGENT, root), settings=ServiceSettings(embedder="none", storage_root=str(root))
    )
    try:
        async with opened_inbox(service) as inbox:
            return [(note.content, note.category, note.confidence or 0.0) for note in await inbox.waiting()]
    finally:
        await service.close()


def _stands_below(root: Path, secret: str) -> bool:
    forms = {secret.encode(), json.dumps(secret)[1:-1].encode()}
    return any(form in path.read_bytes() for path in root.rglob("*") if path.is_file() for form in forms)


async def run(lines: list[dict[str, Any]], *, with_waiting: bool = False) -> dict[str, CaptureTally]:
    """Judge all lines; return a tally for each kind of source and one for `all`."""
    tallies = {name: CaptureTally() for name in ("all", "user", "assistant", "tool")}
    for line in lines:
        with tempfile.TemporaryDirectory(prefix="capture-bench-") as folder:
            heard = await hear(line, Path(folder), with_waiting=with_waiting)
        for name in ("all", line["source"].partition(":")[0]):
            tallies[name].add(line, heard)
    return tallies


def main() -> None:
    """Run from the command line."""
    parser = build_parser("capture", __doc__, "--json")
    parser.add_argument("--data", type=Path, required=True, help="labelled messages, JSON lines, plain or .gz")
    parser.add_argument("--sample", nargs="*", default=(), metavar="NAME", help="only lines of these samples")
    parser.add_argument(
        "--source", nargs="*", default=(), metavar="KIND", help="only user, assistant, tool or tool:NAME"
    )
    parser.add_argument("--waiting", action="store_true", help="count waiting notes as captured, too")
    parser.add_argument("--errors", action="store_true", help="list every miss and every unwanted capture")
    options = parser.parse_args()
    lines = chosen(read_jsonl(options.data), options.sample, options.source)
    if not lines:
        parser.error(f"no line of {options.data} is of this sample and source")
    tallies = asyncio.run(run(lines, with_waiting=options.waiting))
    figures = tallies["all"].figures()
    by_source = {name: tally.figures() for name, tally in tallies.items() if name != "all" and tally.lines}
    shown = [*render_rows("", {"all": figures, **by_source}, 22, first=10)]
    shown += tallies["all"].errors if options.errors else []
    print_report({**figures, "by_source": by_source}, shown, as_json=options.json)


if __name__ == "__main__":
    main()
