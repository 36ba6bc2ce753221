"""Purges that are killed: `python -m benchmarks.purging [--kills N] [--seed N] [--memories N]`.

An agent has memories, some of them archived, with a backup and with copies that were kept aside. A process purges one
and dies by SIGKILL right before one of its calls that change a file, chosen at random. Then another opens the agent,
which goes on with what was begun. Wrong is: another memory is missing or says something else; the backup cannot be read
whole; or, where the purge had been begun, a byte of the text is in any file. Each round begins with a fresh agent.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from pathlib import Path
from typing import Final

from agent_memory.care.archive import Archive
from agent_memory.care.backups.backup_reader import list_backups, verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.privacy.purge import Purging
from agent_memory.journal import PurgeList
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.memory.features import finish_purges
from agent_memory.settings import ServiceSettings
from benchmarks.harness import build_parser, die_at, run_until_killed, tell

AGENT: Final = "bench"
TEXT: Final = "Ann's salary is seventy-two thousand a year."
_NEEDLE: Final = b"salary is seventy-two"


def opened(root: Path) -> MemoryService:
    """Return the service of the agent."""
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    return MemoryService(FileStorage(AGENT, settings=settings), settings)


async def prepare(root: Path, memories: int) -> tuple[str, dict[str, str]]:
    """Make the agent; return the id that is to be purged, and the text of every other by its id."""
    service = opened(root)
    stored = [await service.store(f"Box {number} stands in the harbour of Kiel.") for number in range(memories)]
    secret = (await service.store(TEXT)).memory.id
    archive = Archive(service)
    await archive.add([stored[0].memory.id, secret])
    again = (await service.store(f"{TEXT} So said Kate.")).memory.id
    await service.settle()
    folder = root / AGENT
    create_backup(service.folder or sys.exit("no folder"))
    (folder / "memories.yaml.before-repair-20260301T120000").write_bytes((folder / "memories.yaml").read_bytes())
    await archive.close()
    await service.close()
    others = {each.memory.id: each.memory.content for each in stored}
    return secret, {**others, again: f"{'█' * len(TEXT)} So said Kate."}


async def purge(root: Path, record_id: str) -> None:
    """Purge one record."""
    service = opened(root)
    purging = Purging(service)
    await purging.run(await purging.plan([record_id]))
    await service.close()


async def look(root: Path, others: dict[str, str]) -> list[str]:
    """Open the agent, which goes on; return what is wrong then."""
    service = await finish_purges(opened(root))
    archive = Archive(service)
    known = {memory.id: memory.content for memory in await service.searcher.list_all()}
    known |= {each.id: each.content for each in await archive.everything()}
    await archive.close()
    await service.close()
    begun = bool(PurgeList(root / AGENT).purges())
    wrong = [] if not PurgeList(root / AGENT).list_unfinished() else ["it is unfinished still"]
    for one, text in others.items():
        said = known.get(one)
        if said != text and not (not begun and said is not None):
            wrong.append(f"{one} says {said!r}")
    for backup in list_backups(root):
        wrong += verify_backup(backup.path).problems
    if begun:
        wrong += [f"{path.name} has it still" for path in _holding(root)]
    return wrong


def _holding(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*")) if path.is_file() and _NEEDLE in path.read_bytes()]


def main() -> int:
    """Do what the command line says."""
    parser = build_parser("purging", __doc__, "--kills", "--seed", kills=40)
    parser.add_argument("--memories", type=int, default=20)
    parser.add_argument("--purge", nargs=2, metavar=("ROOT", "ID"), help=argparse.SUPPRESS)
    parser.add_argument("--die", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.purge:
        seen = die_at(given.die)
        asyncio.run(purge(Path(given.purge[0]), given.purge[1]))
        tell(calls=seen[0])
        return 0
    return run(given.kills, given.seed, given.memories)


def run(kills: int, seed: int, memories: int) -> int:
    """Kill so many times, say what was wrong, and return how often."""
    chance, calls, wrong, died = random.Random(seed), 0, 0, 0
    for kill in range(kills + 1):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            record_id, others = asyncio.run(prepare(root, memories))
            number = 0 if kill == 0 else chance.randint(1, calls)
            is_dead, counted = run_until_killed("purging", "--purge", root, record_id, die=number)
            calls, died = counted or calls, died + is_dead
            for sentence in (found := asyncio.run(look(root, others))):
                print(f"killed before call {number} of {calls}: {sentence}")
            wrong += bool(found)
    print(f"{died} of {kills} killed before one of {calls} calls that change a file; {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
