"""`recall` with the session's own provider: off unless the settings say so, and never in the way of an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.integrations.amplifier.hooks.session_model import SessionModel
from amplifier_module_tool_memory_knowledge import mount
from tests.scripted_provider import Scripted
from tests.support import coordinator_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    Opened = Callable[..., Awaitable[dict[str, Any]]]

FACTS = ["The harbour of Oban opens at nine.", "The harbour of Brest opens at dawn."]


@pytest.fixture
async def opened(root: Path) -> AsyncIterator[Opened]:
    """Return a function that mounts the tools beside some providers, remembers the facts and returns the tools."""
    cleanups: list[Any] = []

    async def opening(*providers: Scripted, resolver: Any = None, **settings: Any) -> dict[str, Any]:
        coordinator = coordinator_of()
        for provider in providers:
            await coordinator.mount("providers", provider, name=provider.name)
        if resolver is not None:
            coordinator.register_capability("model_role_resolver", resolver)
        config = {"agent_id": "bob", "storage_root": str(root), "embedder": "none", **settings}
        cleanups.append(await mount(coordinator, config))
        tools: dict[str, Any] = coordinator.get("tools")
        for fact in FACTS:
            assert (await tools["remember"].execute({"content": fact})).success
        return tools

    yield opening
    for cleanup in cleanups:
        await cleanup()


async def recalled(tools: dict[str, Any], mode: str = "llm") -> str:
    result = await tools["recall"].execute({"query": "when does the harbour open", "k": 2, "mode": mode})
    assert result.success, result.error
    return str(result.output)


async def test_no_provider_is_asked_unless_the_settings_say_so(opened: Opened) -> None:
    provider = Scripted("[]")
    said = await recalled(await opened(provider))
    assert provider.requests == []
    assert "No language model is given" in said


async def test_the_provider_chooses_what_recall_prints(opened: Opened) -> None:
    provider = Scripted('[{"id": 2, "confidence": 0.91}]')
    said = await recalled(await opened(provider, model=True))
    assert said.startswith(f"Found 1 relevant memories:\n\n1. [0.91] {provider.texts()[1]}")
    (request,) = provider.requests
    assert (request.metadata, provider.options) == ({"stream": False}, [{"extended_thinking": False}])
    assert request.tools is None
    assert "Note:" not in said


async def test_the_provider_that_the_session_asks_first_is_asked(opened: Opened) -> None:
    other, first = Scripted(name="other", priority=50), Scripted("[]", name="first", priority=10)
    await recalled(await opened(other, first, model=True))
    assert (len(first.requests), other.requests) == (1, [])


async def test_the_model_for_quick_work_is_asked_if_one_is_named(opened: Opened) -> None:
    class Resolver:
        async def resolve(self, role: str) -> list[Any]:
            assert role == "fast"
            return [SimpleNamespace(provider="none", model="x"), SimpleNamespace(provider="small", model="small-1")]

    big, small = Scripted(name="big", priority=1), Scripted("[]", name="provider-small")
    await recalled(await opened(big, small, resolver=Resolver(), model=True))
    assert (small.options, big.requests) == ([{"extended_thinking": False, "model": "small-1"}], [])


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        ([OSError("secret words of the provider")], "did not answer"),
        ([None], "did not answer"),
        (["I would say the second one."] * 2, "gave no answer that can be read"),
        (['[{"id": 1}, {"id":'] * 2, "gave no answer that can be read"),
    ],
    ids=["outage", "timeout", "nonsense", "partial"],
)
async def test_a_provider_that_fails_leaves_the_rules_answer(
    opened: Opened, answers: list[str | Exception | None], why: str
) -> None:
    provider = Scripted(*answers)
    said = await recalled(await opened(provider, model=True, model_timeout=0.05))
    assert said.startswith("Found 2 relevant memories:")
    assert f"Note: The language model {why}, so this was found by rules." in said
    assert "secret words" not in said
    assert len(provider.requests) == len(answers)


async def test_calls_of_a_session_are_bounded(opened: Opened) -> None:
    provider = Scripted("[]", "[]", "[]")
    tools = await opened(provider, model=True, model_calls=1)
    await recalled(tools)
    assert "the limit of 1 calls is reached" in await recalled(tools)
    assert len(provider.requests) == 1


async def test_a_session_without_a_provider_says_so() -> None:
    with pytest.raises(LookupError, match="no provider"):
        await SessionModel(coordinator_of(), lambda prompt, _: prompt)("anything")
