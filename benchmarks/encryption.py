"""Encryption that is killed, and what it costs: `python -m benchmarks.encryption [--kills N] [--seed N] [--cost N]`.

An agent has memories, some of them archived, a long text, a backup and copies that were kept aside. A process encrypts
it, decrypts it, or changes the key, and dies by SIGKILL right before one of its calls that change a file, chosen at
random. Wrong is: with the key, a memory is missing or says something else before the command is run again; or after
that; the backup cannot be read whole; or, once it was encrypted to its end, a byte of a text is in any file.

`--cost N` opens N memories instead, and the same ones in plain files: processor time to the first answer.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from agent_memory.care.archive import Archive
from agent_memory.care.backups.backup_reader import list_backups, verify_backup
from agent_memory.care.backups.backup_writer import create_backup
from agent_memory.care.privacy.file_encryption import change_key, decrypt, encrypt
from agent_memory.encryption import KeyFile, PersonKey, get_encryption_state, is_encrypted
from agent_memory.encryption.blobs import AgentBlobs
from agent_memory.encryption.keys import forget_keys
from agent_memory.errors import StorageError
from agent_memory.files.layout import AgentFolder, folder_of
from agent_memory.memories import FileStorage
from agent_memory.memory import MemoryService
from agent_memory.models import Memory
from agent_memory.settings import EncryptionSettings, ServiceSettings
from benchmarks.harness import build_parser, die_at, run_until_killed, tell

AGENT: Final = "bench"
KEY: Final = "1f" * 32
NEW_KEY: Final = "2e" * 32
LONG: Final = "The harbour of Kiel is described at length. " * 300
_NEEDLE: Final = b"harbour of Kiel"
_SECONDS: Final = 120
ACTS: Final = ("encrypt", "decrypt", "rekey")


def opened(root: Path) -> MemoryService:
    """Return the service of the agent."""
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    return MemoryService(FileStorage(AGENT, settings=settings), settings)


def folder_at(root: Path) -> AgentFolder:
    """Return the agent's folder."""
    return folder_of(AGENT, root)


async def prepare(root: Path, memories: int) -> dict[str, str]:
    """Make the agent; return what each of its memories says, by id."""
    service = opened(root)
    stored = [await service.store(f"Box {number} stands in the harbour of Kiel.") for number in range(memories)]
    archive = Archive(service)
    await archive.add([stored[0].memory.id])
    await service.settle()
    folder = folder_at(root)
    with AgentBlobs(folder).keeping([LONG]):
        pass
    create_backup(folder)
    (folder.path / "memories.yaml.before-repair-20260301T120000").write_bytes(folder.journal.read_bytes())
    await archive.close()
    await service.close()
    return {each.memory.id: each.memory.content for each in stored}


def act(name: str, root: Path) -> None:
    """Do one of `ACTS`."""
    folder = folder_at(root)
    if name == "encrypt":
        encrypt(folder)
    elif name == "decrypt":
        decrypt(folder)
    else:
        change_key(folder, EncryptionSettings(key_variable="NEW_KEY"))


async def known(root: Path) -> dict[str, str]:
    """Return the texts of all memories by ID, archived ones included."""
    forget_keys()
    service = opened(root)
    archive = Archive(service)
    found = {memory.id: memory.content for memory in [*await service.searcher.list_all(), *await archive.everything()]}
    await archive.close()
    await service.close()
    return found


def differing(root: Path, said: dict[str, str]) -> list[str]:
    """Return the faults of the memories, with the old or the new key."""
    for key in (KEY, NEW_KEY):
        os.environ["AGENT_MEMORY_KEY"] = key
        try:
            found = asyncio.run(known(root))
        except StorageError as error:
            if error.code != "wrong_key" or key == NEW_KEY:
                return [f"cannot be read: {error.message}"]
            continue
        return [f"{one} says {found.get(one)!r}" for one, text in said.items() if found.get(one) != text]
    return []


