"""Programs that end while a model is at work, for `test_endings.py`: `endings.py HOW ROOT`. No test."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time

from agent_memory import FileStorage, Memory
from agent_memory.embeddings import LocalEmbedder

MANY = 150
LONG = "The ledger of the company keeps all of its postings in tables of PostgreSQL, which nobody may change. " * 60


class Slow(LocalEmbedder):
    """On a core so slow that a text takes longer than anybody would wait."""

    def embed_documents(self, texts: list[str]):  # type: ignore[no-untyped-def]  # noqa: ANN201
        end = time.monotonic() + 4
        while time.monotonic() < end:
            out = super().embed_documents(texts)
        return out


async def busy(root: str, embedder: LocalEmbedder | None = None) -> FileStorage:
    """Return a storage whose model is in the middle of long texts."""
    storage = FileStorage("bob", root, embedder=embedder or LocalEmbedder())
    await storage.store_many([Memory(agent_id="bob", content=f"{number} {LONG}") for number in range(MANY)])
    await storage.prepare(0)
    deadline = time.monotonic() + 30
    while storage.embedding_status().get("pending", MANY) >= MANY and not isinstance(embedder, Slow):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)
    return storage


async def returns(root: str) -> None:
    await busy(root)


async def closes(root: str) -> None:
    await (await busy(root)).close()


async def closes_a_slow_one(root: str) -> None:
    storage = await busy(root, Slow())
    await asyncio.sleep(1)
    await storage.close()


async def exits(root: str) -> None:
    await busy(root)
    sys.exit(0)


async def fails(root: str) -> None:
    await busy(root)
    raise LookupError("of the program's own")


async def waits_for_all(root: str) -> None:
    storage = await busy(root)
    print("busy", flush=True)  # noqa: T201
    await storage.prepare(None)


async def is_interrupted_twice(root: str) -> None:
    """Interrupted while the end of the interpreter waits for the model."""
    await busy(root, Slow())
    await asyncio.sleep(1)

    def interrupt() -> None:
        for _ in range(20):
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](sys.argv[2]))
    print("ended", flush=True)  # noqa: T201
