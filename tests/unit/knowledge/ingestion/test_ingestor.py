"""Turns and events are taken in group by group; what is made of them follows behind."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import DiskFullError
from agent_memory.ingestion import IngestionError, MemoryIngestionConfig, MemoryIngestor, Turn

if TYPE_CHECKING:
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService

SAID = datetime(2026, 3, 14, 12, tzinfo=UTC)
SECRET = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zAZz12"


@dataclass
class Served:
    """A session of a tenant."""

    tenant_id: str = "acme"
    id: str = "7f3a"


async def test_a_turn_is_two_episodes_of_one_conversation_in_the_group(
    ingestor: MemoryIngestor, knowledge: Knowledge
) -> None:
    turn = Turn("The invoices are due on the 5th.", "Noted.", id="t-1", timestamp=SAID)
    first = await ingestor.ingest_turn(turn, Served())
    await ingestor.ingest_turn(Turn("And the rent?", "On the 1st.", id="t-2"), Served())
    assert (first.group_id, first.source, first.content_type) == ("acme:7f3a", "user", "message")
    assert (first.content, first.occurred_at) == ("The invoices are due on the 5th.", SAID)
    assert first.source_metadata["turn_id"] == "t-1"
    (conversation,) = await knowledge.resources.valid()
    turns = sorted(await knowledge.episodes.linked_to(conversation.id), key=lambda each: each.order)
    assert [(each.role, each.order, each.content) for each in turns] == [
        ("user", 0, "The invoices are due on the 5th."),
        ("assistant", 1, "Noted."),
        ("user", 2, "And the rent?"),
        ("assistant", 3, "On the 1st."),
    ]
    assert first.source_metadata["response_id"] == turns[1].id
    assert {each.group for each in turns} == {"acme:7f3a"}
    assert [each.trust for each in turns] == ["high", "medium", "high", "medium"]


async def test_the_same_turn_is_there_once_also_after_a_restart(
    ingestor: MemoryIngestor, knowledge: Knowledge, service: MemoryService
) -> None:
    turn = Turn("The invoices are due on the 5th.", "Noted.", timestamp=SAID)
    first = await ingestor.ingest_turn(turn, Served())
    again = MemoryIngestor(knowledge=knowledge, service=service)
    assert (await again.ingest_turn(turn, Served())).id == first.id
    await again.ingest_turn(Turn("Something new", timestamp=SAID.replace(hour=13)), Served())
    await again.close()
    assert await knowledge.episodes.count() == 3


async def test_an_event_is_an_episode_of_its_group_with_what_is_known_of_it(ingestor: MemoryIngestor) -> None:
    known = await ingestor.ingest_event("tool_execution", "The build failed.", "acme:7f3a", {"tool": "bash"})
    assert (known.source, known.content_type) == ("system", "event")
    assert known.source_metadata == {"event_type": "tool_execution", "tool": "bash"}


@pytest.mark.parametrize(
    ("turn", "session", "code"),
    [
        (Turn(), Served(), "nothing_said"),
        (Turn("Hello"), Served(tenant_id="a b"), "invalid_group"),
        (Turn("Hello"), Served(id=""), "invalid_group"),
        (Turn("Hello"), Served(id="7f\u202e3a"), "invalid_group"),
        (Turn("Hello"), Served(tenant_id=None), "invalid_group"),  # type: ignore[arg-type]
        (Turn("Hello"), object(), "invalid_group"),
        (Turn("x" * 1_000_001), Served(), "too_long"),
        (Turn(SECRET), Served(), "only_secret"),
    ],
    ids=["empty", "tenant", "session", "unseen", "no tenant", "no session", "long", "secret"],
)
async def test_what_cannot_be_taken_in_is_refused_with_the_reason(
    ingestor: MemoryIngestor, knowledge: Knowledge, turn: Turn, session: Served, code: str
) -> None:
    with pytest.raises(IngestionError) as caught:
        await ingestor.ingest_turn(turn, session)
    assert caught.value.code == code
    assert caught.value.recovery
    assert SECRET not in str(caught.value)
    assert await knowledge.episodes.count() == 0


async def test_what_the_disk_refuses_is_an_ingestion_error_with_its_cause(
    ingestor: MemoryIngestor, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: Any, **__: Any) -> None:
        raise DiskFullError("The disk is full; nothing was stored.")

    monkeypatch.setattr(knowledge.episodes, "store_many", full)
    with pytest.raises(IngestionError, match="disk is full") as caught:
        await ingestor.ingest_turn(Turn("Hello there"), Served())
    assert (caught.value.group_id, type(caught.value.cause)) == ("acme:7f3a", DiskFullError)


async def test_a_group_that_is_none_is_quoted_nowhere(
    ingestor: MemoryIngestor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(IngestionError) as caught:
        await ingestor.ingest_event("tool_execution", "The build failed.", "hidden words of somebody")
    assert caught.value.group_id is None
    assert "ingestion_failed" in caplog.text
    assert "hidden" not in f"{caught.value}{caplog.text}"


async def test_it_is_off_by_configuration(knowledge: Knowledge, service: MemoryService) -> None:
    ingestor = MemoryIngestor(config=MemoryIngestionConfig(enabled=False), knowledge=knowledge, service=service)
    with pytest.raises(IngestionError, match="off by configuration"):
        await ingestor.ingest_event("x", "y", "acme:7f3a")
    await ingestor.close()


async def test_a_summary_follows_behind_when_enough_was_said(ingestor: MemoryIngestor, knowledge: Knowledge) -> None:
    for number in range(10):
        said = f"On day {number} we moved the shop number {number} to Turin."
        await ingestor.ingest_turn(Turn(said, "I see.", timestamp=SAID.replace(minute=number)), Served())
    await ingestor.background.settle()
    (summary,) = await knowledge.summaries.valid()
    assert (summary.level, summary.group, len(summary.covers)) == ("window", "acme:7f3a", 20)
    assert not any(each.due for each in await ingestor.background.backlog())


async def test_what_is_not_asynchronous_is_done_before_the_answer(knowledge: Knowledge, service: MemoryService) -> None:
    config = MemoryIngestionConfig(async_summarization=False)
    async with MemoryIngestor(config=config, knowledge=knowledge, service=service) as ingestor:
        for number in range(10):
            turn = Turn(f"Shop {number} moved to Turin.", "I see.", timestamp=SAID.replace(minute=number))
            await ingestor.ingest_turn(turn, Served())
        assert await knowledge.summaries.count() == 1
