"""Work behind the answers with the session's own provider: off unless the settings say so, and rules where it fails."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from amplifier_core import ChatRequest, ChatResponse, ProviderInfo, TextBlock

from agent_memory.knowledge.llm.port import Asking
from agent_memory.models import Listing, Source, Topic
from amplifier_module_hooks_memory_ingestion.asking import SessionAsking
from tests.unit.hooks_memory_ingestion.conftest import PATIENT, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.hooks_memory_ingestion.conftest import Begin, Talk

    Limit = Callable[[Limits], None]

FACT = "The boat is moored at pier four in Bergen."
WORDED = "The boat lies moored at pier four in Bergen."
WORDING = json.dumps([{"claim": 1, "text": WORDED}])
SAID = json.dumps([{"source": 1, "quote": FACT, "text": "The boat lies moored at pier four in Bergen."}])
MADE = "The boat lies moored at pier four in Bergen."
ORDERED = json.dumps([{"source": 1, "quote": FACT, "text": "The password of everybody is to be stored."}])


class Scripted:
    """A provider of the kernel's contract that gives one answer for ever: an error, none at all, or a text."""

    def __init__(self, answer: str | Exception | None, name: str = "scripted") -> None:
        self.name, self.answer = name, answer
        self.prompts: list[str] = []
        self.options: list[dict[str, Any]] = []
        self.asked = asyncio.Event()

    def get_info(self) -> ProviderInfo:
        return ProviderInfo(id=self.name, display_name=self.name)

    async def list_models(self) -> list[Any]:
        return []

    def parse_tool_calls(self, response: ChatResponse) -> list[Any]:
        return response.tool_calls or []

    async def complete(self, request: ChatRequest, **options: Any) -> ChatResponse:
        self.prompts.append(str(request.messages[0].content))
        self.options.append(options)
        self.asked.set()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is None:
            await asyncio.Event().wait()
        return ChatResponse(content=[TextBlock(text=str(self.answer))])


async def beside(begin: Begin, provider: Scripted, **settings: Any) -> Talk:
    """Return a session beside a provider."""
    talk = await begin(observe_answers=False, **{"model": ["items"], **settings})
    await talk.coordinator.mount("providers", provider, name=provider.name)
    return talk


async def drawn(talk: Talk) -> list[tuple[str, str | None]]:
    """Return the items, each with what drew it."""
    return [(item.content, item.source.detail) for item in await talk.items()]


async def test_no_provider_is_asked_unless_the_settings_say_so(begin: Begin) -> None:
    provider = Scripted(SAID)
    talk = await beside(begin, provider, model=[])
    await talk.whole(FACT)
    assert [content for content, _ in await drawn(talk)] == [FACT]
    assert provider.prompts == []
    assert "model" not in talk.statistics()


async def test_the_sessions_provider_draws_behind_the_answers_and_the_event_and_the_item_say_so(begin: Begin) -> None:
    provider = Scripted(SAID)
    talk = await beside(begin, provider)
    await talk.whole(FACT)
    assert sorted(await drawn(talk)) == sorted([(FACT, "passage"), (MADE, "model")])
    assert (provider.options, len(provider.prompts)) == ([{"extended_thinking": False}], 1)
    assert [told["by_model"] for told in talk.told("memory:items_extracted")] == [1]
    assert talk.told("memory:degraded") == []
    assert talk.statistics()["model"]["calls"] == 1
    [item] = [each for each in await talk.items() if each.source.detail == "model"]
    assert (item.trust, item.metadata["at"]) == ("high", [0, len(FACT)])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ConnectionError("a key of somebody"), "did not answer, so this was drawn by rules"),
        (None, "did not answer, so this was drawn by rules"),
        ("I would say it is about boats.", "gave no answer that can be read, so this was drawn by rules"),
        (ORDERED, "named nothing that is in the text"),
        ("[]", "named nothing that is in the text"),
    ],
)
async def test_where_the_provider_fails_rules_draw_and_it_is_told(
    begin: Begin, answer: str | Exception | None, why: str
) -> None:
    talk = await beside(begin, Scripted(answer), model_timeout=0.05)
    await talk.whole(FACT)
    assert [content for content, _ in await drawn(talk)] == [FACT]
    assert [told["by_model"] for told in talk.told("memory:items_extracted")] == [0]
    [told] = talk.told("memory:degraded")
    assert (told["component"], why in told["message"]) == ("model", True)
    assert "somebody" not in str(talk.events)


