"""`agent-memory review`: single keys decide about waiting notes and conflicts, and the last decision can be undone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.cli import inbox
from agent_memory.memory import open_service
from agent_memory.memory.inbox_access import opened_inbox
from agent_memory.models import Candidate, Observation
from agent_memory.settings import ServiceSettings
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.cli.conftest import Run

FIRST, SECOND = "The release is on Fridays.", "Ann likes short reviews."
OLD, NEW = "The daily backup keeps 14 copies.", "The daily backup keeps 30 copies."


@pytest.fixture
def notes(bob: Run, root: Path) -> list[str]:
    """Have two notes wait in bob's inbox; return their IDs."""

    async def hold() -> list[str]:
        service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
        try:
            async with opened_inbox(service) as inbox:
                seen = [Observation(content=text, category="decision", confidence=0.9) for text in (FIRST, SECOND)]
                return (await inbox.hold(seen, as_notes=True)).ids
        finally:
            await service.close()

    return asyncio.run(hold())


def list_contents(bob: Run) -> set[str]:
    return {memory["content"] for memory in document(bob("list", "--json"))["memories"]}


def list_waiting(bob: Run) -> list[str]:
    return [note["content"] for note in document(bob("inbox", "--json"))["waiting"]]


@pytest.mark.usefixtures("notes")
def test_review_keys_keep_and_reject(bob: Run, press: Callable[[str], list[str]]) -> None:
    questions = press("kr ")
    said = bob("review")
    assert said.stdout.index(FIRST) < said.stdout.index(SECOND)
    assert FIRST in list_contents(bob)
    assert SECOND not in list_contents(bob)
    assert list_waiting(bob) == []
    assert "2 decisions made; 0 are left." in said.stderr
    assert all(len(question) <= 80 for question in questions)


@pytest.mark.usefixtures("notes")
@pytest.mark.parametrize("keys", ["kuq", "skuq", "kq", "q", "ss", "x?sq", "sku"])
def test_review_undo_and_quit_leave_what_was_not_decided(
    bob: Run, press: Callable[[str], list[str]], keys: str
) -> None:
    press(keys)
    bob("review")
    is_first_kept = keys == "kq"
    assert list_waiting(bob) == ([SECOND] if is_first_kept else [FIRST, SECOND])
    assert (FIRST in list_contents(bob)) == is_first_kept


@pytest.mark.usefixtures("notes")
def test_review_unknown_key_shows_help(bob: Run, press: Callable[[str], list[str]]) -> None:
    press("?q")
    assert "Press a letter in brackets." in bob("review").stderr


@pytest.mark.usefixtures("notes")
def test_review_edit_stores_the_new_text_at_once(
    bob: Run, press: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def edit_text(_run: Any, _name: str, text: str) -> str:
        return f"{text} Since May.\n"

    monkeypatch.setattr(inbox, "edited_text", edit_text)
    press("eq")
    said = bob("review")
    assert f"{FIRST} Since May." in list_contents(bob)
    assert list_waiting(bob) == [SECOND]
    assert "1 decision made; 1 is left." in said.stderr


def test_review_settles_a_conflict(bob: Run, press: Callable[[str], list[str]]) -> None:
    bob("store", OLD)
    bob("store", NEW)
    questions = press("n ")
    bob("review")
    assert list_contents(bob) & {OLD, NEW} == {NEW}
    assert all(len(question) <= 80 for question in questions)


@pytest.mark.parametrize(
    ("keys", "asked", "made"),
    [("nn ", 3, 2), ("nnu", 3, 1), ("nq", 2, 1), ("nuq", 3, 0), ("nsu", 2, 1), ("sss", 3, 0), ("oo ", 3, 2)],
)
def test_review_skips_pairs_settled_by_earlier_decision(
    bob: Run, press: Callable[[str], list[str]], keys: str, asked: int, made: int
) -> None:
    for text in (OLD, NEW, "The daily backup keeps 45 copies."):
        bob("store", text)
    questions = press(keys)
    said = bob("review").stderr
    left = len(document(bob("conflicts", "--json"))["suspects"])
    assert f"{made} decision{'' if made == 1 else 's'} made; {left} {'is' if left == 1 else 'are'} left." in said
    assert len(questions) == asked


def test_review_help_shows_keys_in_brackets(bob: Run) -> None:
    said = " ".join(bob("review", "--help").stdout.split())
    assert "so that [u]ndo takes it back; [e]dit is carried out at once." in said


@pytest.mark.usefixtures("notes")
def test_review_without_a_terminal_lists_and_ends_with_one(bob: Run, press: Callable[[str], list[str]]) -> None:
    said = bob("review", code=1)
    assert FIRST in said.stdout
    assert SECOND in said.stdout
    press("rr ")
    bob("review")
    assert document(bob("review", "--json", code=0))["waiting"] == []


def test_review_with_nothing_waiting_ends_with_zero(bob: Run) -> None:
    assert "No note or conflict waits." in bob("review", code=0).stderr


def test_review_restores_an_archived_note(bob: Run, root: Path) -> None:
    async def bring() -> None:
        service = open_service("bob", ServiceSettings(storage_root=str(root), embedder="none"))
        try:
            async with opened_inbox(service) as inbox:
                said = datetime(2020, 1, 1, tzinfo=UTC)
                await inbox.take_in([Candidate(agent_id="bob", content=FIRST, timestamp=said, is_note=True)])
        finally:
            await service.close()

    assert "No note is archived." in bob("review", "--archived").stderr
    assert "`agent-memory review --archived" in bob("review", "--restore", "nope", code=3).stderr
    asyncio.run(bring())
    assert list_waiting(bob) == []
    (archived,) = document(bob("review", "--archived", "--json"))["waiting"]
    assert document(bob("review", "--restore", archived["id"], "--json")) == {"restored": [archived["id"]]}
    assert list_waiting(bob) == [FIRST]
