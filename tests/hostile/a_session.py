"""A whole session of the default installation, for tests that look at it from outside: `a_session.py ROOT SECONDS`.

Stores, captures nothing, embeds, searches, moves to the vector engine, and stays alive with the model loaded.
"""

from __future__ import annotations

import asyncio
import sys
import time

from agent_memory import FileStorage, Memory, MemoryService, ServiceSettings, detect_storage
from agent_memory.memory import Caller


async def main(root: str, seconds: float) -> None:
    settings = ServiceSettings(storage_root=root)
    service = MemoryService(detect_storage("bob", root, settings=settings), settings)
    for number in range(20):
        await service.store({"content": f"Use PostgreSQL for ledger {number}", "tags": ["db"]})
    await service.storage.prepare(60)
    found = await service.search("which database did we pick")
    await service.monitor.migration.migrate(Caller("a-session"))
    await service.scratchpad()
    status = await service.status()
    sys.stdout.write(f"{found.results.mode} {status.backend} {status.embedder.get('warning')}\n")
    plain = FileStorage("carol", root)
    await plain.store(Memory(agent_id="carol", content="The model stays loaded"))
    await plain.prepare(60)
    time.sleep(seconds)  # noqa: ASYNC251 - nothing of ours is to happen, and what happens is not ours
    await plain.close()
    await service.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
