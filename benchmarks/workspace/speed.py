"""Measure snapshots, restoring, reading and search of a workspace."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.workspace import Workspace
from benchmarks.harness import get_percentile, measure_calls
from benchmarks.workspace.load import DECLARATION

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_WORDS: Final = [f"{a}{b}{c}" for a in "bdfgklmnprstvz" for b in "aeiou" for c in ("n", "r", "st", "l", "")]
_WRITERS: Final = 16


def run(folder: Path, megabytes: int, *, as_json: bool) -> int:
    """Measure; print; return 1 where something is slower than wanted."""
    workspace = Workspace.create(folder / "speed", DECLARATION)
    chance = random.Random(7)
    _fill(workspace, chance, megabytes)
    database = workspace.folder / ".workspace" / "rows.db"
    found: dict[str, Any] = {"database_mb": round(database.stat().st_size / 1e6)}
    columns = ["number", "title", "summary"]
    found["summaries_of_1000_ms"] = _p95(30, lambda: workspace.tables.many("chapters", columns=columns, limit=1000))
    found["search_10000_ms"] = _p95(50, lambda: workspace.tables.search("tactics", " ".join(chance.sample(_WORDS, 3))))
    found["snapshot_with_dump_s"] = _seconds(lambda: workspace.snapshots.make("first", dump=True))
    before = _size(workspace)
    found["snapshot_unchanged_ms"] = round(1000 * _seconds(lambda: workspace.snapshots.make("same", dump=True)), 1)
    found["snapshot_unchanged_bytes"] = _size(workspace) - before
    for number in range(1, 1001):
        workspace.tables.update("chapters", number, {"summary": f"another {number}"})
    found["restore_1000_rows_s"] = _seconds(lambda: workspace.resume_from_snapshot("first"))
    found["snapshot_beside_writers_s"] = _beside_writers(workspace)
    workspace.close()
    print(json.dumps(found, indent=2 if as_json else None))
    most = {
        "summaries_of_1000_ms": 5, "search_10000_ms": 20, "snapshot_with_dump_s": 2, "snapshot_unchanged_ms": 20,
        "snapshot_unchanged_bytes": 5000, "restore_1000_rows_s": 2, "snapshot_beside_writers_s": 3,
    }  # fmt: skip
    return 1 if any(found[name] > limit for name, limit in most.items()) else 0


def _fill(workspace: Workspace, chance: random.Random, megabytes: int) -> None:
    """Make the database about as large as wanted: half of it in texts of chapters, half in their history."""
    with workspace.tables.bulk() as save:
        for _ in range(10_000):
            save("tactics", {"name": _text(chance, 4), "description": _text(chance, 40)})
        length = megabytes * 1_000_000 // 2 // 1000
        for number in range(1, 1001):
            body = f"{number} {_text(chance, 2000)}".ljust(length, ".")[:length]
            save("chapters", {"number": number, "title": _text(chance, 5), "summary": _text(chance, 60), "body": body})
        for number in range(20):
            save("counters", {"number": number, "text": _text(chance, 30)})
    prompts = workspace.folder / "prompts"
    prompts.mkdir()
    for number in range(20):
        (prompts / f"{number}.md").write_text(_text(chance, 300))


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


def _beside_writers(workspace: Workspace) -> float:
    command = [sys.executable, "-m", "benchmarks.workspace.load", str(workspace.folder), "2000", ""]
    writers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for number in range(_WRITERS)
    ]
    try:
        time.sleep(6)  # until all of them write
        return _seconds(lambda: workspace.snapshots.make("beside", dump=True))
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()


def _size(workspace: Workspace) -> int:
    return sum(path.stat().st_size for path in (workspace.folder / ".workspace").rglob("*") if path.is_file())


def _seconds(what: Callable[[], object]) -> float:
    return round(measure_calls(what, 1)[0], 3)


def _p95(times: int, what: Callable[[], object]) -> float:
    return round(get_percentile(measure_calls(what, times), 0.95) * 1000, 2)
