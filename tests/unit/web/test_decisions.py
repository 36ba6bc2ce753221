"""Conflicts, notes and proposals are decided by a form, and a decision can be undone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from agent_memory.memory.caller import ProposedAct, proposal_id
from agent_memory.memory.inbox_access import opened_inbox

if TYPE_CHECKING:
    from tests.unit.web.conftest import PageClient

NOTE = "The varnish needs three days between coats."


async def store_conflict(page: PageClient, name: str = "harbour") -> tuple[str, str]:
    """Store two memories that conflict; return the IDs of the newer and the older."""
    older = await page.store(f"The {name} API allows 60 requests a minute.")
    newer = await page.store(f"The {name} API allows 90 requests a minute.")
    await (await page.service()).writer.finder.compare_all()
    return newer, older


async def hold_note(page: PageClient, text: str = NOTE) -> str:
    """Let a note wait; return its ID."""
    async with opened_inbox(await page.service()) as inbox:
        return (await inbox.hold_store({"content": text, "source": {"kind": "user"}}, page.session.caller)).ids[0]


async def hold_forget(page: PageClient, memory_id: str) -> str:
    """Let a proposal to forget wait; return its ID."""
    act = ProposedAct(proposal_id("test", memory_id), "forget", "Forget this.", memory_ids=(memory_id,))
    async with opened_inbox(await page.service()) as inbox:
        await inbox.hold_act(act, page.session.caller)
        return (await inbox.waiting())[-1].id


def get_undo(html: str) -> list[str]:
    """Return the numbers in the undo form of the notice."""
    notice = html.partition('class="notice"')[2].partition("</section>")[0]
    return re.findall(r'name="change" value="(\d+)"', notice)


async def test_decisions_without_anything_is_an_empty_state(page: PageClient) -> None:
    assert "Nothing waits for you" in await page.get("/decisions")
    data = await page.read("/decisions")
    assert (data["conflicts"], data["waiting"]) == ([], [])


async def test_conflict_marks_the_words_that_differ(page: PageClient) -> None:
    newer, older = await store_conflict(page)
    html = await page.get("/decisions")
    assert '<mark class="new">90</mark>' in html
    assert '<mark class="old">60</mark>' in html
    pair = (await page.read("/decisions"))["conflicts"][0]
    assert (pair["newer"]["id"], pair["older"]["id"]) == (newer, older)


@pytest.mark.parametrize(
    ("verdict", "hidden"), [("newer", "older"), ("older", "newer"), ("both", None), ("different", None)]
)
async def test_decision_settles_the_pair_and_is_undone(page: PageClient, verdict: str, hidden: str | None) -> None:
    newer, older = await store_conflict(page)
    service = await page.service()
    html = await page.post("/decisions/pair", newer=newer, older=older, verdict=verdict)
    assert await service.suspects() == []
    replaced = await service.storage.replaced_by([newer, older])
    assert [*replaced] == ([] if hidden is None else [{"newer": newer, "older": older}[hidden]])
    await page.post("/undo", change=get_undo(html), back="/decisions")
    assert [(pair.newer.id, pair.older.id) for pair in await service.suspects()] == [(newer, older)]
    assert await service.storage.replaced_by([newer, older]) == {}


async def test_many_conflicts_follow_as_they_are_decided(page: PageClient) -> None:
    for number in range(23):
        await store_conflict(page, f"service{number}")
    html = await page.get("/decisions")
    assert html.count('data-key="1"') == 20
    assert "3 more follow" in html


async def test_decision_about_no_pair_is_refused(page: PageClient) -> None:
    ids = [await page.store(text) for text in ("Deploy on Tuesdays.", "The heron nests in May.")]
    assert "never listed" in await page.post("/decisions/pair", 400, newer=ids[0], older=ids[1], verdict="newer")
    await page.post("/decisions/pair", 400, newer=ids[0], older=ids[1], verdict="maybe")
    await page.post("/decisions/pair", 400, newer="mem-000000000000", older=ids[1], verdict="newer")


async def test_pair_that_was_decided_elsewhere_is_refused(page: PageClient) -> None:
    newer, older = await store_conflict(page)
    service = await page.service()
    await service.writer.conflicts.decide(older, newer, "replace")
    assert "has replaced" in await page.post("/decisions/pair", 400, newer=newer, older=older, verdict="newer")


async def test_accepted_note_is_stored_with_high_trust(page: PageClient) -> None:
    html = await page.post("/decisions/waiting", id=await hold_note(page), verdict="accept", content=NOTE)
    service = await page.service()
    (memory,) = await service.searcher.list_all()
    assert (memory.content, memory.trust) == (NOTE, "high")
    assert (await page.read("/decisions"))["waiting"] == []
    await page.post("/undo", change=get_undo(html), back="/decisions")
    assert await service.searcher.list_all() == []


async def test_note_is_edited_before_it_is_stored(page: PageClient) -> None:
    await page.post("/decisions/waiting", id=await hold_note(page), verdict="accept", content="Four days.")
    (memory,) = await (await page.service()).searcher.list_all()
    assert (memory.content, memory.source.kind) == ("Four days.", "user")


async def test_note_without_a_text_still_waits(page: PageClient) -> None:
    await page.post("/decisions/waiting", 400, id=await hold_note(page), verdict="accept", content=" ")
    assert len((await page.read("/decisions"))["waiting"]) == 1


async def test_rejected_note_is_not_offered_again(page: PageClient) -> None:
    assert "not offered again" in await page.post("/decisions/waiting", id=await hold_note(page), verdict="reject")
    assert await (await page.service()).searcher.list_all() == []
    async with opened_inbox(await page.service()) as inbox:
        assert (await inbox.hold_store({"content": NOTE}, page.session.caller)).ids == []


async def test_proposal_shows_what_it_would_do_and_does_it(page: PageClient) -> None:
    memory_id = await page.store("My sister lives in Trieste.")
    candidate_id = await hold_forget(page, memory_id)
    html = await page.get("/decisions")
    assert "would forget" in html
    assert "Trieste" in html
    html = await page.post("/decisions/waiting", id=candidate_id, verdict="accept")
    service = await page.service()
    assert await service.storage.get(memory_id) is None
    await page.post("/undo", change=get_undo(html), back="/decisions")
    assert await service.get(memory_id)


async def test_rejected_proposal_changes_nothing(page: PageClient) -> None:
    memory_id = await page.store("My sister lives in Trieste.")
    await page.post("/decisions/waiting", id=await hold_forget(page, memory_id), verdict="reject")
    assert await (await page.service()).get(memory_id)
    assert (await page.read("/decisions"))["waiting"] == []


async def test_unknown_note_or_verdict_is_refused(page: PageClient) -> None:
    candidate_id = await hold_note(page)
    await page.post("/decisions/waiting", 404, id="cnd-000000000000", verdict="accept")
    await page.post("/decisions/waiting", 400, id=candidate_id, verdict="maybe")


async def test_read_only_page_shows_decisions_without_forms(page: PageClient, reader: PageClient) -> None:
    newer, older = await store_conflict(page)
    await hold_note(page)
    html = await reader.get("/decisions")
    assert 'method="post"' not in html
    assert NOTE in html
    await reader.post("/decisions/pair", 403, newer=newer, older=older, verdict="newer")


def get_candidate(html: str) -> str:
    """Return the note that the notice offers to let wait again."""
    return html.partition('class="notice"')[2].partition('name="candidate" value="')[2].partition('"')[0]


async def test_rejection_of_a_note_is_undone_and_it_may_be_offered_again(page: PageClient) -> None:
    html = await page.post("/decisions/waiting", id=await hold_note(page), verdict="reject")
    await page.post("/decisions/undo", candidate=get_candidate(html))
    (note,) = (await page.read("/decisions"))["waiting"]
    assert note["content"] == NOTE
    await page.post("/decisions/waiting", id=note["id"], verdict="accept", content=NOTE)
    assert [memory.content for memory in await (await page.service()).searcher.list_all()] == [NOTE]


async def test_rejection_of_a_proposal_is_undone(page: PageClient) -> None:
    memory_id = await page.store("My sister lives in Trieste.")
    html = await page.post("/decisions/waiting", id=await hold_forget(page, memory_id), verdict="reject")
    await page.post("/decisions/undo", candidate=get_candidate(html))
    assert [note["act_ids"] for note in (await page.read("/decisions"))["waiting"]] == [[memory_id]]


async def test_undo_of_an_unknown_rejection_changes_nothing(page: PageClient) -> None:
    await page.post("/decisions/undo", 404, candidate="cnd-000000000000")
    assert (await page.read("/decisions"))["waiting"] == []


async def test_last_act_can_be_undone_from_every_screen(page: PageClient) -> None:
    await page.post("/decisions/waiting", id=await hold_note(page), verdict="reject")
    for path in ("/", "/memories", "/forget", "/why"):
        assert "data-act" in await page.get(path)
    await page.post("/health/backup")
    assert "data-act" not in await page.get("/")
