"""Measure how long ingestion holds the event loop.

    python -m benchmarks.event_loop FILE... [--turns 5] [--json]

A task wants to run every two milliseconds. Between two of its steps the processor time of its process is measured. It
includes the threads that read: one that keeps the interpreter to itself holds the loop. What other programs take of the
processor is not counted. Nothing is embedded. Ends with 1 if a hold was longer than 100 ms.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from agent_memory.ingestion import MemoryIngestor, Turn, runner_of
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, open_agent, print_report, watch_loop

_MOST: Final = 0.1
_SAID: Final = "Maria Gomez from Acme Corp asked about order ORD-{number} in Lisbon. "


async def measure(files: list[Path], turns: int) -> dict[str, float]:
    """Return the longest hold of each part, in CPU seconds."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as root:
        settings, holds = ServiceSettings(storage_root=root, embedder="none"), dict[str, float]()
        async with open_agent(settings) as (service, knowledge):
            for file in files:
                async with watch_loop() as hold:
                    await Ingest(knowledge, service.report).file(file)
                    await runner_of(knowledge, service, at_once=True).run()
                holds[file.name] = hold.process
            session: Any = SimpleNamespace(tenant_id="acme", id="1")
            async with MemoryIngestor(knowledge=knowledge, service=service) as ingestor, watch_loop() as hold:
                for number in range(turns):
                    await ingestor.ingest_turn(Turn(_SAID.format(number=number) * 20, "Noted. " * 200), session)
                await ingestor.background.settle()
            holds["turns"] = hold.process
    return holds


def main() -> int:
    """Measure and print; return 1 for too long a hold."""
    parser = build_parser("event_loop", __doc__, "--json")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    holds = asyncio.run(measure(options.files, options.turns))
    print_report(holds, as_json=options.json)
    return int(max(holds.values()) > _MOST)


if __name__ == "__main__":
    sys.exit(main())
