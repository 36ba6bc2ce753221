"""Which steps of background work a session does is said by its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.hooks_memory_ingestion.conftest import Begin

SAID = "I think Robert Smith works at Acme Corp."


@pytest.mark.parametrize("entities", [True, False])
async def test_entities_are_drawn_unless_they_are_switched_off(begin: Begin, entities: bool) -> None:
    talk = await begin(entities=entities)
    await talk.whole(SAID)
    knowledge = talk.knowledge("bob")
    names = {each.name for each in await knowledge.entities.valid()}
    await knowledge.close()
    assert ("Robert Smith" in names) is entities
    assert [item.content for item in await talk.items()] == [SAID]


@pytest.mark.parametrize("summaries", [True, False])
async def test_summaries_are_made_unless_they_are_switched_off(begin: Begin, summaries: bool) -> None:
    talk = await begin(summaries=summaries)
    for at in range(20):
        await talk.say(f"In room {at} of the house in Bern Robert Smith keeps {at} boxes of green tea.")
        await talk.answer("ok")
    await talk.end()
    knowledge = talk.knowledge("bob")
    made = await knowledge.summaries.valid()
    await knowledge.close()
    assert bool(made) is summaries
