"""Signals of a program become entries."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.lifecycle import MemoryEntryType, MemoryStoreSignalBusIntegration
from tests.support import raises

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agent_memory.lifecycle import MemoryStore

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Signal:
    """A signal of a program."""

    signal_type: str
    data: Any
    source: str = "cognitive_agent"
    timestamp: datetime = NOON


@dataclass
class Bus:
    """A bus that awaits each handler."""

    handlers: dict[str, list[Callable[[Any], Awaitable[object]]]] = field(default_factory=lambda: defaultdict(list))

    def subscribe(self, signal_type: str, handler: Callable[[Any], Awaitable[object]]) -> None:
        self.handlers[signal_type].append(handler)

    async def emit(self, signal: Signal) -> list[object]:
        return [await handler(signal) for handler in self.handlers[signal.signal_type]]


async def test_each_signal_becomes_an_entry_of_its_type(store: MemoryStore) -> None:
    bus = Bus()
    MemoryStoreSignalBusIntegration(store, bus).connect()
    said = {"text": "Which tariff has the boat?", "session_id": "session-1", "speaker": "Ann"}
    ((turn,), (insight,)) = (
        await bus.emit(Signal("interaction", said, "user_interaction")),
        await bus.emit(Signal("insight", {"text": "The boat has the harbour tariff.", "semantic_tags": ["boat"]})),
    )
    (correction,) = await bus.emit(
        Signal("correction", {"text": "The boat has the sea tariff.", "parent_entry": insight})
    )
    history = await store.get_conversation_history("session-1")
    assert [(each.entry_id, each.content["speaker"]) for each in history] == [(turn, "Ann")]
    found = await store.retrieve_relevant("which tariff has the boat")
    assert {each.entry_id for each in found} == {turn, correction}
    assert {each.entry_type for each in found} == {MemoryEntryType.INTERACTION, MemoryEntryType.CORRECTION}
    assert {each.source for each in found} == {"cognitive_agent", "user"}


async def test_a_text_alone_is_enough(store: MemoryStore) -> None:
    integration = MemoryStoreSignalBusIntegration(store, Bus())
    kept = await store.get_entry_by_id(await integration.handle_insight_signal(Signal("insight", "It works.")))
    assert kept is not None
    assert (kept.text, kept.timestamp) == ("It works.", NOON)


@pytest.mark.parametrize(("data", "code"), [(None, "invalid"), (7, "invalid"), ({}, "empty_entry")])
async def test_a_signal_without_words_is_refused(store: MemoryStore, data: object, code: str) -> None:
    integration = MemoryStoreSignalBusIntegration(store, Bus())
    with raises(ValidationError, code):
        await integration.handle_correction_signal(Signal("correction", data))
