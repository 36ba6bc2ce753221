"""Run the demo: `python -m agent_memory_demo [--home FOLDER]`. Each day is a process of its own."""

from __future__ import annotations

import argparse
import asyncio
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

from amplifier_core import AmplifierSession

from agent_memory_demo.days import DAY_ONE, DAY_TWO, Exchange

MODULES = {
    "session": {
        "orchestrator": {"module": "loop-demo"},
        "context": {"module": "context-memory-scratchpad"},
    },
    "providers": [{"module": "provider-demo"}],
    "tools": [{"module": "tool-memory-semantic"}],
    "hooks": [{"module": "hooks-memory-capture"}],
}
_OUTCOMES = ("agent_id", "enabled", "memory_id", "in_scratchpad", "memories", "duplicate_of", "new", "message")
"""What is shown of a tool's answer, which has more."""
_INTRODUCTION = """
The model in this demo is scripted in demo/agent_memory_demo/days.py, so no key is needed. The host is amplifier-core
with a small loop of the demo. The memory is real: tools and answers, search, scratchpad, capture and files."""


def main() -> int:
    """Run both days, then show the files."""
    parser = argparse.ArgumentParser(prog="agent_memory_demo", description="Two days of an agent that remembers.")
    parser.add_argument("--home", type=Path, help="folder that plays the home directory (default: a temporary one)")
    parser.add_argument("--day", type=int, choices=(1, 2), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.day:
        end(asyncio.run(live(args.day)))
    if args.home:
        args.home.mkdir(parents=True, exist_ok=True)
        return show(args.home.resolve(), "Run it again with the same memory:  make demo HOME_DIR={home}")
    home = Path(tempfile.mkdtemp(prefix="agent-memory-demo-")).resolve()
    status = show(home, "They are removed now. To keep such files:  make demo HOME_DIR=FOLDER")
    if not status:
        shutil.rmtree(home)
    return status


def show(home: Path, farewell: str) -> int:
    """Run both days in a home, then show its files and say the last words; return 0 if all went as promised."""
    print(_INTRODUCTION, flush=True)
    for day in (1, 2):
        status = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "agent_memory_demo", "--day", str(day)],
            env={**os.environ, "HOME": str(home)},
            check=False,
        ).returncode
        if status:
            print(f"\nDay {day} {told(status)}", file=sys.stderr)
            return status
    show_files(home / ".amplifier" / "memory" / "bob")
    print(f"\n  {farewell.format(home=home)}\n")
    return 0


def end(status: int) -> NoReturn:
    """End this process with what is registered for its end done, but without tearing the interpreter down.

    The engine of amplifier-core keeps threads of its own, which it never joins; one that calls into an interpreter that
    is being torn down crashes the process after all is done.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - our workers leave their models, logs are flushed
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def told(status: int) -> str:
    """Describe an exit status other than 0."""
    if status < 0:
        return f"crashed with {signal.Signals(-status).name}; what it had checked before that is printed above."
    return f"did not go as promised (exit status {status})."


async def live(day: int) -> int:
    """Live through one day in this process; return 0 if everything promised has happened."""
    title("Day one: a session with memory" if day == 1 else "Day two: a new session, in a new process")
    session = AmplifierSession(MODULES)
    await session.initialize()
    events: list[str] = []
    for event in ("memory:captured", "memory:degraded"):
        session.coordinator.hooks.register(event, lambda name, _data: events.append(name))
    try:
        for exchange in DAY_ONE if day == 1 else DAY_TWO:
            await converse(session, exchange)
        seen = "\n".join(str(m.content) for m in session.coordinator.get_capability("demo.script").sent)
    finally:
        await session.cleanup()
    if day == 1:
        return check("memory:captured" in events, "the hook captured the decision about Fridays")
    status = check(
        "dark mode" in seen and "[agent-memory: scratchpad of bob]" in seen, "the scratchpad reached the model"
    )
    status |= check("Fridays" in seen, "what the hook captured yesterday is known today")
    return status | check("transactions across tables" in seen, "search found yesterday's decision")


async def converse(session: Any, exchange: Exchange) -> None:
    """Play one turn and print it."""
    script = session.coordinator.get_capability("demo.script")
    script.steps, script.results = list(exchange.steps), []
    print(f"\n  user   {exchange.prompt}")
    reply = await session.execute(exchange.prompt)
    for step, result in zip((s for s in exchange.steps if hasattr(s, "tool")), script.results, strict=False):
        print(f"    tool {step.tool} -> {shortened(result)}")
    show_pad(script.sent)
    print(f"  agent  {reply}")
    if exchange.remark:
        print(f"         ({exchange.remark})")


_shown_pads: list[str] = []


def show_pad(messages: list[Any]) -> None:
    """Print the scratchpad the model was sent, when it is a new one."""
    for message in messages:
        text = str(message.content)
        if text.startswith("[agent-memory: scratchpad") and text not in _shown_pads:
            _shown_pads.append(text)
            print("    the model is also sent, right after the system message:")
            print("\n".join(f"      | {line}" for line in text.splitlines()))


def shortened(result: dict[str, Any]) -> str:
    """Return a tool's answer on one line."""
    if "results" in result:
        found = "; ".join(f'{hit["id"]} "{hit["content"]}"' for hit in result["results"][:2])
        return f"{result['total_found']} found, match {result['match']}: {found}"
    if "memories" in result and "count" in result:
        return f"{result['count']} memories: {', '.join(memory['id'] for memory in result['memories'])}"
    return ", ".join(f"{name} {json.dumps(result[name], ensure_ascii=False)}" for name in _OUTCOMES if name in result)


def show_files(folder: Path) -> None:
    """Print the files with their meaning."""
    title("Files on disk now")
    meaning = {
        "memories.yaml": "the truth: an append-only journal that any YAML tool reads",
        "scratchpad.yaml": "what the agent sees at the start of a session; you may edit it",
        "events.jsonl": "which memory was changed when; ids, no content",
        "embeddings.sqlite3": "vectors, derived; may be deleted",
        "metadata.json": "schema and backend",
    }
    print(f"\n  {folder}")
    for path in sorted(folder.iterdir()):
        if path.name in meaning:
            print(f"    {path.name:<20} {path.stat().st_size:>6} bytes  {meaning[path.name]}")


def check(held: bool, what: str) -> int:  # noqa: FBT001 - a verdict is a boolean
    """Print whether something promised has happened; return 0 if so."""
    print(f"  {'ok ' if held else 'NOT'}    {what}")
    return 0 if held else 1


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'=' * len(text)}")


if __name__ == "__main__":
    sys.exit(main())
