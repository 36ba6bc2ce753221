"""Phases without rows, rows that come late, claims of processes that ended, and unique texts that look alike."""

from __future__ import annotations

import subprocess
import sys

import pytest
import sqlalchemy as sa

from agent_memory.errors import ConflictError, LeaseError, ValidationError
from agent_memory.files.processes import ProcessIdentity, get_own_identity
from agent_memory.workspace import Caller, Workspace
from agent_memory.workspace.core import open_folder
from tests.unit.workspace.conftest import analyse, do, prepare, write

_CLAIMS = """
import os, sys
from pathlib import Path
from agent_memory.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]), url=sys.argv[2] or None)
assert workspace.steps.claim("ann", seconds=600) is not None
if sys.argv[3] == "closed":
    workspace.close()
os._exit(1)
"""


def done_with(book: Workspace, chapters: int) -> None:
    """Do all there is to do for so many chapters."""
    prepare(book, chapters)
    for number in range(1, chapters + 1):
        analyse(book, number)
    for number in range(1, chapters + 1):
        write(book, number)
    do(book, "bind/binder/")


def status_of(book: Workspace, name: str) -> tuple[str, str | None]:
    step = next(step for step in book.steps.all() if step.name == name)
    return step.status, step.waits_for


def test_phase_after_a_phase_without_rows_waits(book: Workspace) -> None:
    prepare(book, 0)
    assert book.next_steps() == []
    assert status_of(book, "bind/binder/") == ("waiting", "chapters has no rows yet, so nothing of analyse is done")
    with pytest.raises(LeaseError, match="chapters has no rows yet"):
        book.steps.claim("ann", step="bind/binder/")


def test_done_phase_is_due_again_when_rows_come(book: Workspace) -> None:
    done_with(book, 1)
    assert status_of(book, "bind/binder/") == ("done", None)
    book.tables.save("chapters", {"number": 2})
    assert status_of(book, "bind/binder/")[0] == "waiting"
    assert status_of(book, "analyse/analyst/1") == ("done", None)
    assert [step.name for step in book.next_steps()] == ["analyse/analyst/2"]
    analyse(book, 2)
    write(book, 2)
    assert [step.name for step in book.next_steps()] == ["bind/binder/"]
    do(book, "bind/binder/")
    assert {step.status for step in book.steps.all()} == {"done"}


def test_phase_before_new_rows_stays_done(book: Workspace) -> None:
    done_with(book, 1)
    book.tables.save("chapters", {"number": 2})
    assert status_of(book, "prepare/librarian/") == ("done", None)


def test_rows_of_another_table_reopen_nothing(book: Workspace) -> None:
    done_with(book, 1)
    book.tables.save("terms", {"term": "roof"})
    assert {step.status for step in book.steps.all()} == {"done"}


def test_phase_claimed_when_rows_come_is_due_again(book: Workspace) -> None:
    prepare(book, 1)
    analyse(book, 1)
    write(book, 1)
    claim = book.steps.claim("ann", step="bind/binder/")
    assert claim is not None
    book.tables.save("chapters", {"number": 2})
    assert book.steps.finish(claim) is None
    assert status_of(book, "bind/binder/")[0] == "waiting"


@pytest.mark.skipif(get_own_identity() is None, reason="this system does not say when a process was started")
def test_claim_of_an_ended_process_is_free_at_once(book: Workspace, url: str | None) -> None:
    _claim_in_a_child(book, url, "killed")
    step = book.steps.all()[0]
    assert (step.status, step.left_by, step.owner_ended) == ("ready", "ann", True)
    assert book.steps.claim("bob", step=step.name) is not None
    assert (book.steps.all()[0].status, book.steps.all()[0].owner) == ("claimed", "bob")


def test_claim_of_closed_process_lasts_until_expiry(book: Workspace, url: str | None) -> None:
    _claim_in_a_child(book, url, "closed")
    assert book.steps.all()[0].status == "claimed"
    with pytest.raises(LeaseError, match="is claimed by ann until"):
        book.steps.claim("bob", step="prepare/librarian/")


def test_claim_used_after_its_process_ended_still_writes(book: Workspace, url: str | None) -> None:
    claim = book.steps.claim("ann")
    assert claim is not None
    _name_holder(book, url, ProcessIdentity(_own().machine, _own().pid, "another start"))
    assert book.steps.all()[0].status == "ready"
    book.tables.save("chapters", {"number": 1}, Caller("librarian", claim=claim))
    book.steps.renew(claim)
    assert book.steps.all()[0].status == "claimed"


