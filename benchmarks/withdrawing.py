"""Measure the time of forgetting an item of a long page.

    python -m benchmarks.withdrawing [--items 1600] [--forget 20] [--json]

One speaker says so many different things, which become items of one page, without an embedder. Some of them are
forgotten one after the other, as a tool of a session does it, each by its id.

- `forget_ms`: milliseconds of one call: half of them and 95 in 100 are faster, and the slowest
- `cpu_ms`: processor time of the process for one call
- `held_ms`: the longest that the event loop stood still meanwhile
- `written`: bytes by which the journal of topics grew with each
- `left`: of the forgotten items, how many stand on the page, in its files or in the records' list; has to be 0
"""

from __future__ import annotations

import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pages.page_watcher import keep_pages
from agent_memory.knowledge.pages.pages import Pages
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import open_service
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, get_percentile, print_report, render_figures, watch_loop
from benchmarks.ingestion.benchmark import statements_of

if TYPE_CHECKING:
    from collections.abc import Sequence


async def measure(folder: Path, count: int, forgotten: int) -> dict[str, Any]:
    """Make the page, forget, and return the figures."""
    settings = ServiceSettings(storage_root=str(folder / "root"), embedder="none")
    knowledge, service = Knowledge("bob", settings), keep_pages(open_service("bob", settings))
    path = folder / "talk.jsonl"
    said = statements_of(count, seed=5)
    path.write_text("\n".join(json.dumps({"speaker": "Lea", "text": text}) for text in said), encoding="utf-8")
    await Ingest(knowledge).file(path)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    items = [memory for memory in await service.searcher.list_all() if memory.is_item]
    chosen = random.Random(7).sample(items, forgotten + 1)
    await service.forget(chosen.pop().id)  # what is imported and opened once
    journal = knowledge.folder.path / "knowledge.yaml"
    before, cpu, taken = journal.stat().st_size, time.process_time(), list[float]()
    async with watch_loop() as hold:
        for each in chosen:
            started = time.perf_counter()
            await service.forget(each.id)
            taken.append((time.perf_counter() - started) * 1000)
    cpu, written = time.process_time() - cpu, journal.stat().st_size - before
    topics = await Pages(knowledge, service).list_shown()
    texts = [each.read_text() for each in knowledge.folder.topics.iterdir()] + [topic.body for topic in topics]
    left = sum(any(each.id in text for text in texts) for each in chosen)
    left += len({item_id for topic in topics for item_id in topic.item_ids}.intersection(each.id for each in chosen))
    await service.close()
    await knowledge.close()
    return {
        "page": {"items": len(items), "characters": max(len(topic.body) for topic in topics)},
        "forget_ms": {
            "p50": round(get_percentile(taken, 0.5), 2),
            "p95": round(get_percentile(taken, 0.95), 2),
            "most": round(max(taken), 1),
        },
        "cpu_ms": round(1000 * cpu / forgotten, 1),
        "held_ms": round(hold.seconds * 1000, 1),
        "written": round(written / forgotten),
        "left": left,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the figures."""
    parser = build_parser("withdrawing", __doc__, "--json")
    parser.add_argument("--items", type=int, default=1600)
    parser.add_argument("--forget", type=int, default=20)
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        figures = asyncio.run(measure(Path(folder), asked.items, asked.forget))
    print_report(figures, render_figures(figures), as_json=asked.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
