"""What the processes of these tests do that need a file system, a user or limits of their own. No test.

Each function is started fresh by `trouble.inside`, and what it returns is printed as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_memory.embeddings import PROVIDERS
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.engines import index_builder as migration
from agent_memory.errors import AgentMemoryError, refused_by_system
from agent_memory.language.words import index_terms
from agent_memory.memories import MigratableStorage
from agent_memory.memory import AuditLog, MemoryService
from agent_memory.models import Memory, MemorySearchResult
from agent_memory.redaction import SecretRedactor
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

OFFLINE = ServiceSettings(embedder="none")
NOBODY = 65534


def memory_of(content: str) -> Memory:
    return Memory(agent_id="bob", content=content)


def service_of(root: str) -> MemoryService:
    storage = FileStorage("bob", root, settings=OFFLINE)
    return MemoryService(storage, OFFLINE, audit=AuditLog(storage.folder.audit))


async def outcome(attempt: Awaitable[Any]) -> Any:
    """Return the error's fields, or the result."""
    try:
        result = await attempt
    except AgentMemoryError as error:
        return error.as_dict()
    except (OSError, MemoryError, RuntimeError) as error:
        if (refused := refused_by_system(error)) is None:
            raise
        return refused.as_dict()
    return result if isinstance(result, str | int | bool | None) else "done"


async def contents(root: str) -> list[str]:
    storage = FileStorage("bob", root, settings=OFFLINE)
    try:
        return [memory.content async for memory in storage.iter_all()]
    finally:
        await storage.close()


