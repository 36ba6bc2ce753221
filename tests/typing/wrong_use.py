"""What a type checker has to refuse. Not run: were a line accepted, mypy would call its `ignore` unused."""

from __future__ import annotations

from agent_memory import (
    FileStorage,
    Memory,
    MemoryService,
    MemoryStorage,
    Observation,
    SearchFilters,
    ServiceSettings,
    detect_storage,
)
from agent_memory.memory import Caller


async def wrong_arguments() -> None:
    """Names and types of arguments are known."""
    storage = FileStorage("bob")
    await storage.store("a text alone")  # type: ignore[arg-type]  # storage takes a memory, the service a text
    await storage.store(Memory(agent_id="bob", content="x"), True)  # type: ignore[call-arg]
    await storage.search("x", limit="5")  # type: ignore[arg-type]
    await storage.search("x", top_k=5)  # type: ignore[call-arg]
    await storage.search("x", filters=["note"])  # type: ignore[arg-type]
    await MemoryService("bob").close()  # type: ignore[arg-type]  # it takes a storage, not a name
    await MemoryService(storage).store({"content": "x"}, "session-1")  # type: ignore[arg-type]
    FileStorage("bob", embedder="local")  # type: ignore[arg-type]
    Caller(trust="total")  # type: ignore[arg-type]


def wrong_values() -> None:
    """Fields and their values are known."""
    Memory(agent_id="bob")  # type: ignore[call-arg]  # without a text
    Memory(agent_id="bob", content=1)  # type: ignore[arg-type]
    Memory(agent_id="bob", content="x", trust="total")  # type: ignore[arg-type]
    Memory(agent_id="bob", content="x").content = "y"  # type: ignore[misc]  # a memory is immutable
    Observation(content="x", category="note")  # type: ignore[call-arg]  # how sure is the rule?
    SearchFilters(categories=["note"])  # type: ignore[call-arg]
    ServiceSettings(backend="gpt")  # type: ignore[arg-type]


async def wrong_results() -> None:
    """Answers are what they are, and None has to be thought of."""
    storage = detect_storage("bob")
    print((await storage.get("mem-000000000000")).content)  # type: ignore[union-attr]  # noqa: T201 - may be None
    print((await storage.search("x")).hits)  # type: ignore[attr-defined]  # noqa: T201 - the results are the list
    print(storage.count() + 1)  # type: ignore[operator]  # noqa: T201 - not awaited
    storage.folder  # type: ignore[attr-defined]  # noqa: B018 - not every storage has one
    MemoryStorage()  # type: ignore[call-arg]
