"""The step that draws entities stores those of a portion together, and none is lost after an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import StorageError
from agent_memory.ingestion import runner_of
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService

TURNS = [ReceivedTurn(f"Ada Lovelace sails to Turin with ORD-48{number}.", "person", "Lea") for number in range(10)]


async def ingest_turns(knowledge: Knowledge) -> None:
    ingest = Ingest(knowledge)
    talk = await ingest.conversation("s-1", title="Chat")
    await ingest.turns(TURNS, conversation=talk.record.id)


async def test_stage_of_several_turns_stores_entities_as_one_change(
    knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = list[int]()
    for storage in (knowledge.entities, knowledge.mentions):
        store_many = storage.store_many

        async def note(records: Sequence[Any], store_many: Any = store_many) -> None:
            changes.append(len(records))
            await store_many(records)

        monkeypatch.setattr(storage, "store_many", note)
    await ingest_turns(knowledge)
    await runner_of(knowledge, service).run()
    entities, mentions = await knowledge.entities.valid(), await knowledge.mentions.valid()
    assert changes == [len(entities), len(mentions)]
    assert len(mentions) == len(TURNS)


async def test_stage_after_failed_store_stores_entities(
    knowledge: Knowledge, service: MemoryService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingest_turns(knowledge)
    runner = runner_of(knowledge, service)
    with monkeypatch.context() as patch:

        async def fail(records: Sequence[Any]) -> None:
            raise StorageError("No room.", code="disk_full")

        patch.setattr(knowledge.entities, "store_many", fail)
        with pytest.raises(StorageError):
            await runner.run()
    await runner.run()
    assert "ORD-480" in {entity.name for entity in await knowledge.entities.valid()}
