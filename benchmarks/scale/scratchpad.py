"""Cost of the scratchpad for the requests of a session.

    python -m benchmarks.scale.scratchpad ROOT ROUNDS

is one such session: it says, as JSON on its standard output, the processor time of its first request, imports done,
and the time of each later one, in seconds.
"""

# Imports in functions: made by the process that is measured, before the clock starts
from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.scale.figures import BenchmarkFigure, figure
from benchmarks.scale.vectors import AGENT

_SESSIONS: Final = 7
_SMALL: Final = 5_000


def scratchpads(root: Path, size: int, rounds: int) -> list[BenchmarkFigure]:
    """Measure sessions that start with and without a read journal."""
    shortlist = root / AGENT / "shortlist.json"
    shortlist.unlink(missing_ok=True)
    read = _session(root, rounds)
    sessions = [_session(root, rounds) for _ in range(_SESSIONS)]
    shortlist.unlink(missing_ok=True)
    budget = 50 if size <= _SMALL else None
    return [
        figure("scratchpad, first of a session, processor time", size, [run["first"] for run in sessions], budget),
        figure("the same where the journal has to be read", size, [read["first"]]),
        figure("scratchpad, later requests", size, [seconds for run in sessions for seconds in run["later"]], 1),
    ]


def _session(root: Path, rounds: int) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale.scratchpad", str(root), str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


async def _measured(root: Path, rounds: int) -> dict[str, Any]:
    from amplifier_core.testing import MockContextManager, MockCoordinator

    from amplifier_module_context_memory_scratchpad import mount

    coordinator = MockCoordinator()
    await coordinator.mount("context", MockContextManager())
    cleanup = await mount(coordinator, {"storage_root": str(root), "agent_id": AGENT, "embedder": "none"})
    context = coordinator.get("context")
    started = time.process_time()
    shown = await context.get_messages_for_request()
    first = time.process_time() - started
    assert any("scratchpad of" in message["content"] for message in shown), "nothing is shown"
    await asyncio.sleep(1)  # the model thinks; what the session prepares meanwhile is not part of the next request
    later = []
    for _ in range(rounds):
        began = time.perf_counter()
        await context.get_messages_for_request()
        later.append(time.perf_counter() - began)
    await cleanup()
    return {"first": first, "later": later}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measured(Path(sys.argv[1]), int(sys.argv[2])))))
