"""Forgetting by words: a preview, then all of it as one change that one restore takes back."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ConflictError, ValidationError
from agent_memory.models import MAX_REASON_CHARS
from agent_memory.service.limits import ServiceLimits
from agent_memory.service.views import preview as preview_view
from tests.support import raises

if TYPE_CHECKING:
    from agent_memory.service import MemoryService
    from tests.support import FrozenClock
    from tests.unit.service.conftest import Listener, Services


async def told(service: MemoryService, *texts: str) -> list[str]:
    return [(await service.store(text)).memory.id for text in texts]


async def test_a_preview_shows_what_would_go_and_changes_nothing(service: MemoryService) -> None:
    badge, both, other = await told(
        service, "Ann's badge is K-12.", "Ann has badge K-12 and drives a van.", "Anna's badge is K-77."
    )
    preview = await service.requests.preview("Ann's badge")
    view = preview_view(preview)
    assert [each["memory_id"] for each in view["forget"]] == [badge]
    assert view["change"] == [
        {"memory_id": both, "content": "Ann has badge K-12 and drives a van.", "remains": "Ann drives a van."}
    ]
    assert view["count"] == 2
    assert {memory.id for memory in await service.admin.everything()} == {badge, both, other}


async def test_a_preview_that_is_too_long_says_how_many_more_would_go_or_be_cut(service: MemoryService) -> None:
    filling = "The shelf is long. " * 400
    for number in range(4):
        await told(service, f"Ann's badge is K-12, copy {number}.", f"{filling}Ann has badge K-12, see page {number}.")
    preview = await service.requests.preview("Ann's badge K-12")
    assert len(preview.gone) + len(preview.cut) == 8
    view = preview_view(preview)
    shown = [*view["forget"], *view["change"]]
    assert len(shown) < 8
    assert view["left_out"].startswith(f"{8 - len(shown)} more are meant")
    assert preview_view(preview, whole=True)["count"] == 8
    assert "left_out" not in preview_view(preview, whole=True)


async def test_what_a_preview_shows_goes_at_once_and_comes_back_at_once(
    service: MemoryService, listener: Listener
) -> None:
    badge, both, _ = await told(
        service, "Ann's badge is K-12.", "Ann has badge K-12 and drives a van.", "Anna's badge is K-77."
    )
    outcome = await service.requests.forget(await service.requests.preview("Ann's badge"), listener.caller)
    assert outcome.kept_until is not None
    assert sorted(memory.content for memory in await service.admin.everything()) == [
        "Ann drives a van.",
        "Anna's badge is K-77.",
    ]
    assert [each["memory_id"] for each in listener.of("memory:forgotten")] == [badge]
    assert [each["memory_id"] for each in listener.of("memory:updated")] == [both]

    restored = await service.past.restore(badge)

    assert [memory.id for memory in restored.memories] == [badge, both]
    assert (await service.get(both)).content == "Ann has badge K-12 and drives a van."
    assert (await service.get(badge)).content == "Ann's badge is K-12."


async def test_where_there_are_many_an_index_finds_what_is_meant(make_service: Services, clock: FrozenClock) -> None:
    service = make_service(ServiceLimits(all_read=0))
    meant, others = [], []
    for number in range(250):
        who, where = ("Lea", meant) if number % 2 else ("Leandra", others)
        clock.advance(minutes=1)
        where.append((await service.store(f"{who} was in room {number} with badge K-{number}.")).memory.id)
    assert sorted(memory.id for memory in (await service.requests.preview("everything about Lea")).gone) == sorted(
        meant
    )
    assert [memory.id for memory in (await service.requests.preview("badge k 4")).gone] == [others[2]]
    assert not await service.requests.preview("everything about Zoe")


async def test_of_two_memories_without_their_secret_none_goes(service: MemoryService, secret: str) -> None:
    await told(service, f"Ann's token is {secret}.", f"Bob's token is {secret[:-1]}9.")
    assert not await service.requests.preview(f"the token {secret}")
    await service.requests.forget(await service.requests.preview("Bob's token"))
    assert [memory.id for memory in (await service.requests.preview(f"the token {secret}")).gone]


async def test_one_restore_of_a_memory_that_was_cut_brings_back_all_of_its_request(service: MemoryService) -> None:
    one, two = await told(service, "Lea drives a van and likes tea.", "Lea drives a van and likes jazz.")
    await service.requests.forget(await service.requests.preview("what Lea drives"))
    assert (await service.get(two)).content == "Lea likes jazz."
    restored = await service.past.restore(two)
    assert restored.what == "changed"
    assert [memory.id for memory in restored.memories] == [two, one]
    assert (await service.get(one)).content == "Lea drives a van and likes tea."


async def test_what_was_changed_since_stays_as_it_is_now(service: MemoryService) -> None:
    gone, cut = await told(service, "Lea drives a van.", "Lea drives a van and likes jazz.")
    await service.requests.forget(await service.requests.preview("what Lea drives"))
    await service.update(cut, {"content": "Lea likes opera."})
    restored = await service.past.restore(gone)
    assert [memory.id for memory in restored.memories] == [gone]
    assert (await service.get(cut)).content == "Lea likes opera."


async def test_a_cut_memory_of_another_text_by_now_stops_all_of_it(service: MemoryService) -> None:
    gone, cut = await told(service, "Lea drives a van.", "Lea drives a van and likes jazz.")
    preview = await service.requests.preview("what Lea drives")
    await service.update(cut, {"content": "Lea drives a bus and likes jazz."})
    with pytest.raises(ConflictError):
        await service.requests.forget(preview)
    assert (await service.get(gone)).content == "Lea drives a van."
    assert (await service.requests.preview("what Lea drives")).confirm != preview.confirm


async def test_while_a_strangers_text_is_there_only_what_the_user_asks_for_goes(
    service: MemoryService, listener: Listener
) -> None:
    await told(service, "Lea drives a van.", "Tom drives a bus.")
    low = dataclasses.replace(listener.caller, trust="low", prompt="what is on that page?")
    preview = await service.requests.preview("what Lea drives", low)
    with raises(ValidationError, "needs_user"):
        await service.requests.forget(preview, low)
    with raises(ValidationError, "needs_user"):
        await service.requests.forget(preview, dataclasses.replace(low, prompt="forget that Lea drives a van"))
    low.proposals.begin_turn(f"Yes, {preview.confirm}.")
    await service.requests.forget(preview, low)
    assert [memory.content for memory in await service.admin.everything()] == ["Tom drives a bus."]


@pytest.mark.parametrize("words", ["", "   ", "x" * 2_001])
async def test_a_request_is_words(service: MemoryService, words: str) -> None:
    with pytest.raises(ValidationError):
        await service.requests.preview(words)


async def test_where_nothing_is_meant_nothing_goes(service: MemoryService) -> None:
    await told(service, "Ann's badge is K-12.")
    preview = await service.requests.preview("Zoe's badge")
    assert not preview
    assert preview.confirm == ""
    with raises(ValidationError, "nothing_found"):
        await service.requests.forget(preview)


async def test_what_was_released_warns_when_it_is_stored_again(
    service: MemoryService, clock: FrozenClock, secret: str
) -> None:
    stored = await service.store("We deploy on Fridays.")
    assert not stored.released
    await service.forget(stored.memory.id, reason=f"a joke, see {secret}")
    clock.advance(days=60)
    await service.admin.compact(timedelta(0))
    again = await service.store("we deploy on fridays.")
    assert again.released
    assert again.trace is not None
    assert again.trace.reason.startswith("a joke")
    assert secret not in again.trace.reason
    assert (await service.get(again.memory.id)).content == "we deploy on fridays."


async def test_what_was_forgotten_without_a_reason_leaves_no_trace(service: MemoryService) -> None:
    stored = await service.store("We deploy on Fridays.")
    await service.forget(stored.memory.id)
    assert not (await service.store("We deploy on Fridays.")).released
    assert await service.past.traces() == []


async def test_a_reason_is_short(service: MemoryService) -> None:
    stored = await service.store("We deploy on Fridays.")
    with raises(ValidationError, "invalid_reason"):
        await service.forget(stored.memory.id, reason="x" * (MAX_REASON_CHARS + 1))
    assert (await service.get(stored.memory.id)).content == "We deploy on Fridays."
