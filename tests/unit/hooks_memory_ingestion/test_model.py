"""Steps of background work ask the session's own provider where the settings name them; rules do the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.scripted_provider import Scripted

if TYPE_CHECKING:
    from tests.unit.hooks_memory_ingestion.conftest import Begin

FACT = "So, well, the router of our flat in Bern stands upstairs in the study, as you know."
SAID = json.dumps(
    [{"source": 1, "quote": "the router of our flat in Bern stands upstairs", "text": "The router stands upstairs."}]
)


def prompts(provider: Scripted) -> list[str]:
    return [str(request.messages[0].content) for request in provider.requests]


async def test_no_provider_is_asked_unless_a_step_is_named(begin: Begin) -> None:
    provider, talk = Scripted(), await begin()
    await talk.coordinator.mount("providers", provider, name=provider.name)
    await talk.whole(FACT)
    assert provider.requests == []
    assert [item.content for item in await talk.items()] == [FACT]


async def test_the_provider_words_the_items_and_each_says_so(begin: Begin) -> None:
    provider, talk = Scripted(SAID), await begin(model=["items"])
    await talk.coordinator.mount("providers", provider, name=provider.name)
    await talk.whole(FACT)
    (item,) = [each for each in await talk.items() if each.source.detail == "model"]
    assert item.content == "The router stands upstairs."
    assert (item.source.kind, item.source.detail, item.trust) == ("extraction", "model", "high")
    (said,) = [each for each in await talk.episodes() if each.role == "user"]
    start, end = item.metadata["at"]  # type: ignore[misc]
    assert said.content[start:end] == "the router of our flat in Bern stands upstairs"  # type: ignore[misc]
    assert len(provider.requests) == 1


async def test_what_a_provider_does_not_do_rules_do_and_the_session_is_told_once(begin: Begin) -> None:
    failing: list[Any] = [RuntimeError("out of order")] * 40
    provider, talk = Scripted(*failing), await begin(model=["items", "entities", "summaries", "pages"])
    await talk.coordinator.mount("providers", provider, name=provider.name)
    await talk.say(FACT)
    await talk.answer("ok")
    await talk.end()
    assert [item.content for item in await talk.items()] == [FACT]
    troubles = [data for data in talk.told("memory:degraded") if data["component"] == "model"]
    assert [data["code"] for data in troubles] == ["language_model_failed"]
    assert "out of order" not in json.dumps(talk.events)


async def test_calls_of_a_session_are_bounded(begin: Begin) -> None:
    provider, talk = Scripted(SAID, SAID, SAID), await begin(model=["items"], model_calls=1)
    await talk.coordinator.mount("providers", provider, name=provider.name)
    await talk.whole(FACT)
    await talk.whole("The cable to the garden of our flat in Bern was cut in May by the builders.")
    assert len(provider.requests) == 1
    assert [each.source.detail for each in await talk.items()].count("passage") == 2


async def test_a_provider_is_shown_nothing_of_another_group(begin: Begin) -> None:
    other = await begin(tenant_id="umbrella", background=False)
    await other.whole("The plans of Umbrella for the harbour are secret.")
    provider = Scripted(*["[]"] * 20)
    talk = await begin(tenant_id="acme", model=["items", "entities", "summaries", "pages"])
    await talk.coordinator.mount("providers", provider, name=provider.name)
    await talk.whole(FACT)
    assert provider.requests
    assert not [prompt for prompt in prompts(provider) if "Umbrella" in prompt]
