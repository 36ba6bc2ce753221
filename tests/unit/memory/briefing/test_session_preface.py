"""Text of memory in the requests of a session without a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.embeddings.testing import HashEmbedder
from agent_memory.memory import NOBODY, open_service
from agent_memory.memory.session_preface import SessionPreface
from agent_memory.settings import ScratchpadSettings, ServiceSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from agent_memory.memory import MemoryService


@pytest.fixture
async def service(root: Path) -> AsyncIterator[MemoryService]:
    service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
    yield service
    await service.close()


def build_preface(*, is_briefed: bool = False, prompt: str = "") -> SessionPreface:
    async def get_prompt() -> str:
        return prompt

    return SessionPreface(ScratchpadSettings(), lambda: NOBODY, get_prompt, is_briefed=is_briefed)


async def test_preface_is_frozen_until_it_expires(service: MemoryService) -> None:
    preface = build_preface()
    await service.store("Prefers tea")
    await preface.refresh(service)
    text = preface.text
    await service.store("Works in Oslo")
    await preface.refresh(service)
    assert preface.text == text
    preface.expire()
    await preface.refresh(service)
    assert "Works in Oslo" in preface.text
    assert preface.tokens > 0


async def test_preface_drops_forgotten_memory(service: MemoryService) -> None:
    preface = build_preface()
    stored = await service.store("Prefers tea")
    await preface.refresh(service)
    await service.forget(stored.memory.id)
    await preface.refresh(service)
    assert "Prefers tea" not in preface.text


async def test_preface_is_briefed_once_for_the_first_prompt(service: MemoryService) -> None:
    await service.store("The attempt budget of the Retrier is seven.")
    for number in range(60):
        await service.store(f"Parcel {number} goes to {number * 7} Harbour Street")
    preface = build_preface(is_briefed=True, prompt="What is the attempt budget of the Retrier?")
    await preface.refresh(service)
    assert "Retrier is seven" in preface.text.partition("[agent-memory: briefing")[2]
    preface.clear()
    await preface.refresh(service)
    assert "briefing" not in preface.text
    await preface.close()


@pytest.mark.parametrize(("prompt", "is_searched_soon"), [("Hi.", False), ("What is the attempt budget?", True)])
async def test_preface_loads_model_for_prompt_about_memories(
    root: Path, prompt: str, *, is_searched_soon: bool
) -> None:
    embedder = HashEmbedder()
    service = open_service("bob", ServiceSettings(storage_root=str(root)), embedder)
    await service.store("The attempt budget of the Retrier is seven.")
    for number in range(60):
        await service.store(f"Parcel {number} goes to {number * 7} Harbour Street")
    await service.close()
    service = open_service("bob", ServiceSettings(storage_root=str(root)), embedder)
    warm_ups: list[str] = []
    service.warm_up = lambda: warm_ups.append(prompt)  # type: ignore[method-assign]
    preface = build_preface(is_briefed=True, prompt=prompt)
    await preface.refresh(service)
    assert bool(warm_ups) == is_searched_soon
    assert service.storage.embedding_status() == {"status": "found"}
    await preface.close()
    await service.close()
