"""Snapshots and the ways back: what returns, what stays, and that nothing is cut off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import LeaseError, RowNotFoundError, StorageError, ValidationError
from agent_memory.workspace import Caller, Workspace
from agent_memory.workspace.snapshots import snapshot_store
from tests.unit.workspace.conftest import analyse, do, prepare, sqlite_only, write

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import FrozenClock


def whole(book: Workspace) -> None:
    prepare(book, 2)
    analyse(book, 1)
    analyse(book, 2)
    write(book, 1)
    write(book, 2)
    do(book, "bind/binder/")


def names(book: Workspace) -> list[str]:
    return [snapshot.name for snapshot in book.snapshots.all()]


def test_a_phase_that_ends_makes_its_snapshot(book: Workspace, url: str | None) -> None:
    whole(book)
    assert names(book) == ["PREPARED", "WRITTEN"]
    copied = url is None  # of PostgreSQL there is no file to copy
    assert [bool(snapshot.dump) for snapshot in book.snapshots.all()] == [copied, copied]
    assert [book.snapshots.verify(name) for name in names(book)] == [[], []]


def test_a_snapshot_that_a_dead_worker_left_is_made_before_the_next_step(
    book: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(book.snapshots, "make_due", list)
        prepare(book, 1)
    assert names(book) == []
    assert book.steps.claim("ann") is not None
    assert names(book) == ["PREPARED"]


def test_going_back_and_forth_loses_nothing(book: Workspace) -> None:
    whole(book)
    end = book.canonical()
    book.tables.save("tactics", {"name": "later"})
    later = book.canonical()
    back = book.resume_from_snapshot("PREPARED")
    assert [step.name for step in back.next_steps] == ["analyse/analyst/1", "analyse/analyst/2"]
    assert book.tables.get("chapters", 1)["summary"] is None
    assert book.tables.many("terms").rows == []
    assert book.tables.search("chapters", "summary") == []
    book.resume_from_snapshot(back.kept_as)
    assert book.canonical() == later
    assert len(book.tables.search("chapters", "summary")) == 2
    assert {step.status for step in book.steps.all()} == {"done"}
    book.resume_from_snapshot("PREPARED")
    analyse(book, 2)
    analyse(book, 1)
    write(book, 1)
    write(book, 2)
    do(book, "bind/binder/")
    assert book.canonical() == end
    assert "WRITTEN@2" in names(book)


def test_a_restore_ends_every_claim(book: Workspace) -> None:
    prepare(book, 1)
    claim = book.steps.claim("ann")
    assert claim is not None
    book.resume_from_snapshot("PREPARED")
    with pytest.raises(LeaseError, match="restored after"):
        book.tables.update("chapters", 1, {"summary": "late"}, Caller("analyst", claim=claim))
    again = book.steps.claim("bob")
    assert again is not None
    assert again.fence > claim.fence


def test_one_chapter_is_done_again_from_a_phase(book: Workspace) -> None:
    whole(book)
    before = book.canonical()
    resumed = book.resume_from_chapter(1, "analyse")
    assert [step.name for step in resumed.next_steps] == ["analyse/analyst/1"]
    assert resumed.stale == ["write/writer/2", "write/editor/2"]
    chapters = book.tables.many("chapters").rows
    assert [(row["summary"], row["draft"]) for row in chapters] == [(None, None), ("Summary 2", "Draft 2")]
    assert book.tables.get("terms", "roof")["definition"] == "as in 2"
    analyse(book, 1)
    write(book, 1)
    do(book, "bind/binder/")
    assert book.canonical() == before
    assert book.tables.get("terms", "roof")["definition"] == "as in 1"


def test_what_others_wrote_since_stays(book: Workspace) -> None:
    whole(book)
    book.tables.update("chapters", 1, {"draft": "by hand"})
    book.resume_from_chapter(1, 3)
    assert book.tables.get("chapters", 1)["draft"] == "by hand"


def test_undoing_after_a_restore_knows_whose_value_it_was(book: Workspace) -> None:
    whole(book)
    book.tables.update("chapters", 1, {"draft": "by hand"})
    book.resume_from_snapshot("WRITTEN")
    assert book.tables.get("chapters", 1)["draft"] == "Draft 1"
    book.resume_from_chapter(1, "write")
    assert book.tables.get("chapters", 1)["draft"] is None


@sqlite_only  # refused before a database is asked
@pytest.mark.parametrize(("key", "phase"), [(9, "write"), (1, "nothing"), (1, "bind"), (1, 12)])
def test_a_row_or_phase_that_is_not_there(book: Workspace, key: int, phase: str | int) -> None:
    prepare(book, 1)
    with pytest.raises((RowNotFoundError, ValidationError)):
        book.resume_from_chapter(key, phase)
    assert names(book) == ["PREPARED"]


def test_files_come_back_with_the_rows(book: Workspace) -> None:
    prompts = book.folder / "prompts"
    prompts.mkdir()
    (prompts / "a.md").write_text("one")
    (prompts / "link.md").symlink_to("/etc/hostname")
    book.snapshots.make("first")
    (prompts / "a.md").write_text("two")
    (prompts / "b.md").write_text("new")
    assert book.snapshots.compare("first").files == {"prompts/a.md": "changed", "prompts/b.md": "added"}
    back = book.resume_from_snapshot("first")
    assert back.files == ["prompts/a.md", "prompts/b.md"]
    assert {path.name for path in prompts.iterdir()} == {"a.md", "link.md"}
    assert (prompts / "a.md").read_text() == "one"
    book.resume_from_snapshot(back.kept_as)
    assert (prompts / "b.md").read_text() == "new"


def test_files_that_a_dead_process_left_are_put_back_by_the_next(
    url: str | None, book: Workspace, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = book.folder / "prompts" / "a.md"
    prompt.parent.mkdir()
    prompt.write_text("one")
    book.snapshots.make("first")
    prompt.write_text("two")
    with monkeypatch.context() as dead:
        dead.setattr(snapshot_store, "restore_files", _killed)
        with pytest.raises(KeyboardInterrupt):
            book.resume_from_snapshot("first")
    assert prompt.read_text() == "two"
    Workspace.open(book.folder, url=url, clock=clock).close()
    assert prompt.read_text() == "one"


def _killed(*_: object) -> list[str]:
    raise KeyboardInterrupt


def test_a_damaged_file_is_found_and_nothing_is_changed(book: Workspace) -> None:
    prompt = book.folder / "prompts" / "a.md"
    prompt.parent.mkdir()
    prompt.write_text("one")
    snapshot = book.snapshots.make("first")
    (content,) = (book.folder / ".workspace" / "contents").iterdir()
    content.write_bytes(b"rubbish")
    assert book.snapshots.verify("first") == [f"prompts/a.md: {_damaged(content)}"]
    book.tables.save("tactics", {"name": "ask"})
    with pytest.raises(StorageError, match="is not what was kept"):
        book.resume_from_snapshot(snapshot.name)
    assert book.tables.many("tactics").total == 1


def _damaged(content: Path) -> str:
    return f"A file of a snapshot ({content.name[:12]}…) is not what was kept; the rows of the snapshot are whole."


def test_a_difference_names_rows_by_key_and_values_before_and_after(book: Workspace) -> None:
    prepare(book, 1)
    book.tables.update("chapters", 1, {"title": "Roofs", "sections": ["a"]})
    book.tables.save("terms", {"term": "roof", "chapter": 1})
    (changed, added) = book.snapshots.compare("PREPARED").rows
    assert (changed.table, changed.key, changed.kind) == ("chapters", 1, "changed")
    assert changed.columns == {"title": ("Chapter 1", "Roofs"), "sections": (None, ["a"])}
    assert (added.table, added.key, added.kind) == ("terms", "roof", "added")


def test_what_is_pruned_leaves_what_is_kept_whole(book: Workspace) -> None:
    whole(book)
    end = book.canonical()
    for number in range(5):
        book.tables.update("style", None, {"guide": f"guide {number}" * 200})
    pruned = book.snapshots.prune(["PREPARED", "WRITTEN"])
    assert pruned.changes > 0
    assert names(book) == ["PREPARED", "WRITTEN"]
    book.resume_from_snapshot("WRITTEN")
    do(book, "bind/binder/")
    assert book.canonical() == end
    book.resume_from_chapter(1, "analyse")
    assert book.tables.get("chapters", 1)["summary"] is None
    with pytest.raises(RowNotFoundError):
        book.snapshots.prune(["nothing"])


@sqlite_only  # refused before a database is asked
@pytest.mark.parametrize("name", ["", "../up", "a b", "x" * 101, ".hidden", "PREPARED"])
def test_a_name_that_is_none_or_taken_is_refused(book: Workspace, name: str) -> None:
    prepare(book, 1)
    with pytest.raises(ValidationError):
        book.snapshots.make(name)


def test_two_who_see_that_a_snapshot_is_due_make_one(
    book: Workspace, url: str | None, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dead:
        dead.setattr(book.snapshots, "make_due", list)
        prepare(book)
    other, listed, asked = (
        Workspace.open(book.folder, url=url, clock=clock),
        snapshot_store.build_manifest,
        iter([True]),
    )

    def meanwhile(*arguments: Any) -> dict[str, str]:
        if next(asked, False):
            other.snapshots.make_due()
        return listed(*arguments)

    monkeypatch.setattr(snapshot_store, "build_manifest", meanwhile)
    assert book.snapshots.make_due() == []
    assert [each.name for each in book.snapshots.all()] == ["PREPARED"]
    other.close()
