"""The processes of `benchmarks.backups`: one that stores all the time, and one that does one thing and may be killed.

    python -m benchmarks.backups.worker store ROOT NAME      # until it is ended; says what was acknowledged
    python -m benchmarks.backups.worker create|restore|prune ROOT [FILE] [--die N]

Whoever stores keeps a memory and then a record of another kind in another journal, so that a backup of two moments has
one without the other. `--die N` ends the process by SIGKILL right before its N-th call that changes a file.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from agent_memory.care.backups.backup_reader import list_backups, prune_backups, to_prune
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.backups.restoration import restore_backup
from agent_memory.errors import BusyError
from agent_memory.files.layout import folder_of
from agent_memory.journal import Change, Journal
from agent_memory.memories import FileStorage
from agent_memory.models import Memory
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, die_at, tell

AGENT: Final = "bench"
PAIRS: Final = "pairs.yaml"
PAIR: Final = "pair"


async def store(root: Path, name: str) -> None:
    """Store until the process is ended, and say of each what was acknowledged, and after how long."""
    storage = FileStorage(AGENT, root, settings=ServiceSettings(embedder="none"))
    pairs = Journal(storage.folder.path / PAIRS, {PAIR})
    await storage.count()
    tell(ready=name)
    for number in itertools.count():
        begun = time.perf_counter()
        try:
            memory_id = await storage.store(
                Memory(agent_id=AGENT, content=f"{name} keeps box {number} of {os.getpid()}.")
            )
            tell(memory=memory_id, seconds=time.perf_counter() - begun)
            with pairs.locked() as writer:
                writer.append([Change("put", PAIR, memory_id.replace("mem-", "par-"), {"of": name})])
            tell(pair=memory_id)
        except BusyError:
            tell(busy=name)
        await asyncio.sleep(0)


def act(root: Path, doing: str, file: str | None) -> None:
    """Do one thing and say how long it took."""
    begun = time.perf_counter()
    if doing == "create":
        made = create_backup(folder_of(AGENT, root))
        said: dict[str, Any] = {"file": made.path.name, "bytes": made.size}
    elif doing == "restore":
        assert file is not None
        done = restore_backup(Path(file), root)
        said = {"before": None if done.before is None else done.before.path.name}
    else:
        gone = to_prune(list_backups(root), datetime.now(UTC), keep=2)
        said = {"removed": [each.path.name for each in gone], "freed": prune_backups(root, gone)}
    tell(done=doing, seconds=time.perf_counter() - begun, **said)


def main() -> None:
    """Do what the command line says."""
    parser = build_parser("backups.worker", __doc__)
    parser.add_argument("doing", choices=["store", "create", "restore", "prune"])
    parser.add_argument("root", type=Path)
    parser.add_argument("what", nargs="?")
    parser.add_argument("--die", type=int, default=0)
    given = parser.parse_args()
    if given.doing == "store":
        asyncio.run(store(given.root, given.what))
        return
    tell(ready=given.doing)
    sys.stdin.readline()
    seen = die_at(given.die)
    act(given.root, given.doing, given.what)
    tell(calls=seen[0])


if __name__ == "__main__":
    main()