def look(name: str, root: Path, said: dict[str, str]) -> list[str]:
    """Return the faults after a kill, and after the command is repeated."""
    wrong = [f"before it goes on: {each}" for each in differing(root, said)]
    if name == "encrypt" or (name == "decrypt" and get_encryption_state(folder_at(root).path) is not None):
        act(name, root)
        wrong += differing(root, said)
    if name == "encrypt":
        wrong += [f"{path.name} has a text" for path in sorted(root.rglob("*")) if _holds(path)]
    if AgentBlobs(folder_at(root)).read(hashlib.sha256(LONG.encode()).hexdigest()) != LONG:
        wrong.append("the long text is another one")
    for backup in list_backups(root):
        wrong += verify_backup(backup.path).problems
    return wrong


def _holds(path: Path) -> bool:
    return path.is_file() and _NEEDLE in path.read_bytes()


def run(kills: int, seed: int, memories: int) -> int:
    """Kill each of `ACTS` so many times, say what was wrong, and return how often."""
    chance, wrong = random.Random(seed), 0
    for name in ACTS:
        calls = died = 0
        for kill in range(kills + 1):
            os.environ["AGENT_MEMORY_KEY"] = KEY
            forget_keys()
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                said = asyncio.run(prepare(root, memories))
                if name != "encrypt":
                    encrypt(folder_at(root))
                number = 0 if kill == 0 else chance.randint(1, calls)
                is_dead, counted = run_until_killed(
                    "encryption", "--act", name, root, die=number, AGENT_MEMORY_KEY=KEY, NEW_KEY=NEW_KEY
                )
                calls, died = counted or calls, died + is_dead
                for sentence in (found := look(name, root, said)):
                    print(f"{name}, killed before call {number} of {calls}: {sentence}")
                wrong += bool(found)
        print(f"{name}: {died} of {kills} killed before one of {calls} calls that change a file")
    print(f"{wrong} wrong")
    return wrong


async def _cost(root: Path, memories: int) -> float:
    """Return the processor milliseconds from opening to the first answer."""
    settings = ServiceSettings(embedder="none", storage_root=str(root))
    storage = FileStorage(AGENT, settings=settings)
    await storage.store_many([Memory(agent_id=AGENT, content=f"Box {n} is at quay {n * 7}.") for n in range(memories)])
    await storage.close()
    until = time.monotonic() + _SECONDS
    while not is_encrypted(storage.folder.path) and time.monotonic() < until:
        if storage.folder.has_segments("memory"):  # a child of low priority makes them when a memory is closed
            break
        await asyncio.sleep(0.2)
    forget_keys()
    begun = time.process_time()
    storage = FileStorage(AGENT, settings=settings)
    await storage.search("which quay is box 77 at")
    spent = 1000 * (time.process_time() - begun)
    await storage.close()
    return spent


def cost(memories: int) -> None:
    """Print what it costs beside plain files."""
    columns = []
    for with_key in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            if with_key:
                os.environ["AGENT_MEMORY_KEY"] = KEY
                (root / AGENT).mkdir(mode=0o700)
                KeyFile.fresh(AGENT, PersonKey(KEY, "here"), "encrypted")[0].write(root / AGENT)
            columns.append(asyncio.run(_cost(root, memories)))
    print(
        f"milliseconds to the first answer, {memories:,} memories: plain {columns[0]:.0f}, encrypted {columns[1]:.0f}"
    )


def main() -> int:
    """Do what the command line says."""
    parser = build_parser("encryption", __doc__, "--kills", "--seed", kills=40)
    parser.add_argument("--memories", type=int, default=20)
    parser.add_argument("--cost", type=int, default=0)
    parser.add_argument("--act", nargs=2, metavar=("NAME", "ROOT"), help=argparse.SUPPRESS)
    parser.add_argument("--die", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.act:
        seen = die_at(given.die)
        act(given.act[0], Path(given.act[1]))
        tell(calls=seen[0])
        return 0
    if given.cost:
        cost(given.cost)
        return 0
    return run(given.kills, given.seed, given.memories)


if __name__ == "__main__":
    sys.exit(main())
