"""Items of talk, and lines of pages, that say a forgotten memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.knowledge.intake.undoing import get_forgotten_sources
from agent_memory.models import EPISODE
from agent_memory.retrieval import query_terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.models import Memory
    from agent_memory.service import MemoryService


class ForgottenTalk:
    """Finds items of talk, and lines of pages, that say a forgotten memory.

    A restored memory counts no more. Turns and documents are filtered by `ForgottenTexts`.

    Args:
        knowledge: Conversations of the agent.
        service: Memories of the agent.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService) -> None:
        self._knowledge, self._service = knowledge, service
        self._sources: set[str] = set()
        self._forgotten: list[Memory] = []

    async def find_saying(self, texts: Iterable[str]) -> set[str]:
        """Return the texts that have all words of a forgotten memory.

        Raises:
            StorageError: What was forgotten cannot be read.
        """
        terms = {text: set(query_terms(text)) for text in texts}
        if not terms or not (self._knowledge.folder.path / EPISODE.journal).exists():
            return set()
        sources = await get_forgotten_sources(self._knowledge)
        if sources != self._sources:  # something was forgotten since
            self._sources = sources
            self._forgotten = [memory for memory, _ in await self._service.past.forgotten()]
        saying: set[str] = set()
        for memory in self._forgotten:
            words = set(query_terms(memory.content))
            new = {text for text in terms if words and words <= terms[text]} - saying
            if new and await self._service.admin.get(memory.id) is None:
                saying |= new
        return saying

    async def find_items(self, memories: Sequence[Memory]) -> set[str]:
        """Return the IDs of items of talk that say a forgotten memory."""
        talk = [memory for memory in memories if memory.is_item and _is_said(memory)]
        saying = await self.find_saying([item.content for item in talk])
        return {item.id for item in talk if item.content in saying}

    async def filter_page(self, text: str) -> str:
        """Return a page without the lines that say a forgotten memory."""
        lines = text.splitlines()
        saying = await self.find_saying(lines)
        return "\n".join(line for line in lines if line not in saying) if saying else text


def _is_said(memory: Memory) -> bool:
    return any(link.id.startswith(EPISODE.prefix) for link in memory.links)
