"""Steps: what can run, what a worker that dies leaves, what failing and judging do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import LeaseError, RowNotFoundError, ValidationError
from agent_memory.workspace import Caller, Workspace
from tests.unit.workspace.conftest import analyse, do, prepare, write

if TYPE_CHECKING:
    from tests.support import FrozenClock


def ready(book: Workspace) -> list[str]:
    return [step.name for step in book.next_steps()]


def test_phases_wait_for_each_other_and_rows_for_those_before(book: Workspace) -> None:
    assert ready(book) == ["prepare/librarian/"]
    prepare(book, 2)
    assert ready(book) == ["analyse/analyst/1", "analyse/analyst/2"]
    analyse(book, 2)
    analyse(book, 1)
    assert ready(book) == ["write/writer/1"]
    do(book, "write/writer/1")
    assert ready(book) == ["write/editor/1"]
    do(book, "write/editor/1")
    write(book, 2)
    assert ready(book) == ["bind/binder/"]
    do(book, "bind/binder/")
    assert ready(book) == []
    assert {step.status for step in book.steps.all()} == {"done"}


def test_a_step_is_claimed_once(book: Workspace) -> None:
    prepare(book, 1)
    assert book.steps.claim("ann") is not None
    assert book.steps.claim("bob") is None
    with pytest.raises(LeaseError, match="is claimed by ann until"):
        book.steps.claim("bob", step="analyse/analyst/1")
    with pytest.raises(LeaseError, match="cannot run: analyse has 1 of 1 steps to do"):
        book.steps.claim("bob", step="write/writer/1")
    with pytest.raises(RowNotFoundError, match="a step is phase/agent/key"):
        book.steps.claim("bob", step="write/writer/9")


def test_what_a_dead_worker_left_is_taken_back(book: Workspace, clock: FrozenClock) -> None:
    prepare(book, 1)
    dead = book.steps.claim("ann", seconds=60)
    assert dead is not None
    ghost = Caller("analyst", claim=dead)
    book.tables.save("terms", {"term": "roof", "definition": "half"}, ghost)
    book.tables.update("chapters", 1, {"title": "half", "summary": "half"}, ghost)
    clock.advance(seconds=61)
    analyse(book, 1)
    assert book.tables.get("terms", "roof")["definition"] == "as in 1"
    assert book.tables.proposals("terms") == []
    chapter = book.tables.get("chapters", 1)
    assert (chapter["title"], chapter["summary"]) == ("Chapter 1", "Summary 1")
    for late in (
        lambda: book.tables.update("chapters", 1, {"title": "late"}, ghost),
        lambda: book.steps.finish(dead),
        lambda: book.steps.renew(dead),
    ):
        with pytest.raises(LeaseError, match="claim"):
            late()


def test_a_step_that_does_not_produce_what_it_must_is_not_done(book: Workspace) -> None:
    prepare(book, 1)
    claim = book.steps.claim("ann")
    assert claim is not None
    with pytest.raises(ValidationError, match="must produce summary of chapters 1"):
        book.steps.finish(claim)
    book.tables.update("chapters", 1, {"summary": "now"}, Caller("analyst", claim=claim))
    assert book.steps.finish(claim) == "analyse"


def test_a_step_fails_as_often_as_it_may(book: Workspace) -> None:
    prepare(book, 1)
    for left in (1, 0):
        claim = book.steps.claim("ann")
        assert claim is not None
        book.tables.update("chapters", 1, {"summary": "bad"}, Caller("analyst", claim=claim))
        assert book.steps.fail(claim, "quality", "too short") == left
        assert book.tables.get("chapters", 1)["summary"] is None
    assert ready(book) == []
    failed = next(step for step in book.steps.all() if step.phase == "analyse")
    assert (failed.status, failed.feedback, failed.waits_for) == ("failed", "too short", "it failed 2 times")
    logged = book.tables.many("retries").rows
    assert [(row["attempt_number"], row["chapter"], row["phase"]) for row in logged] == [(1, 1, 2), (2, 1, 2)]


def test_what_is_given_back_counts_as_no_failure(book: Workspace) -> None:
    prepare(book, 1)
    claim = book.steps.claim("ann")
    assert claim is not None
    book.tables.save("terms", {"term": "roof"}, Caller("analyst", claim=claim))
    book.steps.release(claim)
    assert book.tables.many("terms").rows == []
    (step,) = book.next_steps()
    assert (step.retries_left, step.attempts) == (2, 1)


def test_what_is_judged_wrong_is_taken_back_and_done_again(book: Workspace) -> None:
    prepare(book, 1)
    analyse(book, 1)
    write(book, 1)
    assert book.steps.validate("analyse/analyst/1", "critic") == []
    stale = book.steps.validate("analyse/analyst/1", "critic", ["no facts"])
    assert stale == ["write/writer/1", "write/editor/1"]
    assert book.tables.get("chapters", 1)["summary"] is None
    assert book.tables.get("chapters", 1)["draft"] == "Draft 1"
    (step,) = book.next_steps()
    assert (step.name, step.feedback) == ("analyse/analyst/1", "no facts")


def test_a_claim_that_is_renewed_lasts(book: Workspace, clock: FrozenClock) -> None:
    prepare(book, 1)
    claim = book.steps.claim("ann", seconds=60)
    assert claim is not None
    clock.advance(seconds=50)
    claim = book.steps.renew(claim, seconds=60)
    clock.advance(seconds=50)
    book.tables.update("chapters", 1, {"summary": "now"}, Caller("analyst", claim=claim))
    book.steps.finish(claim)
