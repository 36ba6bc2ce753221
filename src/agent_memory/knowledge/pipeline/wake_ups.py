"""Wake-ups of the background work, in this process or over Redis.

The journal is the backlog. A lost wake-up costs a pause, no work.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_memory.errors import AgentMemoryError, ConfigurationError
from agent_memory.knowledge.pipeline.background_work import runner_of
from agent_memory.logs import get_logger
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from types import ModuleType

    from agent_memory.knowledge.llm.language_model import Asking
    from agent_memory.knowledge.pipeline.ingestion_config import MemoryIngestionConfig
    from agent_memory.knowledge.pipeline.stages import Backlog
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService

log = get_logger(__name__)
_SECONDS: Final = 1.0
"""Seconds for one answer of the server, which the ingestion of a turn waits for."""
_PAUSE: Final = 1.0
"""Seconds before a server that did not answer is asked again."""
LOOK_AGAIN_SECONDS: Final = 5.0
"""Seconds without a message of the queue, after which due work is looked up."""


class Queue(Protocol):
    """Wake-ups. A lost one costs a pause, no work."""

    async def tell(self) -> None:
        """Report new work; never raises."""

    async def wait(self, seconds: float) -> bool:
        """Return True after a wake-up, False after the timeout."""

    async def close(self) -> None:
        """End it. May be called more than once."""


class InMemoryQueue:
    """A queue within one object of one process."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    async def tell(self) -> None:
        """See `Queue.tell`."""
        self._told.set()

    async def wait(self, seconds: float) -> bool:
        """See `Queue.wait`."""
        try:
            async with asyncio.timeout(seconds):
                await self._told.wait()
        except TimeoutError:
            return False
        self._told.clear()
        return True

    async def close(self) -> None:
        """See `Queue.close`."""


class RedisQueue:
    """Wake-ups between processes over a Redis server.

    An unreachable server is logged once; the background work polls until it is reachable.

    Args:
        agent_id: Agent with the work.
        url: Address of the server, such as `redis://127.0.0.1:6379/0`; never part of a message.

    Attributes:
        failures: How often the server did not answer.

    Raises:
        ConfigurationError: The package `redis` is not installed, or the URL is invalid.
    """

    def __init__(self, agent_id: str, url: str) -> None:
        self._redis = _library()
        self._channel = f"agent-memory:{agent_id}"
        try:
            self._client: Any = self._redis.asyncio.from_url(
                url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS
            )
        except ValueError:
            raise ConfigurationError(
                "redis_url is no address of a Redis server; nothing was changed.",
                recovery="Give one such as redis://127.0.0.1:6379/0, or set queue_backend to inmemory.",
            ) from None
        self._listening: Any = None
        self._asked_again_at = 0.0
        self.failures = 0

    async def tell(self) -> None:
        """See `Queue.tell`."""
        if time.monotonic() < self._asked_again_at:
            return
        try:
            await self._client.publish(self._channel, b"1")
        except (self._redis.RedisError, OSError) as error:
            self._note_failure(error)

    async def wait(self, seconds: float) -> bool:
        """See `Queue.wait`."""
        until = time.monotonic() + seconds
        while (remaining := until - time.monotonic()) > 0:
            if (pause := self._asked_again_at - time.monotonic()) > 0:
                await asyncio.sleep(min(pause, remaining))
                continue
            try:
                if await self._heard(min(remaining, _SECONDS / 2)):
                    return True
            except (self._redis.RedisError, OSError) as error:
                self._note_failure(error)
        return False

    async def close(self) -> None:
        """See `Queue.close`."""
        listening, self._listening = self._listening, None
        if listening is not None:
            await listening.aclose()
        await self._client.aclose()

    async def _heard(self, seconds: float) -> bool:
        """Return True after one or more wake-ups."""
        if self._listening is None:
            listening = self._client.pubsub(ignore_subscribe_messages=True)
            await listening.subscribe(self._channel)
            self._listening = listening
        heard = await self._listening.get_message(timeout=seconds) is not None
        while heard and await self._listening.get_message(timeout=0) is not None:
            pass
        return heard

    def _note_failure(self, error: Exception) -> None:
        self.failures += 1
        self._listening, self._asked_again_at = None, time.monotonic() + _PAUSE
        log.warning_once("queue_unreachable", backend="redis", error=type(error).__name__)


def _library() -> ModuleType:
    try:
        import redis
        import redis.asyncio
    except ImportError:
        raise ConfigurationError(
            "queue_backend is redis, and the package `redis` is not installed; what is taken in is stored all the same "
            "with queue_backend inmemory.",
            code="queue_missing",
            recovery=advice("redis"),
        ) from None
    return redis


class IngestionBackground:
    """Background work of one `MemoryIngestor`.

    Args:
        knowledge: Records of the agent.
        service: The agent's memories.
        config: What is made of it.
        caller: Session that gets events.
        queue: Tells it of work, and others.
        asking: How a language model is asked; rules do without.

    Attributes:
        trouble: Code of the error of the last run; empty when it went well.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        service: MemoryService,
        config: MemoryIngestionConfig,
        caller: Caller,
        queue: Queue | None = None,
        asking: Asking | None = None,
    ) -> None:
        self._runner = runner_of(knowledge, service, caller, config, asking)
        self._waits = config.async_extraction and config.async_summarization
        if queue is None and config.queue_backend == "redis":
            queue = RedisQueue(knowledge.agent_id, config.redis_url)
        self._queue = queue or InMemoryQueue()
        self.trouble = ""
        self._task: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()
        self._told = 0

    async def tell(self) -> None:
        """Report ingested texts; work on them at once if configured.

        Raises:
            StorageError: The work cannot be stored; the ingested texts are stored.
        """
        if not self._waits:
            await self._runner.run()
            return
        self._told += 1
        self._is_over.clear()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        await self._queue.tell()

    async def settle(self) -> None:
        """Wait until nothing is due, or an error is in `trouble`."""
        if self._task is not None:
            await self._is_over.wait()

    async def backlog(self) -> list[Backlog]:
        """Return the backlog of each stage.

        Raises:
            StorageError: The records cannot be read.
        """
        return await self._runner.backlog()

    async def close(self) -> None:
        """Stop; an interrupted batch is done again later."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._queue.close()

    async def _work(self) -> None:
        while True:
            await self._queue.wait(LOOK_AGAIN_SECONDS)
            reported = self._told
            try:
                is_over = (await self._runner.run()).is_over
                self.trouble = ""
            except AgentMemoryError as error:
                is_over, self.trouble = True, error.code
                log.warning("background_failed", error=error.code, cause=type(error).__name__)
            if is_over and reported == self._told:  # else more was reported in between
                self._is_over.set()
