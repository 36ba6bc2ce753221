"""`SessionAsking`: a session's own provider, which is asked as long as the session goes on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_memory.knowledge.llm.port import LanguageModel


class OverError(Exception):
    """The session ends: nobody waits for a model now."""


class SessionAsking:
    """A language model that the end of the session cuts short, so that rules do the rest at once.

    Args:
        model: Answers prompts.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model, self._over = model, asyncio.Event()

    def hurry(self, *, is_over: bool) -> None:
        """Answer nothing more because the session ends, or answer again because it goes on."""
        if is_over:
            self._over.set()
        else:
            self._over.clear()

    async def __call__(self, prompt: str) -> str:
        """Return the answer.

        Raises:
            OverError: The session ends.
        """
        if self._over.is_set():
            raise OverError
        answer, over = asyncio.ensure_future(self._model(prompt)), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({answer, over}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise OverError
            return answer.result()
        finally:
            answer.cancel()
            over.cancel()
