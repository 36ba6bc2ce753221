"""What one group gave is told to no other one: items, pages, counts, names of topics, errors, documents, turns."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import CategoryExistsError, CategoryNotFoundError, ResourceNotFoundError, ValidationError
from agent_memory.knowledge import MemoryManager, tools
from agent_memory.knowledge.intake.drafts import ReceivedTurn
from agent_memory.knowledge.intake.ingest import Ingest
from agent_memory.knowledge.pipeline.background_work import ITEMS_ONLY, runner_of
from agent_memory.knowledge.records import Knowledge
from agent_memory.memory import NOBODY, MemoryService, open_service
from agent_memory.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ADA, BOB = "acme:ada", "beta:bob"
SALARY = "Ada: My salary at Zeppelin Works is paid in May."


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[MemoryService]:
    opened = open_service("bob", ServiceSettings(storage_root=str(tmp_path), embedder="none"))
    yield opened
    await opened.close()


@pytest.fixture
async def managers(service: MemoryService) -> AsyncIterator[dict[str | None, MemoryManager]]:
    """Return a manager for Ada's group, one for Bob's, and one that is bound to none."""
    every = {group: MemoryManager(service=service, caller=replace(NOBODY, group=group)) for group in (ADA, BOB, None)}
    yield every
    for manager in every.values():
        await manager.close()


async def test_what_is_remembered_belongs_to_the_group_of_who_says_it(
    managers: dict[str | None, MemoryManager], service: MemoryService
) -> None:
    hers = await managers[ADA].remember("The salary is paid in May.", "money")
    his = await managers[BOB].remember("The salary is paid in May.", "money")
    assert hers.item_id != his.item_id
    assert (await service.get(hers.item_id)).group == ADA
    for group, item in ((ADA, hers), (BOB, his)):
        found = await managers[group].retrieve("When is the salary paid?")
        assert [each.item_id for each in found.items] == [item.item_id]
        assert found.total_found == 1
    assert len((await managers[None].retrieve("When is the salary paid?")).items) == 2


async def test_a_resource_of_another_group_is_not_there(managers: dict[str | None, MemoryManager]) -> None:
    hers = await managers[ADA].store_resource(SALARY, "conversation")
    [item] = await managers[ADA].extract_and_store(hers.resource_id, "money")
    layer = managers[BOB].resource_layer
    assert await layer.get(hers.resource_id) is None
    assert (await layer.list_recent(), await layer.list_by_type("conversation")) == ([], [])
    assert await layer.search("salary") == []
    assert await layer.passage(hers.resource_id) is None
    assert await managers[BOB].item_layer.get(item.item_id) is None
    assert await managers[BOB].item_layer.get_by_resource(hers.resource_id) == []
    assert await managers[BOB].delete_resource(hers.resource_id) is False
    with pytest.raises(ResourceNotFoundError):
        await managers[BOB].extract_and_store(hers.resource_id)
    assert (await managers[ADA].resource_layer.get(hers.resource_id)) is not None


async def test_the_name_of_a_topic_is_told_to_who_has_something_of_it(
    managers: dict[str | None, MemoryManager],
) -> None:
    await managers[ADA].create_category("zeppelin_merger", "The secret merger of Acme with Zeppelin Works.")
    await managers[ADA].remember("The merger with Zeppelin Works is signed in June.", "zeppelin_merger")
    await managers[None].create_category("office", "Rooms, desks and keys of the office.")
    assert [each.name for each in await managers[BOB].list_categories()] == ["office"]
    assert "zeppelin" not in await tools.render_categories(managers[BOB])
    with pytest.raises(CategoryNotFoundError) as caught:
        await managers[BOB].get_category_content("zeppelin_merger")
    assert caught.value.available == ["office"]
    with pytest.raises(CategoryNotFoundError):
        await managers[BOB].consolidate_category("zeppelin_merger")
    assert await managers[ADA].category_layer.count_items() == {"office": 0, "zeppelin_merger": 1}


async def test_a_name_that_another_group_took_is_free(managers: dict[str | None, MemoryManager]) -> None:
    await managers[ADA].create_category("merger", "The secret merger of Acme with Zeppelin Works.")
    his = await managers[BOB].create_category("merger", "Lanes that merge on the way to work.")
    assert (his.description, his.item_ids) == ("Lanes that merge on the way to work.", [])
    [seen] = await managers[BOB].list_categories()
    assert (seen.name, seen.description) == ("merger", "Lanes that merge on the way to work.")
    [seen] = await managers[ADA].list_categories()
    assert seen.description == "The secret merger of Acme with Zeppelin Works."
    with pytest.raises(CategoryExistsError):
        await managers[BOB].create_category("merger", "Another one of the same name.")


async def test_a_page_is_made_of_what_is_there_for_who_asks(managers: dict[str | None, MemoryManager]) -> None:
    await managers[None].create_category("money", "Salaries, invoices and taxes of all.")
    await managers[ADA].remember("The salary of Ada is paid in May.", "money")
    await managers[BOB].remember("The salary of Bob is paid in June.", "money")
    await managers[None].remember("The tax office is in Berlin.", "money")
    whole = await managers[None].consolidate_category("money")
    assert all(word in whole for word in ("May", "June", "Berlin"))
    for group, own, other in ((ADA, "May", "June"), (BOB, "June", "May")):
        for page in (
            await managers[group].get_category_content("money"),
            await managers[group].consolidate_category("money", force=True),
            await tools.render_page(managers[group], "money"),
        ):
            assert own in page
            assert "Berlin" in page
            assert other not in page
        [seen] = await managers[group].list_categories()
        assert len(seen.item_ids) == 2
        assert other not in seen.markdown_content
        assert (await managers[group].category_layer.count_items()) == {"money": 2}


async def test_person_has_a_page_for_groups_that_see_enough(
    managers: dict[str | None, MemoryManager], service: MemoryService
) -> None:
    knowledge = Knowledge("bob", service.settings)
    for group, most in ((ADA, 6), (BOB, 2)):
        ingest = Ingest(knowledge)
        begun = await ingest.conversation("talk", group=group)
        for order in range(most):
            text = f"They paid for room {order} of the {group.partition(':')[2]} house in Lyon yesterday."
            turn = ReceivedTurn(text, speaker="Lyon")
            await ingest.turn(turn, conversation=begun.record.id, order=order, group=group)
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    await knowledge.close()
    assert "lyon" in {each.name for each in await managers[None].list_categories()}
    assert "lyon" in {each.name for each in await managers[ADA].list_categories()}
    assert "lyon" not in {each.name for each in await managers[BOB].list_categories()}
    assert "bob house" not in await managers[ADA].get_category_content("lyon")


async def test_a_session_of_one_group_works_on_what_another_one_gave(service: MemoryService) -> None:
    knowledge, said = Knowledge("bob", service.settings), "The harbour of Lyon opens in May."
    for text in (said, f"{said}\n\n# Ferry\n\nThe ferry to Bern is painted green."):
        await Ingest(knowledge).resource(text, group=ADA)
        ran = await runner_of(knowledge, service, replace(NOBODY, group=BOB), config=ITEMS_ONLY).run()
        assert ran.failed == 0
    [item] = [each for each in await service.searcher.list_all() if each.content == said]
    assert (len(item.links), item.group) == (2, ADA)
    await knowledge.close()


async def test_any_number_of_groups_may_remember_something_under_one_topic(service: MemoryService) -> None:
    for number in range(150):
        manager = MemoryManager(service=service, caller=replace(NOBODY, group=f"acme:session-{number}"))
        item = await manager.remember(f"The kettle of session {number} is made of steel.", "kitchen")
        assert item.category == "kitchen"
        await manager.close()
    assert [each.name for each in await manager.list_categories()] == ["kitchen"]


async def test_any_number_of_groups_may_describe_one_topic(service: MemoryService) -> None:
    for number in range(60):
        manager = MemoryManager(service=service, caller=replace(NOBODY, group=f"acme:session-{number}"))
        made = await manager.create_category("kitchen", f"What session {number} cooks. " + "And bakes. " * 40)
        assert made.description.startswith(f"What session {number} cooks.")
        (listed,) = await manager.list_categories()
        assert listed.description == made.description
        await manager.close()


async def test_a_topic_that_another_group_has_too_stays_theirs(
    managers: dict[str | None, MemoryManager], service: MemoryService
) -> None:
    hers = await managers[ADA].create_category("kitchen", "What Ada cooks at home.")
    await managers[BOB].create_category("kitchen", "What Bob fries at work.")
    with pytest.raises(ValidationError, match="did not declare kitchen"):
        await managers[BOB].category_layer.update_content(hers.category_id, "# Nothing")
    assert await managers[ADA].category_layer.delete(hers.category_id)
    assert await managers[ADA].list_categories() == []
    (his,) = await managers[BOB].list_categories()
    assert his.description == "What Bob fries at work."
    assert await managers[BOB].category_layer.delete(his.category_id)
    assert await managers[None].list_categories() == []


async def test_a_group_deletes_no_topic_of_all(managers: dict[str | None, MemoryManager]) -> None:
    common = await managers[None].create_category("kitchen", "What is cooked anywhere.")
    with pytest.raises(ValidationError, match="did not declare kitchen"):
        await managers[BOB].category_layer.delete(common.category_id)
    assert len(await managers[ADA].list_categories()) == 1


async def test_a_deleted_topics_page_is_gone_unless_a_person_changed_it(
    managers: dict[str | None, MemoryManager], tmp_path: Path
) -> None:
    for name in ("kitchen", "garden"):
        made = await managers[None].create_category(name, f"What is done in the {name}.")
        await managers[None].remember(f"The door of the {name} is green.", name)
        await managers[None].consolidate_category(name)
        page = tmp_path / "bob" / "topics" / f"{name}.md"
        if name == "garden":
            page.write_text(page.read_text() + "\nAsk Lea.\n")
        assert await managers[None].category_layer.delete(made.category_id)
        assert page.exists() is (name == "garden")


async def test_a_topic_of_an_entity_of_others_is_listed_once_a_group_declares_it(
    managers: dict[str | None, MemoryManager], service: MemoryService, tmp_path: Path
) -> None:
    knowledge = Knowledge("bob", service.settings)
    for number in range(6):
        await Ingest(knowledge).turn(
            ReceivedTurn(f"On day {number} Zeppelin Works sold {number} boats to us.", speaker="Lea"), group=ADA
        )
    await runner_of(knowledge, service, at_once=True, config=ITEMS_ONLY).run()
    await knowledge.close()
    assert await managers[BOB].list_categories() == []
    name = (await managers[ADA].list_categories())[0].name
    await managers[BOB].create_category(name, "What Bob knows of it.")
    assert [each.description for each in await managers[BOB].list_categories()] == ["What Bob knows of it."]


async def test_a_session_is_told_of_no_page_that_is_not_there_for_it(service: MemoryService) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    async def hear(event: str, data: dict[str, Any]) -> None:
        heard.append((event, data))

    knowledge = Knowledge("bob", service.settings)
    for number in range(6):
        await Ingest(knowledge).turn(
            ReceivedTurn(f"On day {number} Zeppelin Works sold {number} boats to us.", speaker="Lea"), group=ADA
        )
    await runner_of(knowledge, service, replace(NOBODY, group=BOB, emit=hear), at_once=True, config=ITEMS_ONLY).run()
    assert heard == []
    await Ingest(knowledge).turn(
        ReceivedTurn("On Monday Zeppelin Works painted a shed for Bob.", speaker="Lea"), group=BOB
    )
    await runner_of(knowledge, service, replace(NOBODY, group=BOB, emit=hear), at_once=True, config=ITEMS_ONLY).run()
    await knowledge.close()
    told = dict(heard)
    assert told["memory:items_extracted"]["item_count"] == 1
    page = told["memory:category_consolidated"]
    assert (page["name"], page["item_count"], page["content_length"]) == ("lea", 1, 0)


async def test_what_is_told_of_a_new_topic_has_no_secret(service: MemoryService) -> None:
    stored: list[Any] = []

    class Store:
        def append(self, event: Any) -> None:
            stored.append(event)

    manager = MemoryManager(service=service, event_store=Store())
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    made = await manager.create_category("keys", f"The token is {secret} as of May.")
    await manager.store_resource("The shed is green.", "document", {f"k {secret}": "x"})
    await manager.close()
    assert secret not in made.description
    assert secret not in repr(stored)
