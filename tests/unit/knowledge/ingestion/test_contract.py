"""What programs written for the contract of ingestion rely on: names, arguments, defaults, and the way through it."""

from __future__ import annotations

import inspect
import json
import logging
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory import ingestion
from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.knowledge.entities.entity_repository import EntityReader
from agent_memory.knowledge.llm.language_model import Asking
from agent_memory.models import Entity
from tests.rows import check_rows

if TYPE_CHECKING:
    from agent_memory.ingestion import MemoryIngestor
    from agent_memory.knowledge.records import Knowledge
    from agent_memory.memory import MemoryService

SAID = datetime(2026, 3, 14, 12, tzinfo=UTC)
SESSION = SimpleNamespace(tenant_id="acme", id="7f3a")
GROUP = "acme:7f3a"


@check_rows(
    ("method", "arguments"),
    [
        (ingestion.MemoryIngestor.ingest_turn, "turn session"),
        (ingestion.MemoryIngestor.ingest_event, "event_type content group_id metadata"),
        (ingestion.EntityExtractor.extract, "episode"),
        (ingestion.EntityExtractor.extract_batch, "episodes"),
        (ingestion.EntityDeduplicator.find_duplicate, "entity group_id"),
        (ingestion.EntityDeduplicator.merge_entities, "existing new"),
        (ingestion.ConversationSummarizer.summarize_window, "episodes group_id"),
        (ingestion.ConversationSummarizer.create_meta_summary, "summaries group_id"),
        (ingestion.ConversationSummarizer.check_and_summarize_if_needed, "group_id"),
    ],
)
def test_methods_are_coroutines_with_the_arguments_of_the_contract(method: Any, arguments: str) -> None:
    assert inspect.iscoroutinefunction(method)
    assert list(inspect.signature(method).parameters)[1:] == arguments.split()


def test_settings_have_the_names_and_defaults_of_the_contract() -> None:
    """But for the time of an extraction: 2,000 ms cannot hold a 99th percentile of 3 seconds."""
    config = ingestion.MemoryIngestionConfig()
    model = {"llm_provider": "anthropic", "model": "haiku"}
    told = config.model_dump()
    assert told.pop("redis_url").startswith("redis://")
    assert told == {
        **dict.fromkeys(
            (
                "enabled", "embedding_enabled", "entity_extraction_enabled", "summarization_enabled",
                "async_extraction", "async_summarization",
            ),
            True,
        ),
        "queue_backend": "inmemory",
        "max_ingestion_latency_ms": 500,
        "entity_extraction": {
            "enabled": True, **model, "max_tokens": 1024, "temperature": 0.3, "batch_size": 10, "timeout_ms": 3000,
            "min_confidence": "medium",
        },
        "deduplication": {
            "exact_match_enabled": True, "fuzzy_match_enabled": True, "fuzzy_threshold": 0.85,
            "embedding_match_enabled": True, "embedding_threshold": 0.80, "rule_based_enabled": True,
        },
        "summarization": {
            "enabled": True,
            "window": {"turns_per_summary": 20, **model, "max_tokens": 256, "temperature": 0.5},
            "meta": {
                "summaries_per_meta": 5, "enabled_at_turn_count": 100, **model, "max_tokens": 512, "temperature": 0.5
            },
        },
    }  # fmt: skip


def test_errors_take_what_the_contract_gives_them_and_tell_of_their_call() -> None:
    cause = ValueError("of the store")
    failed = ingestion.IngestionError("no", episode_id="epi-1", group_id=GROUP, cause=cause)
    assert (failed.episode_id, failed.group_id, failed.cause) == ("epi-1", GROUP, cause)
    drawn = ingestion.ExtractionError("no", episode_id="epi-1", provider_error="timeout", cause=cause)
    assert (drawn.episode_id, drawn.provider_error, drawn.cause) == ("epi-1", "timeout", cause)
    summed = ingestion.SummarizationError("no", group_id=GROUP, summary_type="meta", cause=cause)
    assert (summed.group_id, summed.summary_type, summed.cause) == (GROUP, "meta", cause)
    for each in (failed, drawn, summed):
        assert isinstance(each, AgentMemoryError)
        assert each.request_id == each.request_id
        assert "of the store" not in str(each)
    assert len({failed.request_id, drawn.request_id, summed.request_id}) == 3


