"""Count what a store and a search through the tools cross: functions and files of ours, thread switches.

python -m tests.architecture.call_counts FOLDER
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from typing import Any, Final

_OURS: Final = ("/agent_memory/", "/amplifier_module_")
_SAMPLES: Final = (
    "Use PostgreSQL for the ledger",
    "Maria likes tea in the morning",
    "Deploy on Fridays after smoke tests",
    "The user prefers dark mode",
)
_STORE: Final = {"content": "The staging server is in Frankfurt because of latency", "category": "decision"}
_SEARCH: Final = {"query": "where is the staging server"}
_SECONDS_BEHIND: Final = 1.0
"""Background work of the samples ends within it; a longer wait changes nothing."""


class CallRecorder:
    """Profiler callback that notes file, function and thread of each call of ours, except those of redaction."""

    def __init__(self) -> None:
        self.is_recording = False
        self.calls: list[tuple[str, str, int]] = []

    def __call__(self, frame: Any, event: str, _argument: Any) -> None:
        """Note one event of the profiler."""
        code = frame.f_code
        is_ours = any(part in code.co_filename for part in _OURS) and "/redaction/" not in code.co_filename
        if self.is_recording and event == "call" and is_ours:
            self.calls.append((code.co_filename, code.co_qualname, threading.get_ident()))


def summarize(calls: list[tuple[str, str, int]]) -> dict[str, int]:
    """Return the numbers of named functions, of files and of thread switches."""
    named = {(file, name) for file, name, _ in calls if "<" not in name.rpartition(".")[2]}
    return {
        "functions": len(named),
        "files": len({file for file, _, _ in calls}),
        "switches": sum(first != second for first, second in itertools.pairwise(thread for _, _, thread in calls)),
    }


async def count_calls(recorder: CallRecorder, folder: str) -> dict[str, dict[str, int]]:
    """Return the counts of a store and a search, by words alone, in a session that is warm."""
    from amplifier_module_tool_memory_semantic import mount
    from tests.support import coordinator_of

    coordinator = coordinator_of()
    unmount = await mount(coordinator, {"agent_id": "bob", "storage_root": folder, "embedder": "none"})
    tools = coordinator.get("tools")
    for content in _SAMPLES:
        await tools["memory_store"].execute({"content": content, "category": "decision"})
    await tools["memory_search"].execute({"query": "which database"})
    counts = {}
    for act, arguments in (("store", _STORE), ("search", _SEARCH)):
        await asyncio.sleep(_SECONDS_BEHIND)
        recorder.calls.clear()
        recorder.is_recording = True
        result = await tools[f"memory_{act}"].execute(arguments)
        recorder.is_recording = False
        assert result.success, result.error
        counts[act] = summarize(recorder.calls)
    await unmount()
    return counts


if __name__ == "__main__":
    profiler = CallRecorder()
    threading.setprofile(profiler)
    sys.setprofile(profiler)
    json.dump(asyncio.run(count_calls(profiler, sys.argv[1])), sys.stdout)