@contextlib.contextmanager
def mounted(folder: str, size: str) -> Iterator[None]:
    """Put a small file system in a folder's place."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=False)


def remount(folder: str, option: str) -> None:
    """Change how it is mounted."""
    subprocess.run(["mount", "-o", f"remount,{option}", folder], check=True)


def fill(folder: str) -> Path:
    """Take all room that is left, to the last byte."""
    filler = Path(folder) / "_filler"
    with filler.open("wb", buffering=0) as file:
        for portion in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * portion) == portion:
                    pass
    return filler


# -- no room ----------------------------------------------------------------------------------------------------------


async def full_disk(root: str) -> dict[str, Any]:
    """Fill the disk under a session, try everything, make room, go on in the same session."""
    with mounted(root, "512k"):
        service = service_of(root)
        first = (await service.store({"content": "peppermint tea"})).memory.id
        await service.settle()
        journal = Path(root) / "bob" / "memories.yaml"
        before, filler = journal.read_bytes(), fill(root)
        text = "does not fit " * 700
        found: dict[str, Any] = {
            "store": await outcome(service.store({"content": text})),
            "update": await outcome(service.update(first, {"content": text})),
            "compact": await outcome(service.storage.compact()),
            "searched": [hit.memory.content for hit in (await service.search("peppermint")).results],
            "health": await service.storage.health(),
        }
        await service.settle()
        found["untouched"] = journal.read_bytes()[: len(before)] == before
        found["leftovers"] = [path.name for path in journal.parent.glob(".*.tmp")]
        with contextlib.suppress(OSError), journal.open("ab", buffering=0) as file:
            file.write(b"--- {torn" + b"n" * 6000)
        found["torn"] = await outcome(service.store({"content": text}))
        filler.unlink()
        found["after"] = await outcome(service.store({"content": "fits again"}))
        await service.storage.compact()
        await service.settle()
        found["pad"] = "fits again" in (journal.parent / "scratchpad.yaml").read_text()
        await service.close()
        return {**found, "reopened": await contents(root)}


async def full_disk_and_vectors(root: str) -> dict[str, Any]:
    """Fill the disk under a session that embeds and migrates, then make room."""
    with mounted(root, "256m"):
        before = FileStorage("bob", root, settings=OFFLINE)
        for number in range(5):
            await before.store(memory_of(f"fact number {number}"))
        await before.close()
        filler = fill(root)  # before anything is embedded, however busy the machine is
        storage = MigratableStorage("bob", root, embedder=HashEmbedder())
        found: dict[str, Any] = {"migrate": await outcome(storage.migrate()), "backend": storage.backend}
        found["mode"] = (await storage.search("fact")).mode
        found["embedding"] = storage.embedding_status()
        filler.unlink()
        found["again"] = (await storage.migrate()).points
        found["later"] = storage.embedding_status()
        filler = fill(root)
        found["index"] = await outcome(storage.migrate())
        found["backend_then"] = storage.backend
        found["leftovers"] = [path.name for path in (Path(root) / "bob" / "memories.db").glob(".new-*")]
        found["best"] = (await storage.search("fact number 3"))[0].memory.content
        filler.unlink()
        found["stored"] = await outcome(storage.store(memory_of("room again")))
        found["backend_again"] = storage.backend
        await storage.close()
        return found


def full_disk_and_import(root: str, export: str) -> dict[str, Any]:
    """Import more than fits, with the command line; then make room and do it again."""
    from typer.testing import CliRunner  # the others start faster without

    from agent_memory.cli.app import build

    # This is about room, not about vectors.
    PROVIDERS["local"] = replace(PROVIDERS["local"], needs=("a_package_that_is_not_installed",))
    app, runner = build(), CliRunner()
    command = ["import", export, "--root", root, "--agent", "bob"]
    with mounted(root, "200k"):
        full = runner.invoke(app, command)
        kept = len(asyncio.run(contents(root)))
        remount(root, "size=16m")
        again = runner.invoke(app, command)
        return {
            "code": full.exit_code,
            "said": full.stdout,
            "error": full.stderr,
            "kept": kept,
            "again": again.exit_code,
            "said_again": again.stdout,
            "all": len(asyncio.run(contents(root))),
        }


# -- no right ---------------------------------------------------------------------------------------------------------


async def read_only_disk(root: str) -> dict[str, Any]:
    """Let a disk become read-only under a session, as a sick one does, and writable again."""
    with mounted(root, "16m"):
        service = service_of(root)
        first = (await service.store({"content": "peppermint tea"})).memory.id
        await service.settle()
        pad = Path(root) / "bob" / "scratchpad.yaml"
        pad.write_text(pad.read_text().replace("peppermint", "jasmine"))
        remount(root, "ro")
        found: dict[str, Any] = {
            "store": await outcome(service.store({"content": "coffee"})),
            "update": await outcome(service.update(first, {"tags": ["x"]})),
            "forget": await outcome(service.forget(first)),
            "compact": await outcome(service.storage.compact()),
            "searched": [hit.memory.content for hit in (await service.search("peppermint")).results],
            "shown": [entry.content for entry in (await service.scratchpad()).entries],
            "health": await service.storage.health(),
        }
        await service.settle()
        visitor = service_of(root)
        found["visitor"] = [hit.memory.content for hit in (await visitor.search("peppermint")).results]
        await visitor.close()
        remount(root, "rw")
        found["edited"] = [entry.content for entry in (await service.scratchpad()).entries]
        found["after"] = await outcome(service.store({"content": "fits again"}))
        await service.close()
        return {**found, "reopened": await contents(root)}


async def read_only_index(root: str) -> dict[str, Any]:
    """Open a migrated memory on a disk that may only be read."""
    with mounted(root, "256m"):
        storage = MigratableStorage("bob", root, embedder=HashEmbedder())
        for number in range(5):
            await storage.store(memory_of(f"fact number {number}"))
        await storage.migrate()
        await storage.close()
        remount(root, "ro")
        embedder = HashEmbedder()
        visitor = MigratableStorage("bob", root, embedder=embedder)
        await visitor.prepare(None)
        for _ in range(20):
            results = await visitor.search("number 3")
            await asyncio.sleep(0.02)
        found = {
            "backend": visitor.backend,
            "mode": results.mode,
            "best": results[0].memory.content,
            "embedded": len(embedder.embedded),
            "store": await outcome(visitor.store(memory_of("no"))),
            "rollback": await outcome(visitor.rollback()),
            "health": (await visitor.health())["status"],
        }
        await visitor.close()
        return found


def become_nobody() -> None:
    """Give up root's rights, after importing what a search imports late from folders that only root may read."""
    SecretRedactor().redact("any text that is long enough to be looked at")
    index_terms("peppermint tea")
    MemorySearchResult.model_rebuild()
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


