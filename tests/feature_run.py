"""Forget, purge, back up, export and encrypt one agent with a fixed clock and fixed random numbers.

    python -m tests.feature_run ROOT (alone|all|without:PACKAGE)

`alone` begins with the three main modules loaded, `all` with every module, `without` with a package that is absent.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import os
import pkgutil
import random
import sys
import traceback
import uuid
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import time_machine

from tests.absent_package import AbsentPackage
from tests.core_run import MAIN_MODULES

if TYPE_CHECKING:
    from agent_memory.care.privacy.purge import PurgeReceipt
    from agent_memory.memory import MemoryService

NOTE: Final = "The harbour has ten boats."
AT: Final = datetime(2027, 1, 5, 12, tzinfo=UTC)


def load_everything() -> None:
    """Import every module of the library whose extras are installed."""
    import agent_memory

    for module in pkgutil.walk_packages(agent_memory.__path__, "agent_memory."):
        if not module.name.endswith("__main__"):
            with suppress(ImportError):
                importlib.import_module(module.name)


def fix_random_numbers() -> None:
    """Replace the sources of random numbers: each chain of callers has numbers of its own, whatever the threads do."""
    calls: Counter[str] = Counter()

    def make_bytes(size: int) -> bytes:
        stack = "/".join(frame.name for frame in traceback.extract_stack() if "agent_memory" in frame.filename)
        calls[stack] += 1
        return random.Random(f"{stack} {calls[stack]}").randbytes(size)

    os.urandom = make_bytes
    setattr(random, "_urandom", make_bytes)  # noqa: B010 - not in its stub
    uuid.uuid4 = lambda: uuid.UUID(bytes=make_bytes(16), version=4)


def find_ids(folder: Path, kind: str, words: str) -> list[str]:
    """Return IDs of the records of a kind whose line has these words."""
    ids = []
    for path in sorted(folder.glob("*.yaml")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if f'"kind": "{kind}"' in line and words in line:
                ids += [part.partition('"')[0] for part in line.split('"id": "')[1:2]]
    return ids


async def purge(service: MemoryService, ids: list[str]) -> PurgeReceipt:
    """Purge records, with what rests on them."""
    from agent_memory.care.privacy.purge import Purging

    purging = Purging(service)
    return await purging.run(await purging.plan(ids))


async def run(root: Path) -> dict[str, Any]:
    """Do everything; return what was reported."""
    from agent_memory.integrations.amplifier.services import ServiceShare
    from agent_memory.settings import ServiceSettings

    share, folder = ServiceShare(), root / "bob"
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    service = await share.open("session-1", "bob", settings, lambda _: None)
    note = find_ids(folder, "memory", NOTE)[0]
    await service.forget(note)
    receipt = await purge(service, [*find_ids(folder, "resource", "runbook")[:1], *find_ids(folder, "topic", "")[:1]])
    await service.settle()
    await share.close()
    return {"failed": receipt.failed, "found": receipt.found, "ids": len(receipt.records["ids"])}


def write_rest(root: Path) -> None:
    """Back up, export and encrypt the folder of the agent."""
    from agent_memory.care.account import write_account
    from agent_memory.care.backups.backup_writer import create_backup
    from agent_memory.care.privacy.file_encryption import encrypt
    from agent_memory.encryption import take_keys_from
    from agent_memory.files.layout import folder_of
    from agent_memory.settings import EncryptionSettings

    folder = folder_of("bob", root)
    create_backup(folder)
    account = io.BytesIO()
    write_account(folder, account, "2027-01-05T12:00:00Z")
    (root / "account.zip").write_bytes(account.getvalue())
    take_keys_from(root, EncryptionSettings())
    encrypt(folder)


def main() -> None:
    """Read the arguments, do everything, print one JSON line."""
    root, mode = Path(sys.argv[1]), sys.argv[2]
    for name in MAIN_MODULES:
        importlib.import_module(name)
    if mode == "all":
        load_everything()
    begun_with = len(sys.modules)
    if mode.startswith("without:"):
        sys.meta_path.insert(0, AbsentPackage(mode.partition(":")[2]))
    fix_random_numbers()
    with time_machine.travel(AT, tick=False):
        report = asyncio.run(run(root))
        if not mode.startswith("without:"):
            write_rest(root)
    report["loaded_before"] = begun_with
    sys.stdout.write(f"{json.dumps(report)}\n")


if __name__ == "__main__":
    main()
