"""Ways back under hard conditions: declarations that grew, values that others took meanwhile, files turned links."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from agent_memory.errors import RowNotFoundError, StorageError
from agent_memory.workspace import Caller, Workspace
from agent_memory.workspace.snapshots import snapshot_store
from agent_memory.workspace.snapshots.snapshot_files import build_manifest
from tests.unit.workspace.conftest import BOOK, analyse, do, prepare, sqlite_only, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support import FrozenClock

    Reopen = Callable[[Workspace, str], Workspace]


@pytest.fixture
def reopened(clock: FrozenClock, url: str | None) -> Reopen:
    """Return what opens a workspace with another declaration."""

    def reopen(book: Workspace, text: str) -> Workspace:
        book.close()
        (book.folder / "workspace.yaml").write_text(text)
        return Workspace.open(book.folder, url=url, clock=clock)

    return reopen


def test_a_column_that_came_after_a_snapshot_keeps_its_default(book: Workspace, reopened: Reopen) -> None:
    prepare(book, 1)
    book.tables.save("tactics", {"name": "wait"})
    book.snapshots.make("early")
    grown = BOOK.replace(
        "      kind: {type",
        "      tone: {type: text, required: true, default: calm}\n      weight: {type: integer, default: 3}\n"
        "      spare: text\n      kind: {type",
    )
    book = reopened(book, grown)
    assert book.snapshots.compare("early").rows == []
    book.tables.update("tactics", 1, {"tone": "loud", "weight": 5, "spare": "x"})
    do(
        book,
        "analyse/analyst/1",
        lambda workspace, me: (
            workspace.tables.save("tactics", {"name": "more"}, me),
            workspace.tables.update("chapters", 1, {"summary": "s"}, me),
        ),
    )
    assert book.resume_from_snapshot("early").rows > 0
    (row,) = book.tables.many("tactics", columns=["tone", "weight", "spare"]).rows
    assert row == {"tone": "calm", "weight": 3, "spare": None}
    assert book.snapshots.compare("early").rows == []
    book.snapshots.prune(["early"])
    book.tables.update("tactics", 1, {"tone": "loud", "weight": 5})
    book.resume_from_snapshot("early")
    assert book.tables.get("tactics", 1)["weight"] == 3
    book.close()


def test_what_a_step_wrote_into_a_new_column_goes_back_to_its_default(book: Workspace, reopened: Reopen) -> None:
    prepare(book, 1)
    book = reopened(
        book,
        BOOK.replace("      score: real", "      tone: {type: text, required: true, default: calm}\n      score: real"),
    )
    claim = book.steps.claim("ann", step="analyse/analyst/1")
    assert claim is not None
    book.tables.update("chapters", 1, {"tone": "loud"}, Caller("analyst", claim=claim))
    book.steps.release(claim)
    assert book.tables.get("chapters", 1)["tone"] == "calm"
    book.close()


def test_a_singleton_that_came_after_a_snapshot_is_there_still(book: Workspace, reopened: Reopen) -> None:
    book.snapshots.make("early")
    plan = "  plan:\n    kind: singleton\n    columns: {goal: {type: text, default: none yet}, note: text}\nlogs:"
    book = reopened(book, BOOK.replace("logs:", plan))
    book.tables.update("plan", None, {"goal": "a book", "note": "x"})
    book.resume_from_snapshot("early")
    assert book.tables.get("plan", columns=["goal", "note"]) == {"goal": "none yet", "note": None}
    book.tables.update("plan", None, {"goal": "two books"})
    assert book.tables.get("plan")["goal"] == "two books"
    book.close()


def test_a_unique_value_that_another_row_took_meanwhile_stops_no_step(book: Workspace) -> None:
    prepare(book, 1)
    book.tables.save("terms", {"term": "roof", "definition": "old"})
    claim = book.steps.claim("ann", step="analyse/analyst/1")
    assert claim is not None
    book.tables.update("terms", "roof", {"term": "wall"}, Caller("analyst", claim=claim))
    book.tables.save("terms", {"term": "roof", "definition": "new"})
    assert book.tables.save("terms", {"term": "wall", "definition": "kept"}).proposal
    book.steps.release(claim)
    terms = {row["term"]: row["definition"] for row in book.tables.many("terms").rows}
    assert terms == {"roof": "old", "wall": "kept"}
    assert [row["definition"] for row in book.tables.proposals("terms")] == ["new"]
    assert book.steps.claim("bob", step="analyse/analyst/1") is not None


def test_swapped_unique_values_come_back(book: Workspace) -> None:
    for term in ("a", "b"):
        book.tables.save("terms", {"term": term, "definition": term.upper()})
    book.snapshots.make("then")
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        book.tables.update("terms", old, {"term": new})
    kept = book.resume_from_snapshot("then").kept_as
    assert {row["term"]: row["definition"] for row in book.tables.many("terms").rows} == {"a": "A", "b": "B"}
    book.resume_from_snapshot(kept)
    assert {row["term"]: row["definition"] for row in book.tables.many("terms").rows} == {"a": "B", "b": "A"}


def test_a_step_changes_the_row_it_added_itself(book: Workspace) -> None:
    """Whoever finishes first: so that the same work leaves the same rows."""
    prepare(book, 1)
    analyse(book, 1)
    claim = book.steps.claim("ann", step="write/writer/1")
    assert claim is not None
    me = Caller("writer", claim=claim)
    book.tables.save("terms", {"term": "beam", "definition": "mine"}, me)
    book.tables.save("terms", {"term": "beam", "definition": "a person's"})
    book.tables.update("terms", "beam", {"definition": "mine, better"}, me)
    assert book.tables.get("terms", "beam", me)["definition"] == "mine, better"
    assert book.tables.get("terms", "beam")["definition"] == "a person's"


def test_phases_may_work_on_other_rows_than_before(book: Workspace, reopened: Reopen) -> None:
    book.tables.save("chapters", {"number": 1})
    do(book, "prepare/librarian/", lambda workspace, me: workspace.tables.save("terms", {"term": "roof"}, me))
    changed = BOOK.replace("name: prepare, agents", "name: prepare, over: chapters, agents")
    changed = changed.replace(
        "name: analyse, over: chapters, reads: own, agents: [{agent: analyst, produces: [summary]}]",
        "name: analyse, agents: [analyst]",
    )
    book = reopened(book, changed)
    do(book, "prepare/librarian/1", lambda workspace, me: workspace.tables.save("terms", {"term": "roof"}, me))
    do(book, "analyse/analyst/", lambda workspace, me: workspace.tables.save("terms", {"term": "roof"}, me))
    assert len(book.tables.many("terms").rows) == 1
    assert len(book.tables.proposals("terms")) == 2
    book.close()


def test_what_was_pruned_is_still_known_as_a_steps(book: Workspace) -> None:
    prepare(book, 1)
    analyse(book, 1)
    book.snapshots.make("first")
    do(
        book,
        "write/writer/1",
        lambda workspace, me: [
            workspace.tables.update("chapters", 1, {"draft": text}, me) for text in ("one", "two", "three")
        ],
    )
    book.tables.update("chapters", 1, {"draft": "by hand"})
    book.snapshots.make("second")
    book.resume_from_chapter(1, "write")
    assert book.tables.get("chapters", 1)["draft"] == "by hand"
    book.snapshots.make("third")
    book.resume_from_snapshot("first")
    book.resume_from_snapshot("third")
    book.snapshots.prune(["first", "third"])
    assert book.tables.get("chapters", 1)["draft"] == "by hand"
    assert book.snapshots.compare("third").rows == []


def test_a_value_that_came_back_is_taken_back_after_pruning(book: Workspace) -> None:
    prepare(book, 1)
    analyse(book, 1)
    book.snapshots.make("first")
    claim = book.steps.claim("ann", step="write/writer/1")
    assert claim is not None
    me = Caller("writer", claim=claim)
    book.tables.update("chapters", 1, {"draft": "one"}, me)
    book.snapshots.make("middle")
    book.tables.update("chapters", 1, {"draft": "two"}, me)
    book.steps.finish(claim)
    book.resume_from_snapshot("middle")
    book.snapshots.make("last")
    book.snapshots.prune(["first", "last"])
    assert book.tables.get("chapters", 1)["draft"] == "one"
    again = book.steps.claim("bob", step="write/writer/1")
    assert again is not None
    assert book.tables.get("chapters", 1)["draft"] is None


def test_a_snapshot_that_is_being_restored_is_kept(
    book: Workspace, url: str | None, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = book.folder / "prompts"
    prompts.mkdir()
    (prompts / "a.md").write_text("one")
    book.snapshots.make("first")
    (prompts / "a.md").write_text("two")

    def die(*_: object) -> list[str]:
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(snapshot_store, "restore_files", die)
        with pytest.raises(KeyboardInterrupt):
            book.resume_from_snapshot("first")
    book.snapshots.prune([])
    book.close()
    with_files = Workspace.open(book.folder, url=url, clock=clock)
    assert (prompts / "a.md").read_text() == "one"
    with_files.close()


def test_what_a_snapshot_needs_stays_while_another_process_prunes(
    book: Workspace, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = book.folder / "prompts"
    prompts.mkdir()
    (prompts / "a.md").write_text("one")
    other = Workspace.open(book.folder, url=url)
    calls = []

    def pruned_after(*how: Any) -> dict[str, str]:
        manifest = build_manifest(*how)
        if not calls:
            calls.append(1)
            other.snapshots.prune([])
        return manifest

    monkeypatch.setattr(snapshot_store, "build_manifest", pruned_after)
    book.snapshots.make("first")
    assert book.snapshots.verify("first") == []
    other.close()


def test_nothing_is_written_through_a_link(book: Workspace, tmp_path: Path) -> None:
    prompts, outside = book.folder / "prompts", tmp_path / "outside"
    prompts.mkdir()
    (prompts / "a.md").write_text("mine")
    book.tables.save("tactics", {"name": "then"})
    book.snapshots.make("first")
    book.tables.update("tactics", 1, {"name": "now"})
    (prompts / "a.md").unlink()
    prompts.rmdir()
    outside.mkdir()
    (outside / "a.md").write_text("theirs")
    prompts.symlink_to(outside)
    with pytest.raises(StorageError, match="link"):
        book.resume_from_snapshot("first")
    assert (outside / "a.md").read_text() == "theirs"
    assert book.tables.get("tactics", 1)["name"] == "now"


def test_a_folder_where_a_file_was_is_told_before_anything_is_changed(book: Workspace) -> None:
    prompts = book.folder / "prompts"
    prompts.mkdir()
    (prompts / "a.md").write_text("mine")
    book.tables.save("tactics", {"name": "then"})
    book.snapshots.make("first")
    book.tables.update("tactics", 1, {"name": "now"})
    (prompts / "a.md").unlink()
    (prompts / "a.md").mkdir()
    with pytest.raises(StorageError, match=r"prompts/a\.md"):
        book.resume_from_snapshot("first")
    assert book.tables.get("tactics", 1)["name"] == "now"
    (prompts / "a.md").rmdir()
    assert book.resume_from_snapshot("first").files == ["prompts/a.md"]


def test_the_declaration_is_no_file_of_a_snapshot(
    book: Workspace, url: str | None, clock: FrozenClock, reopened: Reopen
) -> None:
    everything = BOOK.replace("prompts/*.md", "'**/*'")
    book = reopened(book, everything)
    (book.folder / "notes.md").write_text("one")
    book.snapshots.make("first")
    book = reopened(book, everything.replace("      score: real", "      score: real\n      spare: text"))
    book.resume_from_snapshot("first")
    book.close()
    Workspace.open(book.folder, url=url, clock=clock).close()


def test_a_name_that_is_no_text_is_told(book: Workspace) -> None:
    prompts = book.folder / "prompts"
    prompts.mkdir()
    (prompts / "a\udcff.md").write_text("x")
    with pytest.raises(StorageError, match="UTF-8"):
        book.snapshots.make("first")


def test_comparing_keeps_nothing(book: Workspace) -> None:
    prompts = book.folder / "prompts"
    prompts.mkdir()
    book.snapshots.make("first")
    (prompts / "a.md").write_text("x")
    assert book.snapshots.compare("first").files == {"prompts/a.md": "added"}
    assert not list((book.folder / ".workspace").glob("contents/*"))


def test_nothing_is_written_between_what_is_kept_and_what_is_restored(
    book: Workspace, url: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    book.snapshots.make("first")
    other = Workspace.open(book.folder, url=url)
    real = book.snapshots.make

    def late(name: str, **how: object) -> object:
        made = real(name)
        if not other.tables.many("tactics").rows:
            other.tables.save("tactics", {"name": "late"})
        return made

    monkeypatch.setattr(book.snapshots, "make", late)
    kept = book.resume_from_snapshot("first").kept_as
    book.resume_from_snapshot(kept)
    assert [row["name"] for row in book.tables.many("tactics").rows] == ["late"]
    other.close()


def test_a_snapshot_of_an_attempt_that_goes_on_brings_none_of_it_back(book: Workspace) -> None:
    prepare(book, 1)
    claim = book.steps.claim("ann", step="analyse/analyst/1")
    assert claim is not None
    me = Caller("analyst", claim=claim)
    book.tables.save("tactics", {"name": "half"}, me)
    book.tables.update("chapters", 1, {"summary": "half"}, me)
    book.snapshots.make("half")
    book.tables.update("chapters", 1, {"summary": "whole"}, me)
    book.steps.finish(claim)
    write(book, 1)
    book.resume_from_snapshot("half")
    assert book.tables.many("tactics").rows == []
    do(
        book,
        "analyse/analyst/1",
        lambda workspace, now: workspace.tables.update("chapters", 1, {"summary": "new"}, now),
    )
    assert book.tables.many("tactics").rows == []
    with pytest.raises(RowNotFoundError):
        book.tables.get("tactics", 1)


@sqlite_only
def test_a_step_may_add_more_rows_than_a_statement_has_parameters(book: Workspace, url: str | None) -> None:
    """SQLite takes 32,766; here 999, as before 3.32. PostgreSQL, which takes 65,535, knows no such limit to set."""
    prepare(book, 1)

    def limit(connection: Any, _record: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)

    sa.event.listen(sa.engine.Engine, "connect", limit)
    try:
        other = Workspace.open(book.folder, url=url)
        claim = other.steps.claim("ann", step="analyse/analyst/1")
        assert claim is not None
        me = Caller("analyst", claim=claim)
        with other.tables.bulk(me) as add:
            for number in range(1_100):
                add("terms", {"term": f"term {number}"})
        other.tables.update("chapters", 1, {"summary": "s"}, me)
        other.steps.finish(claim)
        assert other.tables.many("terms", limit=1).total == 1_100
        other.steps.validate("analyse/analyst/1", "judge", ["no"])
        assert other.tables.many("terms", limit=1).total == 0
        other.close()
    finally:
        sa.event.remove(sa.engine.Engine, "connect", limit)


def test_what_was_taken_back_does_not_return_with_what_stood_on_it(book: Workspace) -> None:
    prepare(book, 1)
    analyse(book, 1)
    book.tables.update("chapters", 1, {"draft": "a person's"})
    for agent in ("writer", "editor"):
        do(
            book,
            f"write/{agent}/1",
            lambda workspace, me: workspace.tables.update("chapters", 1, {"draft": f"the {me.agent}'s"}, me),
        )
    book.steps.validate("write/writer/1", "judge", ["no"])
    assert book.tables.get("chapters", 1)["draft"] == "the editor's"
    book.steps.validate("write/editor/1", "judge", ["no"])
    assert book.tables.get("chapters", 1)["draft"] == "a person's"


def test_a_proposal_is_shown_when_the_first_is_called_otherwise(book: Workspace) -> None:
    book.tables.save("terms", {"term": "roof", "definition": "first"})
    assert book.tables.save("terms", {"term": "roof", "definition": "second"}).proposal
    book.tables.update("terms", "roof", {"term": "wall"})
    assert {row["term"]: row["definition"] for row in book.tables.many("terms").rows} == {
        "wall": "first",
        "roof": "second",
    }
    assert book.tables.proposals("terms") == []
