"""Whence a record comes, and why it has its trust."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.care.provenance import MOST_STEPS, SourceLookup
from agent_memory.errors import UnknownIdError
from agent_memory.models import Source

if TYPE_CHECKING:
    from agent_memory.models import SourceKind, Trust
    from tests.unit.care.conftest import House


@pytest.fixture
def sources(house: House) -> SourceLookup:
    return SourceLookup(house.service, None)


@pytest.mark.parametrize(
    ("kind", "trust", "why"),
    [
        ("user", "high", "a person said or wrote it"),
        ("assistant", "medium", "the model, or a program, wrote it"),
        ("assistant", "low", "the model wrote it, and untrusted text was in the conversation"),
        ("tool", "low", "an untrusted tool returned it"),
        ("import", "low", "it was in a file, and what a file says of itself is not believed"),
        ("extraction", "low", "it was drawn from what had this trust"),
    ],
)
async def test_trust_has_a_reason(
    house: House, sources: SourceLookup, kind: SourceKind, trust: Trust, why: str
) -> None:
    memory = await house.keep("The key is under the mat", source=Source(kind=kind), trust=trust)
    assert (await sources.of(memory.id)).why == why


ACCEPTED = "the model wrote it, and the user said yes to it"


@pytest.mark.parametrize(
    ("origin", "kind", "trust", "why"),
    [
        ("agent after WebFetch", "assistant", "low", "untrusted text was in the conversation: WebFetch"),
        ("agent after", "assistant", "low", "the model wrote it, and untrusted text was in the conversation"),
        ("model via MCP codex", "assistant", "low", "its MCP client has no hooks that report what was typed and read"),
        ("model via MCP codex", "assistant", "medium", "the model, or a program, wrote it"),
        ("agent after WebFetch", "user", "high", ACCEPTED),
        ("agent after WebFetch", "assistant", "medium", ACCEPTED),
        ("model", "user", "high", ACCEPTED),
        ("model", "assistant", "medium", "the model, or a program, wrote it"),
        ("typed", "user", "high", "a person said or wrote it"),
    ],
)
async def test_reason_of_trust_fits_origin_and_trust(
    house: House, sources: SourceLookup, origin: str, kind: SourceKind, trust: Trust, why: str
) -> None:
    memory = await house.keep("The key is under the mat", source=Source(kind=kind), trust=trust, origin=origin)
    reason = (await sources.of(memory.id)).why
    assert reason.endswith(why)
    assert ("untrusted" in reason) == (trust == "low" and "MCP" not in origin)


async def test_the_chain_is_followed_and_ends(house: House, sources: SourceLookup) -> None:
    older = await house.keep("step 0")
    ids = [older.id]
    for number in range(1, MOST_STEPS + 3):
        links = [{"rel": "derived_from", "id": ids[-1]}]
        ids.append((await house.keep(f"step {number}", links=links)).id)
    found = await sources.of(ids[-1])
    assert [step.id for step in found.rests_on] == ids[-2 : -2 - MOST_STEPS : -1]
    assert [step.depth for step in found.rests_on] == [*range(1, MOST_STEPS + 1)]
    assert [step.id for step in (await sources.of(ids[0])).used_by] == [ids[1]]


async def test_what_rests_on_a_stranger_names_the_stranger(house: House, sources: SourceLookup) -> None:
    stranger = await house.keep("Send it to x", trust="low", source=Source(kind="tool"))
    user = await house.keep("Send it to y", trust="high", source=Source(kind="user"))
    links = [{"rel": "derived_from", "id": one.id} for one in (user, stranger)]
    both = await house.keep("Send it", trust="low", links=links)
    assert stranger.id in (await sources.of(both.id)).why


async def test_a_circle_ends(house: House, sources: SourceLookup) -> None:
    one = await house.keep("one", id="mem-000000000001", links=[{"rel": "derived_from", "id": "mem-000000000002"}])
    two = await house.keep("two", id="mem-000000000002", links=[{"rel": "derived_from", "id": "mem-000000000001"}])
    assert [step.id for step in (await sources.of(one.id)).rests_on] == [two.id]


async def test_a_source_that_is_gone_is_named_by_its_id(house: House, sources: SourceLookup) -> None:
    memory = await house.keep("It holds", links=[{"rel": "derived_from", "id": "mem-ffffffffffff"}])
    found = await sources.of(memory.id)
    assert [(step.id, step.state, step.trust) for step in found.rests_on] == [("mem-ffffffffffff", "gone", None)]
    assert found.why == "it was drawn from what is here no longer"


async def test_an_unknown_id_is_an_error(sources: SourceLookup) -> None:
    for one in ("mem-ffffffffffff", "epi-ffffffffffff", ""):
        with pytest.raises(UnknownIdError):
            await sources.of(one)
