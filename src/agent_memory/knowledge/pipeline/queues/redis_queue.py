"""`RedisQueue`: tells all processes that work for one agent of new work, over a Redis server."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ConfigurationError
from agent_memory.logs import get_logger
from agent_memory.settings.installation import advice

if TYPE_CHECKING:
    from types import ModuleType

log = get_logger(__name__)

_SECONDS: Final = 1.0
"""For one answer of the server: whoever takes in a turn waits no longer for it."""
_PAUSE: Final = 1.0
"""Seconds before a server that did not answer is asked again."""


class RedisQueue:
    """A wake-up channel, and nothing else: a word that is lost costs a pause, no work.

    A server that is not there is logged once, and whoever works looks for work by itself until it is there again.

    Args:
        agent_id: Whose work.
        url: Of the server, such as `redis://127.0.0.1:6379/0`; it stands in no message.

    Attributes:
        failures: How often the server did not answer.

    Raises:
        ConfigurationError: The package `redis` is not installed, or the URL is none.
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
            self._failed(error)

    async def wait(self, seconds: float) -> bool:
        """See `Queue.wait`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if (pause := self._asked_again_at - time.monotonic()) > 0:
                await asyncio.sleep(min(pause, left))
                continue
            try:
                if await self._heard(min(left, _SECONDS / 2)):
                    return True
            except (self._redis.RedisError, OSError) as error:
                self._failed(error)
        return False

    async def close(self) -> None:
        """See `Queue.close`."""
        listening, self._listening = self._listening, None
        if listening is not None:
            await listening.aclose()
        await self._client.aclose()

    async def _heard(self, seconds: float) -> bool:
        """Return True for one word or more; what else is waiting is taken, too."""
        if self._listening is None:
            listening = self._client.pubsub(ignore_subscribe_messages=True)
            await listening.subscribe(self._channel)
            self._listening = listening
        heard = await self._listening.get_message(timeout=seconds) is not None
        while heard and await self._listening.get_message(timeout=0) is not None:
            pass
        return heard

    def _failed(self, error: Exception) -> None:
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
