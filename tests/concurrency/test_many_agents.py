"""A thousand agents in one process with few descriptors and threads."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from pathlib import Path

_MOST_THREADS = 64
_MOST_DESCRIPTORS = 100
"""Three for each of sixteen vector caches, and those of the process."""
_PROGRAM = """
import asyncio, json, os, resource, sys, threading
from pathlib import Path
from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.encryption import KeyFile, PersonKey
from agent_memory.memory import MemoryService, open_service
from agent_memory.settings import ServiceSettings
from agent_memory.storage import FileStorage

root, first, last, passes, is_encrypted, models = sys.argv[1], *map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
os.environ["AGENT_MEMORY_KEY"] = "5e" * 32
settings = ServiceSettings(storage_root=root, embedder="none")

def open_agent(number):
    name = f"agent-{number}"
    folder = Path(root, name)
    if is_encrypted and not folder.exists():
        folder.mkdir(parents=True)
        KeyFile.fresh(name, PersonKey("5e" * 32, "a test"), "encrypted")[0].write(folder)
    if models < 2:
        return open_service(name, settings, HashEmbedder() if models else None)
    english, foreign = HashEmbedder(), HashEmbedder(96, {"hafen": "harbour"}, model="foreign")
    storage = FileStorage(name, root, settings=settings, embedder=english, second_embedder=foreign)
    return MemoryService(storage, settings)

async def find_by_second_model(service):
    await service.storage.prepare(None)
    assert service.storage.opened.second_model is None, service.storage.embedding_status()
    return len((await service.search("Wo ist der Hafen?")).results) > 0

async def use(service, text):
    await service.store(text)
    hits = (await service.search(f"harbour {text.split()[1]}")).results
    return text in [hit.memory.content for hit in hits]

async def main():
    services = [open_agent(number) for number in range(first, last)]
    found, most_threads = 0, 0
    for time in range(passes):
        for begin in range(0, len(services), 50):
            batch = services[begin : begin + 50]
            texts = [f"Harbour {os.getpid()}x{first + begin + place}x{time} opens." for place in range(len(batch))]
            found += sum(await asyncio.gather(*map(use, batch, texts)))
            if models > 1:
                await asyncio.gather(*[service.search("Wo ist der Hafen?") for service in batch])
                found += sum(await asyncio.gather(*map(find_by_second_model, batch)))
            most_threads = max(most_threads, threading.active_count())
    descriptors = len(os.listdir("/dev/fd"))
    counts = [await service.storage.count() for service in services]
    for service in services:
        await service.close()
    print(json.dumps({"found": found, "threads": most_threads, "descriptors": descriptors, "counts": counts}))

asyncio.run(main())
"""


def _start(
    root: Path, first: int, last: int, passes: int, *, encrypted: bool = False, models: int = 0
) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PROGRAM, str(root), str(first), str(last), str(passes)]
    options = [str(int(encrypted)), str(models)]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, env=environment())


def _finish(process: subprocess.Popen[str]) -> dict[str, int | list[int]]:
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    report: dict[str, int | list[int]] = json.loads(output)
    return report


@pytest.mark.deep
def test_thousand_agents_lose_nothing_with_few_descriptors(root: Path) -> None:
    report = _finish(_start(root, 0, 1000, 1))
    assert (report["found"], report["counts"]) == (1000, [1] * 1000)
    assert report["threads"] <= _MOST_THREADS
    assert sum((root / f"agent-{number}" / "memories.yaml").exists() for number in range(1000)) == 1000


@pytest.mark.deep
def test_thousand_agents_add_a_second_model_with_few_descriptors(root: Path) -> None:
    report = _finish(_start(root, 0, 1000, 1, models=2))
    assert (report["found"], report["counts"]) == (2000, [1] * 1000)
    assert report["threads"] <= _MOST_THREADS
    assert report["descriptors"] <= _MOST_DESCRIPTORS


@pytest.mark.parametrize(("encrypted", "models"), [(False, 1), (True, 0)])
def test_many_agents_share_threads_and_descriptors(root: Path, *, encrypted: bool, models: int) -> None:
    report = _finish(_start(root, 0, 100, 1, encrypted=encrypted, models=models))
    assert (report["found"], report["counts"]) == (100, [1] * 100)
    assert report["threads"] <= _MOST_THREADS
    assert report["descriptors"] <= _MOST_DESCRIPTORS


def test_many_agents_in_two_processes_lose_nothing(root: Path) -> None:
    processes = [_start(root, 0, 30, 2) for _ in range(2)]
    reports = [_finish(process) for process in processes]
    assert [report["found"] for report in reports] == [60, 60]
    check = _finish(_start(root, 0, 30, 0))
    assert check["counts"] == [4] * 30
