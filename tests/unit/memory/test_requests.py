"""Requests to forget: words list candidates, IDs are forgotten as one change that one restore takes back."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import UnknownIdError, ValidationError
from agent_memory.memory import Caller
from agent_memory.memory.caller import ProposalBook
from agent_memory.memory.searcher import MAX_CANDIDATES
from agent_memory.memory.views import render_forgotten
from agent_memory.models import MAX_REASON_CHARS
from tests.support import memory_of, raises

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent_memory.memory import ForgetCandidates, ForgottenMany, MemoryService
    from agent_memory.models import Trust
    from tests.support import FrozenClock
    from tests.unit.memory.conftest import Listener


EXTRACTION = {"kind": "extraction", "detail": "talk.said"}


async def store_texts(service: MemoryService, *texts: str) -> list[str]:
    return [(await service.store(text)).memory.id for text in texts]


def list_contents(candidates: ForgetCandidates) -> list[str]:
    return [candidate.memory.content for candidate in candidates.listed]


def make_model(trust: Trust = "medium") -> Caller:
    """Return a model in a turn of a conversation, a tainted one with low trust."""
    return Caller("s", trust=trust, proposals=ProposalBook("s"))


async def forget_after_yes(
    service: MemoryService, memory_ids: Collection[str], caller: Caller, answer: str = "yes"
) -> ForgottenMany:
    """Expect a proposal, answer it, and forget in the turn of the answer."""
    with raises(ValidationError, "needs_user") as caught:
        await service.writer.deletion.forget(memory_ids, caller)
    proposal = re.search(r"the id (\w{12})", caught.value.recovery or "")[1]  # type: ignore[index]
    caller.proposals.begin_turn(answer.format(id=proposal))
    return await service.writer.deletion.forget(memory_ids, caller)


# -- candidates -------------------------------------------------------------------------------------------------------


async def test_candidates_show_owners_and_change_nothing(service: MemoryService) -> None:
    texts = ("My address is 5 Lime Road.", "My sister's address is 9 Oak Lane.", "The user's son's address is new.")
    await store_texts(service, *texts, "Tea is at four.")
    candidates = await service.searcher.find_candidates("my address")
    assert sorted(list_contents(candidates)) == sorted(texts)
    owners = {candidate.memory.content: candidate.ownership.owner for candidate in candidates.listed}
    assert [owners[text] for text in texts] == ["the user", "the user's sister", "the user's son"]
    assert candidates.ownership.owner == "the user"
    assert len(await service.searcher.list_all()) == 4


async def test_preview_of_earlier_versions_is_forgotten(service: MemoryService) -> None:
    await store_texts(service, "My address is 5 Lime Road.", "Tea is at four.")
    preview = await service.searcher.preview("my address")
    assert ([memory.content for memory in preview.gone], preview.cut) == (["My address is 5 Lime Road."], ())
    assert (await service.writer.deletion.forget(preview)).memories == preview.gone
    assert not await service.searcher.preview("the weather of Mars")


async def test_candidates_of_many_memories_are_at_most_eight(service: MemoryService) -> None:
    await store_texts(service, *[f"Ann's badge number {number} is lost." for number in range(20)])
    candidates = await service.searcher.find_candidates("Ann's badge")
    assert len(candidates.listed) == MAX_CANDIDATES


async def test_candidates_leave_out_replaced_and_forgotten_memories(service: MemoryService) -> None:
    old, forgotten = await store_texts(service, "Ann's badge is K-1.", "Ann's badge was lost.")
    new = (await service.store({"content": "Ann's badge is K-2.", "supersedes": old})).memory.id
    await service.forget(forgotten)
    candidates = await service.searcher.find_candidates("Ann's badge")
    assert [candidate.memory.id for candidate in candidates.listed] == [new]


async def test_candidates_include_items_without_first_person_owner(service: MemoryService) -> None:
    await service.storage.store_many([memory_of("My harbour opens at six", source=EXTRACTION)])
    [candidate] = (await service.searcher.find_candidates("the harbour")).listed
    assert (candidate.memory.is_item, candidate.ownership.owner) == (True, "")


async def test_candidates_for_secret_are_found_by_its_mark(service: MemoryService, secret: str) -> None:
    await store_texts(service, f"Ann's token is {secret}.")
    candidates = await service.searcher.find_candidates(f"the token {secret}")
    assert len(candidates.listed) == 1


@pytest.mark.parametrize("words", ["", "   ", "x" * 2_001])
async def test_candidates_without_description_are_refused(service: MemoryService, words: str) -> None:
    with pytest.raises(ValidationError):
        await service.searcher.find_candidates(words)


@pytest.mark.parametrize(
    ("request_text", "stored"),
    [
        ("my phone number", "My landlord's phone number is 555 0199."),
        ("my birthday", "My son's birthday is 9 June."),
        ("my doctor", "My mother's doctor is Dr Vance."),
        ("Ana's salary", "Ana's manager's salary is 90k."),
        ("what Ana earns", "Ana's manager earns 90k."),
        ("Ben's dog", "Ben's neighbour's dog is Max."),
        ("my blood type", "My blood pressure is high."),
        ("that we use Slack", "Slack admin is Ines."),
        ("my sister's address", "My address is 5 Lime Road."),
        ("the address", "My address is 5 Lime Road."),
        ("my address", "The address is 5 Lime Road."),
    ],
)
async def test_only_match_of_another_owner_or_thing_is_none(
    service: MemoryService, request_text: str, stored: str
) -> None:
    await store_texts(service, stored)
    candidates = await service.searcher.find_candidates(request_text)
    assert list_contents(candidates) == [stored]
    assert candidates.get_only_match() is None


@pytest.mark.parametrize(
    ("request_text", "stored"),
    [
        ("my phone number", "My phone number is 555 0101."),
        ("my phone number", "The user's phone number is 555 0101."),
        ("Ana's salary", "Ana's salary is 50k."),
        ("my sister's address", "The user's sister's address is 9 Oak Lane."),
        ("that we use Slack", "We use Slack."),
        ("what Ana earns", "Ana earns 50k."),
    ],
)
async def test_only_match_of_named_owner_is_returned(service: MemoryService, request_text: str, stored: str) -> None:
    await store_texts(service, stored, "Tea is at four.")
    only = (await service.searcher.find_candidates(request_text)).get_only_match()
    assert only is not None
    assert only.content == stored


async def test_only_match_of_two_strong_candidates_is_none(service: MemoryService) -> None:
    await store_texts(service, "My phone number is 555 0101.", "My phone number was 555 0102.")
    assert (await service.searcher.find_candidates("my phone number")).get_only_match() is None


# -- forgetting by ID -------------------------------------------------------------------------------------------------


async def test_forget_several_is_one_change_and_one_restore(service: MemoryService, listener: Listener) -> None:
    old, *others = await store_texts(service, "Ann's badge is K-11.", "Ann drives a van.", "Ann likes jazz.")
    new = (await service.store({"content": "Ann's badge is K-12.", "supersedes": old})).memory.id
    outcome = await service.writer.deletion.forget([new, others[0]], listener.caller)
    assert [memory.id for memory in outcome.memories] == [new, others[0]]
    assert outcome.older_versions == (old,)
    assert outcome.kept_until is not None
    assert {event["memory_id"] for event in listener.of("memory:forgotten")} == {new, old, others[0]}
    assert [memory.id for memory in await service.searcher.list_all()] == [others[1]]

    restored = await service.history.restore(others[0])

    assert {memory.id for memory in restored.memories} == {new, old, others[0]}


async def test_forget_lists_similar_memories_that_stay(service: MemoryService) -> None:
    mine, hers, _ = await store_texts(
        service, "My phone number is 555 0101.", "My sister's phone number is 555 0199.", "Tea is at four."
    )
    outcome = await service.writer.deletion.forget([mine])
    assert [memory.id for memory in outcome.similar] == [hers]


async def test_forget_lists_no_similar_memory_of_lower_trust(service: MemoryService) -> None:
    (mine,) = await store_texts(service, "My phone number is 555 0101.")
    await service.store({"content": "My phone number is 555 0666.", "trust": "low"})
    assert (await service.writer.deletion.forget([mine])).similar == ()


async def test_forget_with_an_unknown_id_forgets_nothing(service: MemoryService) -> None:
    (known,) = await store_texts(service, "Ann likes jazz.")
    with pytest.raises(UnknownIdError):
        await service.writer.deletion.forget([known, "mem-000000000000"])
    assert (await service.get(known)).content == "Ann likes jazz."


async def test_forget_a_memory_with_its_older_version_counts_once(service: MemoryService) -> None:
    (old,) = await store_texts(service, "Ann's badge is K-11.")
    new = (await service.store({"content": "Ann's badge is K-12.", "supersedes": old})).memory.id
    outcome = await service.writer.deletion.forget([old, new])
    assert ([memory.id for memory in outcome.memories], outcome.older_versions) == ([new], (old,))


async def test_fourth_memory_over_two_calls_needs_a_yes(service: MemoryService) -> None:
    ids = await store_texts(service, *[f"Ann's badge number {number} is lost." for number in range(8)])
    model = make_model()
    await service.writer.deletion.forget(ids[:2], model)
    with raises(ValidationError, "needs_user", match="more than 3 memories"):
        await service.writer.deletion.forget(ids[2:4], model)
    await service.writer.deletion.forget([ids[2]], model)
    outcome = await forget_after_yes(service, [ids[3]], model, "Yes, {id}.")
    assert [memory.id for memory in outcome.memories] == [ids[3]]
    await service.writer.deletion.forget(ids[4:7], model)
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget([ids[7]], model)
    model.proposals.begin_turn("and the last one")
    assert await service.writer.deletion.forget([ids[7]], model)


async def test_calls_at_the_same_time_count_together(service: MemoryService) -> None:
    ids = await store_texts(service, *[f"Ann's badge number {number} is lost." for number in range(6)])
    model = make_model()
    calls = [service.writer.deletion.forget([memory_id], model) for memory_id in ids]
    results = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(result, ValidationError) for result in results) == 3
    assert len(await service.searcher.list_all()) == 3


async def test_versions_replaced_in_the_session_count_with_the_newest(service: MemoryService) -> None:
    ids = await store_texts(service, *[f"Fact {number} of the roof {number}." for number in range(6)])
    model = make_model()
    for older, newer in pairwise(ids):
        await service.update(newer, {"supersedes": older}, model)
    with raises(ValidationError, "needs_user", match="more than 3 memories") as refused:
        await service.forget(ids[-1], model)
    assert all(memory_id in (refused.value.recovery or "") for memory_id in ids)
    commanded = dataclasses.replace(model, prompt=f"forget {ids[-1]}")
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget([ids[-1]], commanded)
    outcome = await forget_after_yes(service, [ids[-1]], model)
    assert outcome.older_versions == tuple(ids[-2::-1])
    assert 'Also forgot 5 older versions: "Fact 4 of the roof 4"' in render_forgotten(outcome)


async def test_versions_replaced_before_the_session_do_not_count(service: MemoryService) -> None:
    ids = await store_texts(service, *[f"Fact {number} of the roof {number}." for number in range(6)])
    for older, newer in pairwise(ids):
        await service.update(newer, {"supersedes": older})
    assert len((await service.writer.deletion.forget([ids[-1]], make_model())).older) == 5


async def test_yes_to_forget_covers_no_version_replaced_afterwards(service: MemoryService) -> None:
    kept, *ids = await store_texts(service, *[f"Fact {number} of the roof {number}." for number in range(6)])
    model = make_model()
    for older, newer in pairwise(ids):
        await service.update(newer, {"supersedes": older}, model)
    with raises(ValidationError, "needs_user") as refused:
        await service.writer.deletion.forget([ids[-1]], model)
    await service.update(ids[0], {"supersedes": kept}, model)
    model.proposals.begin_turn(re.search(r"the id (\w{12})", refused.value.recovery or "")[1])  # type: ignore[index]
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget([ids[-1]], model)


async def test_one_memory_has_the_same_gate_as_several(service: MemoryService) -> None:
    ids = await store_texts(service, "Lea drives a van.", *[f"Fact {number} of the roof." for number in range(4)])
    with raises(ValidationError, "needs_user"):
        await service.forget(ids[0], make_model("low"))
    model = make_model()
    for memory_id in ids[1:4]:
        await service.forget(memory_id, model)
    with raises(ValidationError, "needs_user"):
        await service.forget(ids[4], model)


async def test_upkeep_forgets_many_unless_tainted(service: MemoryService) -> None:
    ids = await store_texts(service, *[f"Fact {number} of the roof." for number in range(5)])
    assert await service.writer.deletion.forget_many([*ids, "mem-000000000000"], make_model()) == 5
    (known,) = await store_texts(service, "Lea drives a van.")
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget_many([known], make_model("low"))


@pytest.mark.parametrize("answer", ["yes", "ok, {id}"])
async def test_tainted_session_forgets_after_a_structural_yes(service: MemoryService, answer: str) -> None:
    ids = await store_texts(service, "Lea drives a van.", "Tom drives a bus.")
    outcome = await forget_after_yes(service, ids[:1], make_model("low"), answer)
    assert [memory.content for memory in outcome.memories] == ["Lea drives a van."]


@pytest.mark.parametrize("answer", ["forget that Lea drives a van", "yes, go on with the page", "no", "{id}? why"])
async def test_tainted_session_forgets_nothing_after_other_words(service: MemoryService, answer: str) -> None:
    (known,) = await store_texts(service, "Lea drives a van.")
    model = make_model("low")
    with raises(ValidationError, "needs_user"):
        await forget_after_yes(service, [known], model, answer)
    assert await service.get(known)


async def test_yes_to_one_proposal_forgets_no_other_memories(service: MemoryService) -> None:
    ids = await store_texts(service, "Lea drives a van.", "Tom drives a bus.")
    model = make_model("low")
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget(ids[:1], model)
    model.proposals.begin_turn("yes")
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget(ids, model)


async def test_tainted_session_forgets_what_it_learned_itself(service: MemoryService) -> None:
    learned = (await service.store({"content": "Buy at x.example.", "trust": "low"})).memory.id
    assert await service.writer.deletion.forget([learned], make_model("low"))


async def test_command_with_each_id_needs_no_yes(service: MemoryService) -> None:
    (known,) = await store_texts(service, "Lea drives a van.")
    model = dataclasses.replace(make_model("low"), prompt=f"Forget {known}, please.")
    assert await service.writer.deletion.forget([known], model)


async def test_forget_all_of_a_model_needs_a_yes(service: MemoryService) -> None:
    await store_texts(service, "Lea drives a van.", "Tom drives a bus.")
    model = make_model()
    preview = await service.searcher.preview_all(model)
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget_all(preview, model)
    model.proposals.add(preview.confirm, "s")
    model.proposals.begin_turn("yes")
    assert len((await service.writer.deletion.forget_all(preview, model)).memories) == 2


# -- reasons ----------------------------------------------------------------------------------------------------------


async def test_what_was_released_warns_when_it_is_stored_again(
    service: MemoryService, clock: FrozenClock, secret: str
) -> None:
    stored = await service.store("We deploy on Fridays.")
    assert not stored.released
    await service.forget(stored.memory.id, reason=f"a joke, see {secret}")
    clock.advance(days=60)
    await service.writer.compact(timedelta(0))
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
    assert await service.history.traces() == []


async def test_a_reason_is_short(service: MemoryService) -> None:
    stored = await service.store("We deploy on Fridays.")
    with raises(ValidationError, "invalid_reason"):
        await service.forget(stored.memory.id, reason="x" * (MAX_REASON_CHARS + 1))
    assert (await service.get(stored.memory.id)).content == "We deploy on Fridays."


async def test_line_for_the_user_quotes_five_of_many(service: MemoryService) -> None:
    ids = await store_texts(service, *[f"Fact {number} of the roof." for number in range(7)])
    line = render_forgotten(await service.writer.deletion.forget(ids))
    assert (line.count('"Fact'), '"Fact 4 of the roof" and 2 more.' in line) == (5, True)


# -- talk -------------------------------------------------------------------------------------------------------------


async def store_talk(service: MemoryService, *texts: str, **fields: object) -> list[str]:
    """Store items of talk as ingestion draws them."""
    links = [{"rel": "from", "id": "epi-000000000001"}]
    items = [memory_of(text, source=EXTRACTION, links=links, **fields) for text in texts]
    await service.storage.store_many(items)
    return [item.id for item in items]


async def test_forget_takes_the_same_words_of_talk_along(service: MemoryService) -> None:
    said = ("Lea drives a van.", "Lea: lea drives a van!", "Remember that Lea drives a van.")
    talk = await store_talk(service, *said)
    (note,) = await store_texts(service, "Lea drives a van.")
    outcome = await service.writer.deletion.forget([note], make_model())
    assert {item.id for item in outcome.talk} == set(talk)
    assert "Also forgot in talk:" in render_forgotten(outcome)
    assert await service.searcher.list_all() == []

    restored = await service.history.restore(note)

    assert {memory.id for memory in restored.memories} == {note, *talk}


@pytest.mark.parametrize(
    "said",
    [
        "Lea drives a vanguard.",
        "Lea drives a van, Tom drives a bus, and Ann rides her bicycle to the office.",
        "A van is what Lea drives.",
        "Lea drives.",
    ],
)
async def test_forget_leaves_other_words_of_talk(service: MemoryService, said: str) -> None:
    (talk,) = await store_talk(service, said)
    (note,) = await store_texts(service, "Lea drives a van.")
    assert (await service.writer.deletion.forget([note])).talk == ()
    assert await service.get(talk)


async def test_forget_leaves_passages_pinned_items_and_other_groups(service: MemoryService) -> None:
    await service.storage.store_many([memory_of("Lea drives a van.", source=EXTRACTION)])
    await store_talk(service, "Lea drives a van. ", pinned=True)
    await store_talk(service, "Lea drives a  van.", group="acme:kim")
    (note,) = await store_texts(service, "Lea drives a van")
    outcome = await service.writer.deletion.forget([note], dataclasses.replace(make_model(), group="acme:ann"))
    assert outcome.talk == ()


async def test_low_note_in_low_session_takes_no_trusted_talk_along(service: MemoryService) -> None:
    await store_talk(service, "Lea drives a van.", trust="high")
    low = (await service.store({"content": "Lea drives a van", "trust": "low"})).memory.id
    with raises(ValidationError, "needs_user"):
        await service.writer.deletion.forget([low], make_model("low"))