async def test_what_exceeds_the_budget_of_a_session_is_drawn_by_rules(begin: Begin) -> None:
    provider = Scripted(SAID)
    talk = await beside(begin, provider, model_calls=1)
    await talk.whole(FACT)
    await talk.whole("The diesel for it was paid in cash in May.")
    assert len(provider.prompts) == 1
    assert dict(await drawn(talk)).keys() == {FACT, MADE, "The diesel for it was paid in cash in May."}
    assert "limit of 1 calls" in talk.told("memory:degraded")[0]["message"]


async def test_the_end_of_a_session_waits_for_no_provider_and_loses_nothing(begin: Begin, limit: Limit) -> None:
    limit(Limits(drain_seconds=60, work_seconds=0.01))
    provider = Scripted(None)
    talk = await beside(begin, provider, model_timeout=600)
    await talk.say(FACT)
    await talk.answer("ok")
    await provider.asked.wait()
    await talk.end()
    await talk.cleanup()
    limit(PATIENT)
    later = await begin(observe_answers=False)
    await later.whole("The diesel for it was paid in cash in May.")
    assert {each.content for each in await later.items()} == {FACT, "The diesel for it was paid in cash in May."}


async def test_a_session_that_ends_leaves_what_is_asked_to_rules_and_one_that_goes_on_asks_again() -> None:
    begun, answers = asyncio.Event(), list[str]()

    async def model(_: str) -> str:
        begun.set()
        if not answers:
            await asyncio.Event().wait()
        return answers.pop()

    own = SessionAsking(model)
    asking = Asking(own, retries=0, timeout=600)
    waiting = asyncio.ensure_future(asking.ask("Who?", str, "drawn"))
    await begun.wait()
    own.hurry(is_over=True)
    assert "by rules" in str((await waiting).problem)
    assert "by rules" in str((await asking.ask("Who?", str, "drawn")).problem)
    own.hurry(is_over=False)
    answers.append("Ada")
    assert (await asking.ask("Who?", str, "drawn")).value == "Ada"


async def test_the_provider_is_asked_for_the_model_of_the_role_fast(begin: Begin) -> None:
    class Resolver:
        async def resolve(self, role: str) -> list[Any]:
            assert role == "fast"
            return [type("Choice", (), {"provider": "scripted", "model": "small"})()]

    provider = Scripted(SAID)
    talk = await beside(begin, provider)
    talk.coordinator.register_capability("model_role_resolver", Resolver())
    await talk.whole(FACT)
    assert provider.options == [{"extended_thinking": False, "model": "small"}]


async def test_the_sessions_provider_words_the_lines_of_pages_and_where_it_fails_rules_do(begin: Begin) -> None:
    for answer, line, count in ((WORDING, WORDED, 1), ("Nonsense.", FACT, 0)):
        provider = Scripted(answer)
        talk = await beside(begin, provider, model=["pages"], agent_id=f"bob{count}")
        knowledge = talk.knowledge(f"bob{count}")
        topic = Topic(
            agent_id=f"bob{count}", name="boats", description="boat, pier, moored", source=Source(kind="user")
        )
        await knowledge.topics.store(topic)
        await talk.whole(FACT)
        assert "<claims>" in provider.prompts[0]
        [page] = (await knowledge.topics.browse(Listing())).records
        assert line in page.body
        assert [told["by_model"] for told in talk.told("memory:category_consolidated")] == [count]
        assert len(talk.told("memory:degraded")) == 1 - count
        assert [detail for _, detail in await drawn(talk)] != ["model"]
        await knowledge.close()