async def test_the_log_of_a_failed_call_has_its_request_id(
    ingestor: MemoryIngestor, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(ingestion.IngestionError) as raised:
        await ingestor.ingest_event("x", "y", "no group")
    assert f"request_id={raised.value.request_id}" in caplog.text
    assert "no group" not in str(raised.value)


async def test_a_turn_becomes_episodes_entities_relations_in_time_and_a_summary(
    knowledge: Knowledge, service: MemoryService
) -> None:
    ingestor = ingestion.MemoryIngestor(knowledge=knowledge, service=service)
    for number, firm in enumerate(["Initech", "Globex Corp"]):
        relation = {"from": "Tobias Reuter", "type": "works_at", "to": firm, "single": True}
        text, said_at = f"Tobias Reuter works at {firm}.", SAID + timedelta(days=number)
        turn = ingestion.Turn(text, "Noted.", timestamp=said_at, metadata={"relations": [relation]})
        episode = await ingestor.ingest_turn(turn, SESSION)
        assert (episode.group_id, episode.source, episode.content_type) == (GROUP, "user", "message")
    for number in range(18):
        event = await ingestor.ingest_event("tool_execution", f"Build {number} failed in Turin.", GROUP, {"n": number})
        assert (event.source, event.content_type) == ("system", "event")
        assert event.source_metadata == {"event_type": "tool_execution", "n": number}
    await ingestor.background.settle()
    entities = EntityReader(knowledge, GROUP)
    known = await entities.get("Tobias Reuter")
    first, second = await entities.relations(known)
    assert first.valid_to == second.valid_from == SAID + timedelta(days=1)
    assert await entities.relations(known, SAID) == [first]
    assert await entities.relations(known, SAID + timedelta(days=2)) == [second]
    for number in range(10):
        turn = ingestion.Turn(f"Shop {number} moved to Turin.", "I see.", timestamp=SAID + timedelta(hours=number))
        await ingestor.ingest_turn(turn, SESSION)
    await ingestor.background.settle()
    (summary,) = await knowledge.summaries.valid()
    assert (summary.group, summary.level, len(summary.covers)) == (GROUP, "window", 20)
    await ingestor.close()


async def test_ingestor_model_declares_relations_of_statements(knowledge: Knowledge, service: MemoryService) -> None:
    quote = "Tobias Reuter has worked at Initech since March 2025."
    relation = {"from": "Tobias Reuter", "type": "works_at", "to": "Initech", "valid_from": "2025-03-01"}

    async def answer(_prompt: str) -> str:
        return json.dumps([{"quote": quote, "text": quote, "relations": [relation]}])

    ingestor = ingestion.MemoryIngestor(knowledge=knowledge, service=service, model=answer)
    await ingestor.ingest_turn(ingestion.Turn(quote, "Noted.", timestamp=SAID), SESSION)
    await ingestor.background.settle()
    entities = EntityReader(knowledge, GROUP)
    (related,) = await entities.relations(await entities.get("Tobias Reuter"))
    assert (related.relation_type, related.valid_from) == ("works_at", datetime(2025, 3, 1, tzinfo=UTC))
    await ingestor.close()


async def test_batch_of_extractor_keeps_its_order() -> None:
    config = ingestion.EntityExtractionConfig(timeout_ms=600_000)
    extractor = ingestion.EntityExtractor(config, asking=Asking())
    texts = ["I met Ada Lovelace, and Ada Lovelace left.", "nothing here", "I opened PROJ-12."]
    episodes = [ingestion.Episode(f"epi-{at:012x}", GROUP, text) for at, text in enumerate(texts)]
    found = await extractor.extract_batch(episodes)
    assert [[each.name for each in one.entities] for one in found] == [["Ada Lovelace"] * 2, [], ["PROJ-12"]]


async def test_a_merge_keeps_id_and_beginning_and_is_not_stored(knowledge: Knowledge) -> None:
    old = Entity(agent_id="bob", name="Ada Lovelace", group=GROUP, valid_from=SAID, attributes={"role": "writer"})
    new = Entity(agent_id="bob", name="Ada King", group=GROUP, attributes={"role": "countess", "city": "London"})
    merged = await ingestion.EntityDeduplicator(knowledge).merge_entities(old, new)
    assert (merged.id, merged.valid_from) == (old.id, old.valid_from)
    assert merged.attributes == {"role": "countess", "city": "London"}
    assert list(await knowledge.entities.valid()) == []


async def test_merge_of_too_many_names_is_refused(knowledge: Knowledge) -> None:
    old, new = (
        Entity(agent_id="bob", name=name, group=GROUP, aliases=[f"{name} {number}" for number in range(40)])
        for name in ("Ada", "Eve")
    )
    with pytest.raises(ValidationError, match="aliases"):
        await ingestion.EntityDeduplicator(knowledge).merge_entities(old, new)
