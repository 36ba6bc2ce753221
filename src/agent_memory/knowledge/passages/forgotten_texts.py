"""Filters of texts by what was forgotten of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.intake.withdrawal import get_forgotten_sources, says_any
from agent_memory.knowledge.passages.items import get_place, is_passage, list_source_ids
from agent_memory.knowledge.passages.sections import compile_words
from agent_memory.language.words import fold, query_terms
from agent_memory.models import EPISODE, PlacedItem, get_turn_id, is_untouched_statement
from agent_memory.models.memory import PASSAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService
    from agent_memory.models import Episode, Memory, Resource
    from agent_memory.store.memory_storage import MemoryStorage


_LEAST_FORGOTTEN: Final = 12
"""Characters of a forgotten passage that is left out of other documents: a shorter one may be any word."""


class ForgottenTexts:
    """Filter of turns, documents, items and pages by forgotten texts.

    A restored memory counts no more for items and pages.

    Args:
        knowledge: Turns and documents of the agent.
        service: Memories of the agent.
    """

    def __init__(self, knowledge: Knowledge, service: MemoryService) -> None:
        self._knowledge, self._service = knowledge, service
        self._forgotten_at_start: list[Memory] | None = None
        self._sources: set[str] = set()
        self._forgotten: list[Memory] = []

    async def filter_turns(self, turns: Sequence[Episode]) -> list[Episode]:
        """Return the turns that say nothing forgotten."""
        if not turns:
            return []
        if self._forgotten_at_start is None:  # later ones note their sources
            self._forgotten_at_start = await self._list_forgotten()
        sources = await self._list_sources(self._forgotten_at_start)
        texts = [set(query_terms(memory.content)) for memory in self._forgotten_at_start]
        return [turn for turn in turns if turn.id not in sources and not says_any(turn, texts)]

    async def is_source(self, record_id: str) -> bool:
        """Return True if something of a record was forgotten."""
        return record_id in await self._list_sources(await self._list_forgotten())

    async def read_document(self, record: Resource, text: str) -> str:
        """Return the current passages of a document, or its text without passages.

        Args:
            record: Document of the agent, of any version.
            text: Text of the document.
        """
        linked = [item.id for item in await self._service.storage.linked_to(record.id)]
        current = (await self._service.storage.valid_among(linked)).values()
        places = {item.id: get_place(item, record.id) or (0, 0) for item in current if _is_of_document(item)}
        passages = [item for item in current if item.id in places]
        if passages:
            passages.sort(key=lambda item: places[item.id])
            return "\n\n".join(dict.fromkeys(item.content for item in passages))
        return record.title if await self.is_source(record.id) else await self.remove_forgotten(text)

    async def remove_forgotten(self, text: str, filler: str = "") -> str:
        """Return a text without the words of forgotten passages.

        Args:
            text: Text of a document.
            filler: Character that takes the place of each removed one.
        """
        folded = fold(text)
        for words in list_forgotten_words(await self._list_forgotten()):
            if fold(words) in folded:
                text = compile_words(words).sub(lambda match: filler * len(match[0]), text)
        return text

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
            self._forgotten = await self._list_forgotten()
        saying: set[str] = set()
        for memory in self._forgotten:
            words = set(query_terms(memory.content))
            new = {text for text in terms if words and words <= terms[text]} - saying
            if new and await self._service.storage.get(memory.id) is None:
                saying |= new
        return saying

    async def find_items(self, memories: Sequence[Memory]) -> set[str]:
        """Return the IDs of items of talk that say a forgotten memory."""
        talk = [memory for memory in memories if memory.is_item and get_turn_id(memory)]
        saying = await self.find_saying([item.content for item in talk])
        return {item.id for item in talk if item.content in saying}

    async def filter_page(self, text: str) -> str:
        """Return a page without the lines that say a forgotten memory."""
        lines = text.splitlines()
        saying = await self.find_saying(lines)
        return "\n".join(line for line in lines if line not in saying) if saying else text

    async def _list_forgotten(self) -> list[Memory]:
        return [memory for memory, _ in await self._service.history.forgotten()]

    async def _list_sources(self, forgotten: Sequence[Memory]) -> set[str]:
        sources = {source for memory in forgotten for source in list_source_ids(memory)}
        return sources | await get_forgotten_sources(self._knowledge)


def _is_of_document(item: Memory) -> bool:
    """Return True for a passage, and for one that was edited since."""
    return is_passage(item) or item.source.kind != "extraction"


def list_forgotten_words(forgotten: Sequence[Memory]) -> list[str]:
    """Return the words of forgotten passages of documents, without headings."""
    passages = [memory for memory in forgotten if is_passage(memory) and "speaker" not in memory.metadata]
    words = [
        memory.content.partition("\n\n")[2] if "heading" in memory.metadata else memory.content for memory in passages
    ]
    return [text for text in words if len(text) >= _LEAST_FORGOTTEN]


async def find_statements(storage: MemoryStorage, memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return unchanged statements that were made of passages among memories.

    Raises:
        StorageError: The memories cannot be read.
    """
    passages = [item for item in map(PlacedItem.of, memories) if item.detail == PASSAGE]
    statements: dict[str, Memory] = {}
    for source in dict.fromkeys(source for passage in passages for source in passage.sources):
        for memory in await storage.linked_to(source):
            if is_untouched_statement(memory) and any(PlacedItem.of(memory).follows(passage) for passage in passages):
                statements[memory.id] = memory
    named = {memory.id for memory in memories}
    return tuple(memory for memory in statements.values() if memory.id not in named)