@pytest.mark.parametrize("holder", ["another machine", "nonsense"])
def test_claim_of_an_unknown_process_lasts_for_its_time(book: Workspace, url: str | None, holder: str) -> None:
    assert book.steps.claim("ann") is not None
    own = _own()
    _name_holder(
        book, url, ProcessIdentity("another boot pid:[1]", own.pid, "1") if holder == "another machine" else None
    )
    assert book.steps.all()[0].status == "claimed"


def _own() -> ProcessIdentity:
    own = get_own_identity()
    if own is None:
        pytest.skip("this system does not say when a process was started")
    return own


def _name_holder(book: Workspace, url: str | None, holder: ProcessIdentity | None) -> None:
    """Write down another process as the one that holds all claims."""
    opened = open_folder(book.folder, url, None)
    meta, text = opened.schema.meta, holder.to_json() if holder is not None else "{]"
    with opened.database.writing() as connection:
        done = connection.execute(sa.update(meta).where(meta.c.key.startswith("holder:")).values(value=text))
        assert done.rowcount == 1
    opened.database.close()


def _claim_in_a_child(book: Workspace, url: str | None, how: str) -> None:
    child = subprocess.run([sys.executable, "-c", _CLAIMS, str(book.folder), url or "", how], check=False, timeout=120)
    assert child.returncode == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [("caf\u00e9", "cafe\u0301"), ("oak", "oak "), ("oak", "\toak\u00a0"), ("elm", "\u200belm"), ("elm", "elm\ufeff")],
)
def test_unique_text_that_looks_alike_is_a_proposal(book: Workspace, first: str, second: str) -> None:
    book.tables.save("terms", {"term": first, "definition": "first"})
    assert book.tables.save("terms", {"term": second, "definition": "second"}).proposal
    assert book.tables.get("terms", second)["definition"] == "first"
    assert book.tables.many("terms", where={"term": second}).total == 1
    book.tables.save("terms", {"term": "another"})
    with pytest.raises(ConflictError, match="has this term already"):
        book.tables.update("terms", "another", {"term": second})


@pytest.mark.parametrize("key", ["", " \t", "\u200b", "\u3164"])
def test_empty_key_is_refused(book: Workspace, key: str) -> None:
    with pytest.raises(ValidationError, match="must hold a character that is seen"):
        book.tables.save("terms", {"term": key})


def test_flags_of_countries_are_different_keys(book: Workspace) -> None:
    flag = "\U0001f3f4\U000e0067\U000e0062{}\U000e007f"
    for country in ("\U000e0065\U000e006e\U000e0067", "\U000e0073\U000e0063\U000e0074"):
        assert not book.tables.save("terms", {"term": flag.format(country)}).proposal


def test_rows_of_an_older_version_that_look_alike_stay(book: Workspace, url: str | None) -> None:
    saved = [book.tables.save("terms", {"term": term, "definition": term}).row_id for term in ("oak", "elm")]
    opened = open_folder(book.folder, url, None)
    terms = opened.schema.declared["terms"]
    with opened.database.writing() as connection:  # as an older version kept it
        connection.execute(sa.update(terms).where(terms.c.id == saved[1]).values(term="oak "))
    opened.database.close()
    again = Workspace.open(book.folder, url=url)
    assert [row["term"] for row in again.tables.many("terms").rows] == ["oak", "oak "]
    assert [again.tables.get("terms", key)["definition"] for key in ("oak", "oak ")] == ["oak", "elm"]
    assert again.tables.save("terms", {"term": " oak", "definition": "new"}).proposal
    assert not again.tables.update("terms", "oak ", {"definition": "elm, too"}).proposal
    prepare(again, 1)
    claim = again.steps.claim("ann", step="analyse/analyst/1")
    assert claim is not None
    caller = Caller("analyst", claim=claim)
    again.tables.update("chapters", 1, {"summary": "A roof."}, caller)
    assert again.tables.save("terms", {"term": "oak", "definition": "of a step"}, caller).proposal
    again.steps.finish(claim)
    assert [row["term"] for row in again.tables.many("terms").rows] == ["oak", "oak "]
    assert len(again.tables.proposals("terms")) == 2
    again.close()
