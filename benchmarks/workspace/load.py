"""Many processes that write and read one workspace at once: what each was told is there, how long it waited."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from agent_memory.errors import AgentMemoryError, ConflictError
from agent_memory.workspace import Workspace
from benchmarks.harness import get_percentile

DECLARATION: Final = Path(__file__).with_name("load.yaml")
_COUNTERS: Final = 20
_TEXT: Final = "The crew measures the roof twice before it orders shingles, vents and flashing. " * 3


def run(folder: Path, processes: int, operations: int, url: str | None, *, as_json: bool) -> int:
    """Load a workspace; print what was measured; return 1 where something is wrong."""
    workspace = Workspace.create(folder / "load", DECLARATION, url=url)
    for number in range(_COUNTERS):
        workspace.tables.save("counters", {"number": number, "text": _TEXT})
    begun = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.workspace.load", str(folder / "load"), str(operations), url or ""]
    workers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(processes)
    ]
    told = [json.loads(worker.communicate()[0]) for worker in workers]
    seconds = time.monotonic() - begun
    wrong = _wrong(workspace, told)
    workspace.close()
    report = {
        "processes": processes,
        "operations": processes * operations,
        "seconds": round(seconds, 1),
        "conflicts": sum(each["conflicts"] for each in told),
        "errors": [error for each in told for error in each["errors"]],
        "all_ms": _told([one for each in told for one in each["writes"] + each["reads"]]),
        "writes_ms": _told([one for each in told for one in each["writes"]]),
        "reads_ms": _told([one for each in told for one in each["reads"]]),
        "wrong": wrong,
    }
    print(json.dumps(report, indent=2 if as_json else None))
    return 1 if wrong or report["errors"] else 0


def _wrong(workspace: Workspace, told: list[dict[str, Any]]) -> list[str]:
    there = {(row["process"], row["number"]) for row in _all_events(workspace)}
    acknowledged = {(process, number) for process, each in enumerate(told) for number in each["saved"]}
    total = sum(row["value"] for row in workspace.tables.many("counters").rows)
    added = sum(each["added"] for each in told)
    wrong = []
    if there != acknowledged:
        wrong.append(f"{len(acknowledged - there)} rows are lost, {len(there - acknowledged)} were never acknowledged")
    if total != added:
        wrong.append(f"counters say {total}, and {added} was added")
    return wrong


def _all_events(workspace: Workspace) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    while more := workspace.tables.many("events", offset=len(rows)).rows:
        rows += more
    return rows


def _told(milliseconds: list[float]) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(get_percentile(milliseconds, share), 1) for name, share in shares.items()}


def _work(folder: str, operations: str, url: str, process: str) -> None:
    """Do a process's share of the operations: two in five add a row, one changes a counter, two read."""
    workspace = Workspace.open(Path(folder), url=url or None)
    chance, number = random.Random(process), int(process)
    report: dict[str, Any] = {"writes": [], "reads": [], "saved": [], "added": 0, "conflicts": 0, "errors": []}
    for count in range(int(operations)):
        what = chance.choices(("save", "add", "get", "search"), (4, 2, 3, 1))[0]
        begun = time.perf_counter()
        try:
            if what == "save":
                workspace.tables.save("events", {"process": number, "number": count, "text": _TEXT})
                report["saved"].append(count)
            elif what == "add":
                row = workspace.tables.get("counters", chance.randrange(_COUNTERS))
                begun = time.perf_counter()
                expected = {"value": row["value"]}
                workspace.tables.update("counters", row["number"], {"value": row["value"] + 1}, expected=expected)
                report["added"] += 1
            elif what == "get":
                workspace.tables.get("counters", chance.randrange(_COUNTERS))
            else:
                workspace.tables.search("counters", "shingles roof", limit=5)
        except ConflictError:
            report["conflicts"] += 1
        except AgentMemoryError as error:
            report["errors"].append(f"{what}: {error.code}: {error}")
        report["writes" if what in ("save", "add") else "reads"].append((time.perf_counter() - begun) * 1000)
    workspace.close()
    print(json.dumps(report))


if __name__ == "__main__":
    _work(*sys.argv[1:])
