"""Measure the import of a session log of Codex: processor time of a turn, and memory.

    python -m benchmarks.imports [--turns 4000] [--embedder local|none] [--json]
    python -m benchmarks.imports --megabytes 2000 [--turns 4000] [--kills 5] [--json]

A log with prompts, answers and outputs of tools in equal parts is imported as `agent-memory import` does it, items and
pages included. With `--megabytes` copies of the conversation, which a compaction writes, fill the log. The
import is a process then, and with `--kills` it is killed that often and repeated.

- `cpu_ms`: processor time of a turn, with what is loaded once
- `memory_mb`: largest private memory of the process
- `equal`: whether the turns of the killed import are those of one that was not
- `imports`: number of IDs that the killed import has; one undo takes all of it back if that is 1
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.bulk_import import BulkImport
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.knowledge.sources.source_files import open_source
from agent_memory.memory import Caller
from agent_memory.models import Episode
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, open_agent, open_scratch, print_report
from benchmarks.ingestion import say

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_BEGUN: Final = datetime(2026, 1, 5, tzinfo=UTC)
_CHARS: Final = (120, 400, 1200)
"""Characters of a prompt, an answer and an output."""
_ANSWER, _OUTPUT = 1, 2
_COPIED: Final = 1000
"""Messages of a conversation that is compacted."""
_CALLER: Final = Caller("import-bench")
_OF_ONE_RUN: Final = ("timestamp", "created_by_session")
"""Fields that differ between two imports of the same log."""


def write_log(path: Path, turns: int, megabytes: int = 0) -> None:
    """Write a log of Codex with some turns, padded to a size."""
    copy = [{"role": "user", "content": say(1000, number)} for number in range(_COPIED)]
    compacted = {"type": "compacted", "timestamp": _BEGUN.isoformat(), "payload": {"replacement_history": copy}}
    padding = json.dumps(compacted) + "\n"
    share = (megabytes << 20) / len(padding) / turns
    with path.open("w", encoding="utf-8") as stream:
        for number, line in enumerate(iter_lines(turns)):
            stream.write(json.dumps(line) + "\n")
            stream.write(padding * (int(share * (number + 1)) - int(share * number)))


def iter_lines(turns: int) -> Iterator[dict[str, Any]]:
    """Yield the lines of a log: prompts, answers and outputs in order."""
    yield {"timestamp": _BEGUN.isoformat(), "type": "session_meta", "payload": {"id": "s", "cwd": "/srv/ledger"}}
    for number in range(turns):
        kind = number % len(_CHARS)
        payload: dict[str, Any] = {"type": "user_message", "message": say(_CHARS[0], number)}
        if kind == _ANSWER:
            content = [{"type": "output_text", "text": say(_CHARS[1], number)}]
            payload = {"type": "message", "role": "assistant", "content": content}
        elif kind == _OUTPUT:
            rows = "\n".join(say(100, number % 1000 + row) for row in range(_CHARS[2] // 100))
            payload = {"type": "function_call_output", "call_id": "c", "output": f"{number} rows\n{rows}"}
        said_at = (_BEGUN + timedelta(minutes=number)).isoformat()
        yield {"timestamp": said_at, "type": "response_item" if kind else "event_msg", "payload": payload}


async def measure(turns: int, embedder: str) -> dict[str, float]:
    """Import a log in this process and return the figures."""
    with open_scratch() as folder:
        write_log(folder / "rollout-a.jsonl", turns)
        settings = ServiceSettings(storage_root=str(folder / "memory"), embedder=embedder)
        began = _get_cpu()
        async with open_agent(settings) as (service, knowledge):
            bulk, tree = BulkImport(knowledge, service, _CALLER), open_source(str(folder / "rollout-a.jsonl"))
            plan = await bulk.plan(tree, None, lambda _: None)
            stored = await bulk.store(tree, plan, lambda _: None)
            ingested = _get_cpu()
            await runner_of(knowledge, service, _CALLER, at_once=True).run()
        ended = _get_cpu()
    count = stored["turns"]
    return {"turns": count, "cpu_ms": 1000 * (ended - began) / count, "store_ms": 1000 * (ingested - began) / count}


def _get_cpu() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure_process(turns: int, megabytes: int, kills: int) -> dict[str, Any]:
    """Import a log in processes, kill some, and return the figures."""
    with open_scratch() as folder:
        log = folder / "rollout-a.jsonl"
        write_log(log, turns, megabytes)
        began = time.monotonic()
        figures: dict[str, Any] = {"megabytes": log.stat().st_size >> 20, **_run(log, folder / "whole")}
        figures["seconds"] = time.monotonic() - began
        if kills:
            for kill in range(kills):
                _run(log, folder / "killed", figures["seconds"] * (kill + 1) / (kills + 1))
            _run(log, folder / "killed")
            whole, killed = (_list_turns(folder / name) for name in ("whole", "killed"))
            names = [field for field in Episode.model_fields if field not in _OF_ONE_RUN]
            texts = [Counter(turn.model_dump_json(include={*names}) for turn in turns) for turns in (whole, killed)]
            figures["equal"] = texts[0] == texts[1]
            figures["imports"] = len({turn.created_by_session for turn in killed})
    return figures


def _run(log: Path, root: Path, seconds: float | None = None) -> dict[str, float]:
    """Import a log, killed after some seconds; return memory and time."""
    command = [sys.executable, "-m", "agent_memory.cli", "import", str(log), "-a", "bob", "--root", str(root), "--yes"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    if seconds is not None:
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if seconds is None and process.returncode:
        raise RuntimeError(f"the import ended with {process.returncode}")
    return {"memory_mb": usage.ru_maxrss / 1024, "cpu_s": usage.ru_utime + usage.ru_stime}


def _list_turns(root: Path) -> list[Episode]:
    """Return the turns of an agent."""

    async def list_all() -> list[Episode]:
        knowledge = Knowledge("bob", ServiceSettings(storage_root=str(root), embedder="none"))
        turns = [turn async for turn in knowledge.episodes.iter_all()]
        await knowledge.close()
        return turns

    return asyncio.run(list_all())


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = build_parser("imports", __doc__, "--embedder", "--kills", "--json", kills=0)
    parser.add_argument("--turns", type=int, default=4000)
    parser.add_argument("--megabytes", type=int, default=0, help="of a log that a process imports")
    args = parser.parse_args(argv)
    if args.megabytes or args.kills:
        report = measure_process(args.turns, args.megabytes, args.kills)
    else:
        report = asyncio.run(measure(args.turns, args.embedder))
    print_report(report, as_json=args.json)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