async def as_somebody_else(root: str, mode: str) -> dict[str, Any]:
    """Meet files that belong to root, with the rights in `mode` (octal) on the folder and 0600 on what is in it."""
    if mode != "0":
        (Path(root) / "bob").chmod(int(mode, 8))
    else:
        Path(root).chmod(0o700)
    become_nobody()
    found = {}
    for name, attempt in {
        "store": lambda service: service.store({"content": "x"}),
        "search": lambda service: service.search("x"),
        "recent": lambda service: service.list_recent(5),
    }.items():
        try:
            service = service_of(root)
        except AgentMemoryError as error:
            found[name] = error.as_dict()
        else:
            found[name] = await outcome(attempt(service))
            await service.close()
    return found


async def read_only_for_me(root: str) -> dict[str, Any]:
    """Read as another user what everybody may read and nobody else may write."""
    become_nobody()
    service = service_of(root)
    found = {
        "searched": [hit.memory.content for hit in (await service.search("peppermint")).results],
        "store": await outcome(service.store({"content": "coffee"})),
    }
    await service.close()
    return found


# -- locks ------------------------------------------------------------------------------------------------------------


async def locks_that_fail(root: str, how: str) -> dict[str, Any]:
    """Store where `flock` does nothing, or is refused with an error number."""
    real = fcntl.flock

    def flock(_descriptor: int, _operation: int) -> None:
        if how != "nothing":
            number = getattr(errno, how)
            raise OSError(number, os.strerror(number))

    await outcome((service := service_of(root)).store({"content": "peppermint tea"}))
    await service.close()
    fcntl.flock = flock
    service = service_of(root)
    found = {
        "store": await outcome(service.store({"content": "coffee"})),
        "searched": [hit.memory.content for hit in (await service.search("peppermint")).results],
    }
    await service.settle()
    fcntl.flock = real
    found["after"] = await outcome(service.store({"content": "milk"}))
    await service.close()
    return {**found, "reopened": await contents(root)}


# -- limits of a process ----------------------------------------------------------------------------------------------


async def no_descriptors(root: str) -> dict[str, Any]:
    """Run out of file descriptors before the first write, and get them back."""
    service = service_of(root)
    await service.list_recent(1)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
    taken = []
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    found: dict[str, Any] = {"store": await outcome(service.store({"content": "coffee"}))}
    found["recent"] = await outcome(service.list_recent(1))
    for descriptor in taken:
        os.close(descriptor)
    found["after"] = await outcome(service.store({"content": "peppermint tea"}))
    await service.close()
    return {**found, "reopened": await contents(root)}


async def no_memory_for_a_build(root: str) -> dict[str, Any]:
    """Migrate where the child process gets too little memory to load the engine."""
    storage = MigratableStorage("bob", root, embedder=HashEmbedder())
    await storage.store(memory_of("peppermint tea"))
    await storage.prepare(None)
    real = migration.python_module
    limited = ["sh", "-c", 'ulimit -v 200000 && exec "$0" "$@"']
    migration._STUCK_SECONDS = 1.0  # noqa: SLF001 - not 20: it may come to wait for itself
    migration.python_module = lambda name: [*limited, *real(name)]
    migrated = await outcome(storage.migrate())
    migration.python_module = real
    results = await storage.search("peppermint")
    found = {"migrate": migrated, "backend": storage.backend, "mode": results.mode, "hits": len(results)}
    await storage.close()
    return found


async def a_home(root: str) -> dict[str, Any]:
    """Open the default root, or the one given, and store."""
    try:
        storage = FileStorage("bob", root or None, settings=OFFLINE)
    except AgentMemoryError as error:
        return {"error": error.as_dict()}
    stored = await outcome(storage.store(memory_of("Łódź: peppermint \N{SNOWMAN}")))
    await storage.close()
    return {"stored": stored, "at": str(storage.folder.path), "encoding": sys.getfilesystemencoding()}


async def a_home_without_a_user(root: str) -> dict[str, Any]:
    """As `a_home`, for a user that the system does not know."""
    os.environ.pop("HOME", None)
    os.setgroups([])
    os.setuid(54321)
    return await a_home(root)


if __name__ == "__main__":
    name, *arguments = sys.argv[1:]
    result = globals()[name](*arguments)
    print(json.dumps(asyncio.run(result) if asyncio.iscoroutine(result) else result))  # noqa: T201 - what it found
