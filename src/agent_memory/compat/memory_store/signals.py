"""`MemoryStoreSignalBusIntegration`: what a program's signals say becomes entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from agent_memory.care.importance import MemoryEntryType
from agent_memory.compat.memory_store.entries import TEXT, MemoryEntry
from agent_memory.errors import ValidationError
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import datetime


class Stores(Protocol):
    """What keeps entries: a `MemoryStore`."""

    async def store_entry(self, entry: MemoryEntry) -> str:
        """Keep an entry and return its id."""


@runtime_checkable
class Signal(Protocol):
    """One signal: any object with a name, its data, and where it comes from."""

    @property
    def signal_type(self) -> str:
        """What kind of signal, such as `interaction`."""

    @property
    def data(self) -> Mapping[str, Any]:
        """What it says: `text`, and whatever else an entry's content has; see `entry_of_signal`."""

    @property
    def source(self) -> str:
        """What sent it, such as `cognitive_agent`."""

    @property
    def timestamp(self) -> datetime:
        """When."""


class UnifiedSignalBus(Protocol):
    """What carries signals to those who subscribed."""

    def subscribe(self, signal_type: str, handler: Callable[[Any], Awaitable[object]]) -> object:
        """Have `handler` awaited with each signal of a type."""


_FIELDS: Final = frozenset(
    {
        "session_id",
        "summary",
        "keywords",
        "semantic_tags",
        "importance_score",
        "related_entries",
        "parent_entry",
        "entry_id",
    }
)
"""Keys of a signal's data that are fields of the entry; the others are its content."""


class MemoryStoreSignalBusIntegration:
    """Stores what signals say; `connect` subscribes the three handlers.

    Args:
        memory_store: Keeps the entries.
        signal_bus: Carries the signals.
    """

    def __init__(self, memory_store: Stores, signal_bus: UnifiedSignalBus) -> None:
        self.memory_store, self.signal_bus = memory_store, signal_bus

    def connect(self) -> None:
        """Subscribe to `interaction`, `insight` and `correction`."""
        self.signal_bus.subscribe(MemoryEntryType.INTERACTION, self.handle_interaction_signal)
        self.signal_bus.subscribe(MemoryEntryType.INSIGHT, self.handle_insight_signal)
        self.signal_bus.subscribe(MemoryEntryType.CORRECTION, self.handle_correction_signal)

    async def handle_interaction_signal(self, signal: Signal) -> str:
        """Keep what was said as a turn of its session, and return the id of the entry.

        Raises:
            ValidationError: The signal has no words; nothing was stored.
            StorageError: Nothing was stored.
        """
        return await self._store(signal, MemoryEntryType.INTERACTION)

    async def handle_insight_signal(self, signal: Signal) -> str:
        """Keep an insight; raises as `handle_interaction_signal`."""
        return await self._store(signal, MemoryEntryType.INSIGHT)

    async def handle_correction_signal(self, signal: Signal) -> str:
        """Keep a correction; the memory that `parent_entry` names is replaced. Raises as the others."""
        return await self._store(signal, MemoryEntryType.CORRECTION)

    async def _store(self, signal: Signal, entry_type: str) -> str:
        return await self.memory_store.store_entry(entry_of_signal(signal, entry_type))


def entry_of_signal(signal: Signal, entry_type: str) -> MemoryEntry:
    """Return the entry of a signal: fields of an entry in its data are that, all else is content.

    Raises:
        ValidationError: Its data is neither a mapping nor a text.
    """
    data: Any = getattr(signal, "data", None)
    if isinstance(data, str):
        data = {TEXT: data}
    if not hasattr(data, "items"):
        raise ValidationError("Nothing was stored: the data of a signal is a mapping, as in {'text': 'It works.'}.")
    given: dict[str, Any] = {str(key): value for key, value in data.items()}
    content = {key: value for key, value in given.items() if key not in _FIELDS}
    fields = {key: value for key, value in given.items() if key in _FIELDS and value is not None}
    return MemoryEntry(
        entry_type=entry_type,
        content=content,
        source=str(getattr(signal, "source", "") or ""),
        timestamp=getattr(signal, "timestamp", None) or utc_now(),
        **fields,
    )
