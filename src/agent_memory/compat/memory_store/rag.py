"""`RAGIntegration`: what memory says of a question, of a session and of a topic, as text for a prompt."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agent_memory.compat.memory_store.context import ContextBuilder, RelevanceFilter
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from agent_memory.compat.memory_store.store import MemoryStore
    from agent_memory.models import Clock

_LATELY: Final = timedelta(hours=2)
_TURNS: Final = 10
_LEARNING_TOKENS: Final = 1000
_MOST: Final = 100


class RAGIntegration:
    """Brings what is remembered into a prompt, fenced as data, within a number of tokens.

    Args:
        memory_store: Where it is.
        clock: Source of the present.

    Attributes:
        memory_store: As given.
        context_builder, relevance_filter: What writes entries, and what chooses among them; may be replaced.
    """

    def __init__(self, memory_store: MemoryStore, *, clock: Clock = utc_now) -> None:
        self.memory_store, self._clock = memory_store, clock
        self.context_builder, self.relevance_filter = ContextBuilder(), RelevanceFilter()

    async def get_context_for_query(
        self, user_query: str, max_context_length: int | None = None, max_entries: int = 5
    ) -> str:
        """Return the entries that answer a query as a block of text; empty where none does.

        Args:
            user_query: What is asked.
            max_context_length: Tokens at most; `max_context_length` of the store's configuration when omitted.
            max_entries: Entries at most, 1 to 100; twice as many are chosen from.

        Raises:
            ValidationError: An argument is wrong.
            StorageError: The memories cannot be read.
        """
        length = self.memory_store.config.max_context_length if max_context_length is None else max_context_length
        found = await self.memory_store.retrieve_relevant(user_query, min(_MOST, 2 * max_entries))
        chosen = await self.relevance_filter.filter_entries(found, user_query, max_entries)
        return await self.context_builder.build_context(chosen, length)

    async def get_conversation_context(self, session_id: str, max_context_length: int = 1500) -> str:
        """Return the last ten turns of a session that were said in the last two hours; empty where there are none.

        Raises:
            ValidationError: The length is wrong.
            StorageError: They cannot be read.
        """
        now = self._clock()
        said = await self.memory_store.get_conversation_history(session_id, _TURNS, (now - _LATELY, now))
        return await self.context_builder.build_conversation_context(said, max_context_length)

    async def get_learning_context(self, topic: str) -> str:
        """Return patterns, learnings and insights with this tag, the most important first, in 1,000 tokens at most.

        Raises:
            StorageError: They cannot be read.
        """
        learned = await self.memory_store.get_learning_patterns(topic)
        return await self.context_builder.build_learning_context(learned, _LEARNING_TOKENS)
