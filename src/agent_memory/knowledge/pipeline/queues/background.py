"""`Background`: works on what was taken in, behind the answers, one run at a time, and at once where that is wanted."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agent_memory.errors import AgentMemoryError
from agent_memory.knowledge.pipeline.ingestion_runner import runner_of
from agent_memory.knowledge.pipeline.queues.in_memory import InMemoryQueue
from agent_memory.knowledge.pipeline.queues.redis_queue import RedisQueue
from agent_memory.logs import get_logger

if TYPE_CHECKING:
    from agent_memory.knowledge.llm.port import Asking
    from agent_memory.knowledge.pipeline.config import MemoryIngestionConfig
    from agent_memory.knowledge.pipeline.queues.in_memory import Queue
    from agent_memory.knowledge.pipeline.stage import Backlog
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import Caller, MemoryService

log = get_logger(__name__)

LOOK_AGAIN_SECONDS: Final = 5.0
"""After so long without a word from the queue it looks whether there is work."""


class Background:
    """What works for one `MemoryIngestor`.

    Args:
        knowledge: What was taken in.
        service: The agent's memories.
        config: What is made of it.
        caller: For events.
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
        self._queue = queue or _queue_of(config, knowledge.agent_id)
        self.trouble = ""
        self._task: asyncio.Task[None] | None = None
        self._is_over = asyncio.Event()
        self._told = 0

    async def tell(self) -> None:
        """Say that something was taken in: it is worked on behind the caller, or before this returns.

        Raises:
            StorageError: It was to be worked on at once, and the disk refused; what was taken in is there.
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
        """Wait until nothing is left to be done, or something keeps it from being done, as `trouble` says then."""
        if self._task is not None:
            await self._is_over.wait()

    async def backlog(self) -> list[Backlog]:
        """Return how much each step has to do.

        Raises:
            StorageError: The records cannot be read.
        """
        return await self._runner.backlog()

    async def close(self) -> None:
        """Stop; a portion that is cut short is done again by whoever works next, and nothing is there twice by it."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await self._queue.close()

    async def _work(self) -> None:
        while True:
            await self._queue.wait(LOOK_AGAIN_SECONDS)
            told = self._told
            try:
                is_over = (await self._runner.run()).is_over
                self.trouble = ""
            except AgentMemoryError as error:
                is_over, self.trouble = True, error.code
                log.warning("background_failed", error=error.code, cause=type(error).__name__)
            if is_over and told == self._told:  # else something came in meanwhile
                self._is_over.set()


def _queue_of(config: MemoryIngestionConfig, agent_id: str) -> Queue:
    """Return the queue that a configuration names.

    Raises:
        ConfigurationError: It is not installed here.
    """
    return RedisQueue(agent_id, config.redis_url) if config.queue_backend == "redis" else InMemoryQueue()
