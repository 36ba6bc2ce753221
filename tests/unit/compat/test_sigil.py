"""`MemoryManager` as its contract says: three layers, three ways to find, pages, events, errors."""

# ruff: noqa: T201 - the example prints what it finds

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.care.archive import Archive
from agent_memory.errors import (
    CategoryExistsError,
    CategoryNotFoundError,
    ConfigurationError,
    ExtractionError,
    ResourceNotFoundError,
    ValidationError,
)
from agent_memory.knowledge import (
    MemoryConfig,
    MemoryEvent,
    MemoryEventType,
    MemoryItem,
    MemoryManager,
    Resource,
    RetrievalMode,
)
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pages.page import parse
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import Caller, open_service
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.models import Memory

TALK = """
User: Which tariff do we have for the boat?
Agent: The boat has the harbour tariff with 40 litres of diesel a month.
       It was signed by Marta in March.
User: Thanks!
Agent: The engine was serviced in April, and the next service is due in October.
"""
TYPES = MemoryEventType


class Kept:
    """An event store that is a list."""

    def __init__(self) -> None:
        self.events: list[MemoryEvent] = []

    def append(self, event: MemoryEvent) -> None:
        self.events.append(event)


@pytest.fixture
def kept() -> Kept:
    return Kept()


def settings(tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(embedder="none", storage_root=str(tmp_path / "memory"))


def quoted(text: str, memory: Memory) -> str:
    at: Any = memory.metadata["at"]
    return text[at[0] : at[1]]


def made(tmp_path: Path, **options: Any) -> MemoryManager:
    return MemoryManager(tmp_path / "memory", settings=settings(tmp_path), **options)


@pytest.fixture
async def manager(tmp_path: Path, kept: Kept) -> AsyncIterator[MemoryManager]:
    one = made(tmp_path, event_store=kept)
    yield one
    await one.close()


async def test_the_full_workflow_runs_as_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    # Initialize
    manager = MemoryManager(storage_dir="outputs/memory")

    # 1. Store a conversation resource
    resource = await manager.store_resource(
        content=TALK,
        resource_type="conversation",
        metadata={"agent_name": "sales_agent", "lead_id": "lead_123"},
    )
    print(f"Stored: {resource.resource_id}")

    # 2. Extract facts from conversation
    items = await manager.extract_and_store(
        resource_id=resource.resource_id,
        category_hint="product_knowledge",
    )
    print(f"Extracted {len(items)} facts")

    # 3. Retrieve relevant memories
    result = await manager.retrieve(
        query="Which tariff does the boat have?",
        mode=RetrievalMode.HYBRID,
        k=3,
    )
    print(f"Found {result.total_found} items in {result.search_time_ms:.1f}ms")
    for item, score in zip(result.items, result.confidence_scores, strict=True):
        print(f"  [{score:.2f}] {item.content}")

    # 4. Consolidate category
    await manager.consolidate_category("product_knowledge")
    content = await manager.get_category_content("product_knowledge")
    print(f"Category content:\n{content}")

    stats = manager.get_stats()
    print(f"  Storage: {stats.storage_bytes / 1024:.1f} KB")
    if not manager.is_healthy:
        print("Memory system degraded - check logs")
    await manager.close()

    said = capsys.readouterr().out
    assert f"Stored: {resource.resource_id}\nExtracted 2 facts\nFound " in said
    assert "harbour tariff" in said.partition("Category content:")[0]
    assert "degraded" not in said
    assert content.startswith("# Product Knowledge\n\n## Facts\n\n- User: Which tariff do we have")
    assert f"[^1]: Extracted from conversation ({resource.resource_id}" in content
    page = parse(content)
    notes = page.notes
    assert all(resource.content[claim.notes[0].start : claim.notes[0].end] in claim.text for claim in page.claims)
    assert [note.item for note in notes] == [item.item_id for item in items]
    assert content.endswith("*Items: 2 | Resources: 1*\n")
    assert (stats.total_resources, stats.total_items, stats.total_categories) == (1, 2, 1)
    assert stats.resources_by_type == {"conversation": 1}
    assert stats.items_by_category == {"product_knowledge": 2}
    assert stats.last_extraction_at is not None
    assert stats.last_consolidation_at is not None
    assert (tmp_path / "outputs" / "memory" / "default" / "knowledge.yaml").is_file()


async def test_the_default_categories_are_created_as_they_are_written(manager: MemoryManager, kept: Kept) -> None:
    default_categories = [
        ("product_knowledge", "Information about products, pricing, features, and comparisons"),
        ("lead_preferences", "Captured preferences, requirements, and communication styles of leads"),
    ]
    for name, description in default_categories:
        await manager.create_category(name, description)

    categories = await manager.list_categories()
    assert [each.name for each in categories] == ["lead_preferences", "product_knowledge"]
    assert categories[0].markdown_content == "# Lead Preferences\n\n*No items yet.*"
    assert [each.event_type for each in kept.events] == [TYPES.CATEGORY_CREATED] * 2
    assert kept.events[0].payload["name"] == "product_knowledge"
    with pytest.raises(CategoryExistsError):
        await manager.create_category("lead_preferences", "The same once more")


@pytest.mark.parametrize(
    ("name", "description"), [("Lead Notes", "Long enough"), ("x" * 65, "Long enough"), ("a", "short")]
)
async def test_a_category_has_a_name_in_snake_case_and_a_description(
    manager: MemoryManager, name: str, description: str
) -> None:
    with pytest.raises(ValueError, match=r"name|description"):
        await manager.create_category(name, description)


async def test_items_lead_back_to_the_very_words(manager: MemoryManager, tmp_path: Path) -> None:
    service = open_service("default", settings(tmp_path))
    resource = await manager.store_resource(TALK, "conversation")
    items = await manager.extract_and_store(resource.resource_id)
    assert [item.source_resource_id for item in items] == [resource.resource_id] * 2
    stored = await manager.resource_layer.get(resource.resource_id)
    assert stored is not None
    for item in items:
        memory = await service.get(item.item_id)
        assert quoted(stored.content, memory) in item.content
    assert await manager.item_layer.get_by_resource(resource.resource_id) == items
    await service.close()


async def test_drawing_again_adds_nothing(manager: MemoryManager) -> None:
    first = await manager.store_resource(TALK, "conversation")
    again = await manager.store_resource(TALK, "conversation")
    assert again.resource_id == first.resource_id
    items = await manager.extract_and_store(first.resource_id)
    assert await manager.extract_and_store(first.resource_id) == items
    assert manager.get_stats().total_items == 2


async def test_one_statement_of_two_resources_is_one_item_with_two_sources(manager: MemoryManager) -> None:
    one = await manager.store_resource("The boat is moored at pier four.", "document")
    two = await manager.store_resource("The boat is moored at pier four.\n\n# Norway\n\nIt leaves in May.", "document")
    await manager.extract_and_store(one.resource_id)
    await manager.extract_and_store(two.resource_id)
    assert manager.get_stats().total_items == 2
    assert len(await manager.item_layer.get_by_resource(two.resource_id)) == 2


async def test_what_is_wrong_is_a_value_error_or_says_what_is_missing(manager: MemoryManager) -> None:
    with pytest.raises(ValueError, match="resource_type is one of"):
        await manager.store_resource("x", "novel")
    with pytest.raises(ValueError, match="1,000,000"):
        await manager.store_resource("x" * 1_000_001, "document")
    with pytest.raises(ValueError, match="mode is one of"):
        await manager.retrieve("x", mode="best")
    for k in (0, 101, True):
        with pytest.raises(ValueError, match="k is a whole number"):
            await manager.retrieve("x", k=k)
    with pytest.raises(ResourceNotFoundError):
        await manager.extract_and_store("res-ffffffffffff")
    await manager.create_category("sailing", "What is known of sailing")
    with pytest.raises(CategoryNotFoundError) as caught:
        await manager.get_category_content("saling")
    assert caught.value.available == ["sailing"]
    with pytest.raises(CategoryNotFoundError):
        await manager.consolidate_category("saling")


async def test_a_document_without_a_passage_is_a_warning_or_with_strict_an_error(manager: MemoryManager) -> None:
    resource = await manager.store_resource("---\ntitle: Empty\n---", "document")
    items = await manager.extract_and_store(resource.resource_id)
    assert (items, len(items.warnings)) == ([], 1)
    with pytest.raises(ExtractionError):
        await manager.extract_and_store(resource.resource_id, strict=True)


async def test_events_tell_what_was_done_and_no_query(manager: MemoryManager, kept: Kept) -> None:
    resource = await manager.store_resource(TALK, "conversation", {"agent_name": "x", "messages": 5})
    items = await manager.extract_and_store(resource.resource_id, "boats")
    await manager.retrieve("harbour tariff")
    await manager.consolidate_category("boats")
    await manager.delete_resource(resource.resource_id)
    types = [each.event_type for each in kept.events]
    assert types[:3] == [TYPES.RESOURCE_STORED, TYPES.ITEMS_EXTRACTED, TYPES.RETRIEVAL_PERFORMED]
    assert kept.events[0].payload == {
        "resource_id": resource.resource_id,
        "resource_type": "conversation",
        "content_length": len(resource.content),
        "metadata_keys": ["agent_name", "messages"],
    }
    extracted = next(each for each in kept.events if each.event_type is TYPES.ITEMS_EXTRACTED)
    assert extracted.payload["item_ids"] == [item.item_id for item in items]
    assert extracted.payload["categories"] == ["boats"]
    assert extracted.correlation_id == resource.resource_id
    assert types.count(TYPES.ITEM_DELETED) == 2
    assert {TYPES.CATEGORY_CONSOLIDATED, TYPES.RESOURCE_DELETED, TYPES.RETRIEVAL_PERFORMED} <= set(types)
    assert "tariff" not in str(kept.events)
    assert len({each.event_id for each in kept.events}) == len(kept.events)


async def test_a_page_is_made_when_so_many_items_have_come(tmp_path: Path) -> None:
    manager = made(tmp_path, config=MemoryConfig(consolidation_interval=2))
    await manager.remember("The mast is made of spruce wood.", "boats")
    assert "Last consolidated" not in await manager.get_category_content("boats")
    await manager.remember("The hull is made of oak wood.", "boats")
    assert "spruce" in await manager.get_category_content("boats")
    await manager.close()


async def test_a_page_is_not_made_anew_without_need_and_never_over_a_persons_edit(
    manager: MemoryManager, tmp_path: Path
) -> None:
    await manager.remember("The mast is made of spruce wood.", "boats")
    first = await manager.consolidate_category("boats")
    assert await manager.consolidate_category("boats") == first
    category = await manager.category_layer.get_by_name("boats")
    assert category is not None
    knowledge = Knowledge("default", settings(tmp_path))
    await knowledge.topics.update(category.category_id, {"body": "# Boats\n\nMine.", "edited_by": "ann"})
    await knowledge.close()
    assert await manager.consolidate_category("boats", force=True) == "# Boats\n\nMine."


async def test_deleting_a_resource_takes_its_items_and_their_lines_or_says_that_they_stay(
    manager: MemoryManager,
) -> None:
    gone = await manager.store_resource("The anchor weighs twelve kilos.", "document")
    stays = await manager.store_resource("The sail is white and blue.", "document")
    for each in (gone, stays):
        await manager.extract_and_store(each.resource_id, "boats")
    await manager.consolidate_category("boats")

    assert await manager.delete_resource(gone.resource_id)
    assert not await manager.delete_resource(gone.resource_id)
    page = await manager.get_category_content("boats")
    assert "anchor" not in page
    assert "sail is white" in page

    assert await manager.delete_resource(stays.resource_id, cascade=False)
    [item] = await manager.item_layer.get_by_category("boats")
    assert item.source_resource_id == stays.resource_id
    assert "deleted since" in await manager.get_category_content("boats")


async def test_what_an_agent_notes_has_its_own_words_as_source(manager: MemoryManager) -> None:
    await manager.create_category("sailing", "Winds, tides and harbours")
    item = await manager.remember("The tides at Brest are strong in spring.", importance="high")
    assert (item.category, item.importance) == ("sailing", "high")
    [source] = await manager.resource_layer.list_by_type("feedback")
    assert (source.resource_id, source.content) == (item.source_resource_id, "The tides at Brest are strong in spring.")
    with pytest.raises(ValidationError, match="importance"):
        await manager.remember("Something else that is so.", importance="urgent")  # type: ignore[arg-type]


async def test_a_category_is_asked_before_the_best_are_counted(manager: MemoryManager) -> None:
    for at in range(8):
        await manager.remember(f"The harbour of town {at} opens at dawn.", "towns")
    await manager.remember("The harbour fee was paid in cash by Ann last year.", "money")
    found = await manager.retrieve("harbour opens at dawn", k=3, category_filter="money")
    assert [item.category for item in found.items] == ["money"]


async def test_notes_of_the_agent_are_found_too(tmp_path: Path) -> None:
    service = open_service("default", settings(tmp_path))
    other = (await service.store("Ann prefers the northern harbour.")).memory
    manager = MemoryManager(service=service)
    found = await manager.retrieve("northern harbour", RetrievalMode.RAG)
    assert [(item.item_id, item.source_resource_id) for item in found.items] == [(other.id, "")]
    await manager.close()
    assert (await service.get(other.id)).content == other.content  # it was given, and stays open
    await service.close()


async def test_what_another_resource_says_too_stays_when_one_of_them_is_deleted(manager: MemoryManager) -> None:
    one = await manager.store_resource("The lighthouse stands on the rock.", "document")
    two = await manager.store_resource("The lighthouse stands on the rock.", "feedback")
    [kept], _ = [await manager.extract_and_store(each.resource_id) for each in (one, two)]
    assert await manager.delete_resource(one.resource_id)
    left = await manager.item_layer.get(kept.item_id)
    assert left is not None
    assert left.source_resource_id == two.resource_id
    assert await manager.delete_resource(two.resource_id)
    assert await manager.item_layer.get(kept.item_id) is None


async def test_layers_store_get_list_search_and_delete(manager: MemoryManager) -> None:
    resources, items, categories = manager.resource_layer, manager.item_layer, manager.category_layer
    one = await resources.store("The lighthouse stands on the rock.", "document", {"title": "Lights"})
    two = await resources.store("Cooks and sailors", "config", {"agent_name": "x"})
    assert Resource.from_dict(one.to_dict()) == one
    assert [each.resource_id for each in await resources.list_recent(1)] == [two.resource_id]
    assert [each.resource_id for each in await resources.search("lighthouse")] == [one.resource_id]
    assert await resources.search("lighthouse", "config") == []

    draft = MemoryItem("", "The light is white", None, one.resource_id, "lights", 0.7, one.created_at)
    [kept] = await items.store_batch([draft])
    assert (kept.confidence, kept.category) == (0.7, "lights")
    assert await items.get(kept.item_id) == kept
    with pytest.raises(ResourceNotFoundError):
        await items.store(MemoryItem("", "x y z", None, "res-ffffffffffff", None, 0.7, one.created_at))
    with pytest.raises(ValueError, match="confidence"):
        MemoryItem("", "x", None, one.resource_id, None, 1.2, one.created_at)
    assert await items.rebuild_index() == 1

    category = await categories.create("lights", "Lights of the coast")
    assert (await categories.add_items(category.category_id, [kept.item_id])).item_ids == [kept.item_id]
    assert (await categories.update_content(category.category_id, "# Lights")).markdown_content == "# Lights"
    assert (await categories.get(category.category_id)) == await categories.get_by_name("lights")
    assert await categories.delete(category.category_id)
    assert not await categories.delete(category.category_id)
    assert await items.delete(kept.item_id)
    assert not await items.delete(kept.item_id)
    assert await resources.delete(two.resource_id)
    assert await resources.get(two.resource_id) is None


async def test_health_and_numbers_are_those_of_the_last_look(manager: MemoryManager) -> None:
    assert manager.is_healthy
    assert manager.get_stats().total_resources == 0
    await manager.resource_layer.store("The boat is moored.", "document")
    assert manager.get_stats().total_resources == 0
    assert (await manager.check()).total_resources == 1
    assert manager.get_stats().storage_bytes > 0


async def test_old_resources_without_items_are_listed_and_stay(manager: MemoryManager) -> None:
    kept = await manager.store_resource("The boat is moored at pier four.", "document")
    await manager.extract_and_store(kept.resource_id)
    old = await manager.store_resource("Why?", "document")
    assert await manager.outdated() == []
    assert [each.resource_id for each in await manager.outdated(timedelta(0))] == [old.resource_id]


def test_two_folders_are_an_error_that_names_both(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"a.* and .*b"):
        MemoryManager(tmp_path / "a", config=MemoryConfig(storage_dir=tmp_path / "b"))


async def test_of_turns_that_came_one_by_one_each_item_leads_to_its_own_turn(
    manager: MemoryManager, tmp_path: Path
) -> None:
    knowledge = Knowledge("default", settings(tmp_path))
    ingest = Ingest(knowledge)
    talk = (await ingest.conversation("talk-1")).record
    said = ["The mast broke in the storm of May.", "It was mended in June by Bob."]
    turns = [
        (await ingest.turn(ReceivedTurn(text, role, "Ann"), conversation=talk.id, order=order)).record
        for order, (text, role) in enumerate(zip(said, ["user", "assistant"], strict=True))
    ]
    items = await manager.extract_and_store(talk.id, "boats")
    assert [item.source_resource_id for item in items] == [turn.id for turn in turns]
    assert items[0].content == "Ann: The mast broke in the storm of May."
    assert await manager.item_layer.get_by_resource(talk.id) == items
    service = open_service("default", settings(tmp_path))
    memories = [await service.get(item.item_id) for item in items]
    quotes = [quoted(text, memory) for text, memory in zip(said, memories, strict=True)]
    assert quotes == said
    assert [memory.trust for memory in memories] == ["medium", "medium"]
    page = parse(await manager.consolidate_category("boats"))
    assert {(claim.notes[0].source, claim.text) for claim in page.claims} == {
        (turn.id, f"Ann: {quote}") for turn, quote in zip(turns, quotes, strict=True)
    }
    assert await manager.delete_resource(talk.id)
    assert manager.get_stats().total_items == 0
    await service.close()
    await knowledge.close()


async def test_a_page_that_was_not_made_yet_shows_its_items_or_says_what_waits(
    tmp_path: Path, manager: MemoryManager
) -> None:
    await manager.create_category("boats", "Everything about boats")
    assert "Waiting" not in await manager.get_category_content("boats")
    await manager.store_resource(TALK, "document")
    waiting = await manager.get_category_content("boats")
    assert "*No items yet.*\n\n*Waiting for the background work: 1 turns or documents to be read.*" in waiting
    bound = made(tmp_path, caller=Caller(group="acme:s1"))
    told = await bound.get_category_content("boats")
    assert "What came in last may not be filed yet" in told
    assert "1 turns" not in told
    await bound.close()
    await manager.remember("The boat is moored at pier four.", "boats")
    page = await manager.get_category_content("boats")
    assert "The boat is moored at pier four. [^1]" in page
    assert "No items yet" not in page


async def test_delete_item_remembered_again_forgets_its_archived_text(manager: MemoryManager) -> None:
    first = await manager.remember("The boat has the harbour tariff.")
    archive = Archive(manager.item_layer.service)
    assert len(await archive.add([first.item_id])) == 1
    again = await manager.remember("The boat has the harbour tariff.")
    assert await manager.item_layer.delete(again.item_id)
    assert not await manager.item_layer.delete(again.item_id)
    assert await archive.everything() == []
    await archive.close()
