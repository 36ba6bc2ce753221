"""Lines of the specifications that were open once, each by its printed call."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import prometheus_client
import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.errors import CategoryNotFoundError, ConfigurationError, SummarizationError, ValidationError
from agent_memory.ingestion import ConversationSummarizer, MemoryIngestor, Session, SummarizationConfig, Turn
from agent_memory.knowledge import LLMRetriever, MemoryManager, RAGRetriever
from agent_memory.knowledge.langchain import functions_of, tools_of
from agent_memory.lifecycle import MemoryEntry, MemoryStore, MemoryStoreConfig
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from agent_memory.memory import MemoryService
    from agent_memory.models import Summary

SESSION = Session(tenant_id="acme", id="7f3a")
GROUP = "acme:7f3a"
POLICY = """# Retry policy

Forbidden:

- retrying POST requests
- retrying after a 401

`max_retries`
: How often a request is tried again. The default is 3.

| code | retried |
|---|---|
| 429 | yes |
"""


def settings(root: Path, **values: str) -> ServiceSettings:
    return ServiceSettings(storage_root=str(root), **{"embedder": "none", **values})


@pytest.fixture
async def manager(tmp_path: Path) -> AsyncIterator[MemoryManager]:
    opened = MemoryManager(tmp_path, settings=settings(tmp_path))
    yield opened
    await opened.close()


@pytest.fixture
async def ingestor(tmp_path: Path) -> AsyncIterator[MemoryIngestor]:
    opened = MemoryIngestor("bob", settings(tmp_path))
    yield opened
    await opened.close()


async def test_extract_list_keeps_its_head_term_and_row(manager: MemoryManager) -> None:
    """Sigil 9."""
    resource = await manager.store_resource(POLICY, "document", {"title": "Retry policy"})
    items = [item.content for item in await manager.extract_and_store(resource.resource_id)]
    (policy,) = [item for item in items if "retrying after a 401" in item]
    assert "Forbidden:" in policy
    assert all("max_retries" in item for item in items if "The default is 3." in item)
    assert all("| code | retried |" in item for item in items if "| 429 | yes |" in item)


async def test_extract_again_forgotten_passage_stays_forgotten(manager: MemoryManager) -> None:
    resource = await manager.store_resource("# Pier\n\nOpens at nine.\n\n# Fees\n\nTen pounds a day.", "document")
    first, second = await manager.extract_and_store(resource.resource_id)
    await manager.item_layer.delete(first.item_id)
    assert [item.item_id for item in await manager.extract_and_store(resource.resource_id)] == [second.item_id]


async def test_delete_resource_pinned_item_stays(manager: MemoryManager) -> None:
    resource = await manager.store_resource("# Pier\n\nOpens at nine.\n\n# Fees\n\nTen pounds a day.", "document")
    pinned, _ = await manager.extract_and_store(resource.resource_id)
    await manager.item_layer.service.update(pinned.item_id, {"pinned": True})
    assert await manager.delete_resource(resource.resource_id)
    assert await manager.item_layer.get(pinned.item_id) is not None
    assert manager.get_stats().total_items == 1
    assert not await manager.delete_resource(resource.resource_id)


async def forget_covered_item(service: MemoryService, forget: Callable[[str], Awaitable[object]]) -> list[Summary]:
    """Return the summaries of a talk after one item of it was forgotten."""
    ingestor = MemoryIngestor(service.agent_id, service=service)
    for number in range(10):
        turn = Turn(f"The ferry number {number} leaves for Lisbon every morning.", f"Ferry {number} is booked.")
        await ingestor.ingest_turn(turn, SESSION)
    await ingestor.background.settle()
    (summary,) = await ingestor.knowledge.summaries.valid()
    covered = set(summary.covers)
    items = [item async for item in service.storage.iter_all() if covered & {link.id for link in item.links}]
    await forget(items[0].id)
    summaries = list(await ingestor.knowledge.summaries.valid())
    await ingestor.close()
    return summaries


async def test_manager_forgotten_item_leaves_the_summaries(manager: MemoryManager) -> None:
    assert await forget_covered_item(manager.item_layer.service, manager.item_layer.delete) == []


async def test_store_deleted_entry_leaves_the_summaries(tmp_path: Path) -> None:
    store = MemoryStore(MemoryStoreConfig(storage_path=str(tmp_path)), settings=settings(tmp_path))
    assert await forget_covered_item(store.service, store.delete_entry) == []
    await store.close()


async def test_rag_retriever_threshold_above_all_results_is_degraded(tmp_path: Path) -> None:
    """Sigil 19."""
    embedder = HashEmbedder(synonyms={"hoist": "crane"})
    manager = MemoryManager(tmp_path, embedder, settings=settings(tmp_path))
    await manager.remember("The harbour crane needs a new cable.")
    by_default = await RAGRetriever(manager.item_layer, embedder).retrieve("crane", 3)
    assert (len(by_default.items), by_default.degraded) == (1, None)
    strict = await RAGRetriever(manager.item_layer, embedder, similarity_threshold=1.0).retrieve("hoist", 3)
    assert (strict.items, strict.total_found) == ([], 0)
    assert strict.degraded == "All results are less similar than 1.0."
    await manager.close()


async def test_llm_retriever_model_name_is_refused_with_a_hint(manager: MemoryManager) -> None:
    """Sigil 20."""
    with pytest.raises(ConfigurationError) as refused:
        LLMRetriever(manager.item_layer, model="anthropic:claude-sonnet-4-20250514")  # type: ignore[arg-type]
    assert "async def answer(prompt: str) -> str" in refused.value.recovery
    await manager.remember("The pricing plan costs 40 pounds.")

    async def answer(_prompt: str) -> str:
        return '[{"id": 1, "confidence": 0.9}]'

    result = await LLMRetriever(manager.item_layer, model=answer).retrieve("pricing plan")
    assert (result.mode_used, result.confidence_scores) == ("llm", [0.9])


async def test_search_by_embedding_other_dimension_is_refused(tmp_path: Path) -> None:
    """Sigil 26."""
    embedder = HashEmbedder()
    manager = MemoryManager(tmp_path, embedder, settings=settings(tmp_path))
    await manager.remember("The harbour crane needs a new cable.")
    size = embedder.identity.dimension
    with pytest.raises(ValidationError, match=f"{size} numbers in this memory, got 1536"):
        await manager.item_layer.search_by_embedding([0.1] * 1536, 5)
    await manager.close()


async def test_search_unknown_category_lists_the_names(manager: MemoryManager) -> None:
    await manager.create_category("lead_preferences", "Communication style of leads")
    with pytest.raises(CategoryNotFoundError) as refused:
        await manager.retrieve("billing", category_filter="nope")
    assert refused.value.available == ["lead_preferences"]


async def test_create_category_short_description_names_the_least(manager: MemoryManager) -> None:
    with pytest.raises(ValidationError, match="description has fewer than 10 characters"):
        await manager.create_category("lead_preferences", "x")


async def test_create_category_after_a_hint_sets_the_description(manager: MemoryManager) -> None:
    resource = await manager.store_resource("Maria prefers tea in the morning.", "document")
    (item,) = await manager.extract_and_store(resource.resource_id, "hot_drinks")
    created = await manager.create_category("hot_drinks", "What people drink in the morning")
    assert created.description == "What people drink in the morning"
    assert [member.item_id for member in await manager.item_layer.get_by_category("hot_drinks")] == [item.item_id]
    with pytest.raises(ValueError, match="already exists"):
        await manager.create_category("hot_drinks", "What people drink at night")


def test_langchain_tools_answer_invoke(tmp_path: Path) -> None:
    """Sigil 36."""
    pytest.importorskip("langchain_core")
    manager = MemoryManager(tmp_path, settings=settings(tmp_path))
    tools = {tool.name: tool for tool in tools_of(manager)}
    assert tools["remember"].invoke({"content": "Ann prefers tea."}).startswith("Remembered: mem-")
    assert "Ann prefers tea." in tools["recall"].invoke({"query": "what does Ann prefer"})


def test_blocking_tools_keep_names_and_arguments(manager: MemoryManager) -> None:
    functions = functions_of(manager)
    assert [function.__name__ for function in functions] == ["recall", "remember", "list_categories", "get_category"]
    assert list(inspect.signature(functions[0]).parameters) == ["query", "k", "mode", "category"]


async def test_meta_summary_of_unstored_summaries_is_made(ingestor: MemoryIngestor) -> None:
    """Focal 8."""
    turns = [
        await ingestor.ingest_turn(Turn(f"Order {number} was sent to Lisbon by the team.", "Noted."), SESSION)
        for number in range(20)
    ]
    summarizer = ConversationSummarizer(ingestor.knowledge)
    windows = [await summarizer.summarize_window(part, GROUP) for part in (turns[:10], turns[10:])]
    meta = await summarizer.create_meta_summary(windows, GROUP)
    assert (meta.content_type, meta.metadata["summaries_covered"]) == ("meta_summary", 2)
    assert meta.metadata["summary_ids"] == [window.id for window in windows]
    assert list(await ingestor.knowledge.summaries.valid()) == []
    with pytest.raises(SummarizationError):
        await summarizer.create_meta_summary([turns[0]], GROUP)


def test_summarization_config_has_its_printed_classes() -> None:
    """Focal 13."""
    config = SummarizationConfig(
        window=SummarizationConfig.WindowConfig(turns_per_summary=10),
        meta=SummarizationConfig.MetaConfig(summaries_per_meta=3),
    )
    assert (config.window.turns_per_summary, config.meta.summaries_per_meta) == (10, 3)


async def test_deduplication_known_name_is_counted(ingestor: MemoryIngestor) -> None:
    """Focal 17."""
    name, labels = "focal_deduplication_matches_total", {"stage": "exact"}
    before = prometheus_client.REGISTRY.get_sample_value(name, labels) or 0.0
    for number in range(3):
        await ingestor.ingest_turn(Turn(f"Order ORD-48213 is late, day {number}."), SESSION)
        await ingestor.background.settle()
    assert (prometheus_client.REGISTRY.get_sample_value(name, labels) or 0.0) - before == 2


async def test_ingest_turn_refused_message_is_in_the_result(ingestor: MemoryIngestor) -> None:
    episode = await ingestor.ingest_turn(Turn("x" * 1_000_001, "I noted it."), SESSION)
    assert (episode.source, episode.source_metadata) == ("agent", {"refused": {"user": "too_long"}})


async def test_store_entry_fills_the_entry(tmp_path: Path) -> None:
    """Leonidas 5."""
    store = MemoryStore(MemoryStoreConfig(storage_path=str(tmp_path)), settings=settings(tmp_path))
    entry = MemoryEntry(content={"text": "Checkout loses users at step four."}, importance_score=0.0)
    stored_id = await store.store_entry(entry)
    stored = await store.get_entry_by_id(stored_id)
    assert stored is not None
    assert (entry.entry_id, entry.importance_score) == (stored_id, stored.importance_score)
    assert (entry.keywords, entry.summary, entry.created_at) == (stored.keywords, stored.summary, stored.created_at)
    await store.close()
