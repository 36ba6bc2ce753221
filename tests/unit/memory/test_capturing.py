"""What the service does with observations that say again, or say otherwise, what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_memory.models import Observation

if TYPE_CHECKING:
    from agent_memory.memory import MemoryService
    from agent_memory.models import Trust
    from tests.unit.memory.conftest import Listener

MUST = "We decided that the shop must log each order to the audit file."
NEVER = MUST.replace("must", "must never")


def seen(content: str, trust: Trust = "high") -> Observation:
    return Observation(content=content, category="decision", confidence=0.9, trust=trust)


async def known(service: MemoryService) -> dict[str, Trust]:
    return {memory.content: memory.trust async for memory in service.storage.iter_all()}


async def test_a_correction_is_kept_beside_what_it_corrects(service: MemoryService) -> None:
    await service.capture([seen(MUST)])
    outcome = await service.capture([seen(NEVER)])
    assert len(outcome.stored) == 1
    assert await known(service) == {MUST: "high", NEVER: "high"}


async def test_a_repetition_is_skipped_as_a_duplicate_whoever_repeats_it(service: MemoryService) -> None:
    await service.capture([seen(MUST)])
    outcome = await service.capture([seen(MUST.lower()), seen(MUST.replace("file", "files"))])
    assert outcome.skipped == {"duplicate": 2}
    assert (await service.capture([seen(MUST, "low")])).skipped == {"duplicate": 1}
    assert await known(service) == {MUST: "high"}


async def test_a_strangers_memory_does_not_suppress_nearly_the_same_words_of_the_user(service: MemoryService) -> None:
    near = MUST.replace("each order", "each new order")
    await service.capture([seen(MUST, "low")])
    await service.capture([seen(near)])
    assert await known(service) == {MUST: "low", near: "high"}


async def test_what_a_stranger_said_and_the_user_says_too_is_the_users(
    service: MemoryService, listener: Listener
) -> None:
    victim = (await service.store({"content": "Orders are private."})).memory.id
    planted = {"content": MUST, "trust": "low", "tags": ["planted"], "pinned": True, "supersedes": victim}
    planted_id = (await service.store(planted)).memory.id
    outcome = await service.capture([seen(MUST)], listener.caller)
    [now] = [memory async for memory in service.storage.iter_all() if memory.content == MUST]
    assert outcome.stored == [planted_id] == [event["memory_id"] for event in listener.of("memory:captured")]
    assert (now.id, now.trust, now.tags, now.pinned, now.supersedes) == (planted_id, "high", [], False, None)
