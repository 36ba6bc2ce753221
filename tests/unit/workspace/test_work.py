"""The loop of a worker: claims, finishes, fails and releases steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_memory.errors import ValidationError
from agent_memory.workspace import Toolset

if TYPE_CHECKING:
    from agent_memory.workspace import Workspace


def begin(book: Workspace) -> None:
    """Finish the first phase with two chapters."""
    for step in book.work("librarian"):
        for number in (1, 2):
            step.save("chapters", {"number": number, "title": f"Chapter {number}"})


def list_statuses(book: Workspace, agent: str) -> list[str]:
    return [step.status for step in book.steps.all() if step.agent == agent]


def test_work_finishes_each_step_of_an_agent(book: Workspace) -> None:
    begin(book)
    for step in book.work("analyst"):
        step.update({"summary": f"About {step.read(['title'])['title']}."})
    assert list_statuses(book, "analyst") == ["done", "done"]
    assert [row["summary"] for row in book.tables.many("chapters").rows] == ["About Chapter 1.", "About Chapter 2."]
    assert list_statuses(book, "writer") == ["ready", "waiting"]


def test_work_of_all_agents_follows_the_phases(book: Workspace) -> None:
    begin(book)
    agents = []
    for step in book.work():
        agents.append(step.claim.agent)
        if step.claim.agent == "analyst":
            step.update({"summary": "short"})
    assert agents == ["analyst", "analyst", *["writer", "editor"] * 2, "binder"]


def test_a_failed_step_is_tried_again_while_retries_are_left(book: Workspace) -> None:
    begin(book)
    left = [step.fail("no idea") for step in book.work("analyst")]
    assert sorted(left) == [0, 0, 1, 1]
    assert list_statuses(book, "analyst") == ["failed", "failed"]


def test_a_step_whose_body_raises_is_released(book: Workspace) -> None:
    begin(book)

    def break_down() -> None:
        for step in book.work("analyst"):
            step.update({"summary": "lost"})
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        break_down()
    assert list_statuses(book, "analyst") == ["ready", "ready"]
    assert [row["summary"] for row in book.tables.many("chapters").rows] == [None, None]


def test_a_step_that_is_left_or_not_produced_is_released(book: Workspace) -> None:
    begin(book)
    for _ in book.work("analyst"):
        break
    assert list_statuses(book, "analyst") == ["ready", "ready"]
    with pytest.raises(ValidationError, match="must produce summary"):
        list(book.work("analyst"))
    assert list_statuses(book, "analyst") == ["ready", "ready"]


def test_work_of_an_unknown_agent_is_refused(book: Workspace) -> None:
    with pytest.raises(ValidationError, match="there are librarian, analyst, writer, editor, binder"):
        next(book.work("analist"))
    with pytest.raises(ValidationError, match="No step is the work of 'analist'"):
        Toolset(book, "worker-1").call("claim_step", {"agent": "analist"})
