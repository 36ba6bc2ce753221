"""What does not fit is refused in words, whatever it is; secrets are in no file, whichever way they came."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import AgentMemoryError, LeaseError, NotAllowedError, ValidationError
from agent_memory.workspace import Caller, Claim, Workspace
from tests.rows import check_rows
from tests.unit.workspace.conftest import do, prepare

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HALF = "\ud800"
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


REFUSED: tuple[Callable[[Workspace], object], ...] = (
    lambda book: book.tables.get("chapters", 2**70),
    lambda book: book.tables.search("chapters", "roof " * 2_001),
    lambda book: book.tables.get("terms", HALF),
    lambda book: book.tables.many("terms", where={"term": HALF}),
    lambda book: book.tables.many("chapters", where={"number": 2**70}),
    lambda book: book.tables.many("chapters", where={"number": "1"}),
    lambda book: book.tables.many("chapters", where={"title": 1}),
    lambda book: book.tables.many("chapters", where={"id": "1"}),
    lambda book: book.tables.many("chapters", where={"final": "yes"}),
    lambda book: book.tables.many("chapters", where={"score": math.nan}),
    lambda book: book.tables.many("chapters", where={"score": 10**400}),
    lambda book: book.tables.many("chapters", where={"sections": ["a"]}),
    lambda book: book.tables.many("chapters", offset=2**70),
    lambda book: book.tables.update("chapters", 1, {"score": 10**400}),
    lambda book: book.tables.update("chapters", 1, {"sections": [HALF]}),
    lambda book: book.tables.update("style", None, {"picture": "x" * 5_000}),
    lambda book: book.tables.update("style", None, {"picture": f"{TOKEN}.png"}),
    lambda book: book.tables.update("chapters", 1, ["title"]),
    lambda book: book.tables.save("tactics", {"name": "x"}, Caller(HALF)),
    lambda book: book.tables.save("tactics", {"name": "x"}, Caller("a\0b")),
    lambda book: book.tables.save("tactics", {"name": "x"}, Caller("x", session="x" * 201)),
    lambda book: book.tables.save("tactics", {"name": "x"}, Caller("")),
    lambda book: book.steps.claim(HALF),
    lambda book: book.steps.claim(""),
    lambda book: book.steps.claim_row("x" * 201, "chapters", 1),
    lambda book: book.snapshots.get(HALF),
    lambda book: book.snapshots.make("first", by=HALF),
    lambda book: book.snapshots.make(TOKEN),
    lambda book: book.resume_from_row("terms", HALF, "write"),
)


def test_what_no_column_and_no_name_can_be_is_refused(book: Workspace) -> None:
    prepare(book, 1)
    before = book.canonical()

    @check_rows("ask", REFUSED)
    def check_refused(ask: Callable[[Workspace], object]) -> None:
        with pytest.raises(AgentMemoryError) as caught:
            ask(book)
        assert "refused this" not in caught.value.message
        assert book.canonical() == before

    check_refused()


@pytest.mark.parametrize("seconds", [0, -1, math.nan, math.inf, 1e300, 86_401])
def test_a_claim_lasts_a_day_at_most(book: Workspace, seconds: float) -> None:
    prepare(book, 2)
    claim = book.steps.claim("ann")
    assert claim is not None
    for ask in (
        lambda: book.steps.claim("bob", seconds=seconds),
        lambda: book.steps.renew(claim, seconds=seconds),
        lambda: book.steps.claim_row("bob", "chapters", 2, seconds=seconds),
    ):
        with pytest.raises(ValidationError, match="seconds"):
            ask()
    assert book.steps.claim("bob") is not None


def test_json_is_kept_as_it_is_or_refused(book: Workspace) -> None:
    prepare(book, 1)
    for sections in (["\\u0000"], ["é\\"], ["\u2028"]):
        book.tables.update("chapters", 1, {"sections": sections})
        assert book.tables.get("chapters", 1)["sections"] == sections
    with pytest.raises(ValidationError, match="NUL"):
        book.tables.update("chapters", 1, {"sections": ["\0"]})


def test_json_is_nested_as_deep_as_it_is_kept(url: str | None, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("workspace: w\ntables: {a: {columns: {b: json}}}")
    workspace = Workspace.create(tmp_path / "w", tmp_path / "w.yaml", url=url)
    saved = workspace.tables.save("a", {"b": nested(60)})
    assert workspace.tables.get("a", saved.row_id)["b"] == nested(60)
    for levels in (61, 900, 100_000):
        with pytest.raises(ValidationError):
            workspace.tables.save("a", {"b": nested(levels)})
    workspace.close()


def test_a_claim_that_was_altered_is_none(book: Workspace) -> None:
    prepare(book, 2)
    claim = book.steps.claim("ann", step="analyse/analyst/1")
    other = book.steps.claim("bob", step="analyse/analyst/2")
    assert claim is not None
    assert other is not None
    forged: list[Claim] = [
        replace(claim, step="bind/binder/", phase="bind", agent="binder", table=None, row_id=None, key=None),
        replace(claim, step="analyse/analyst/2"),
        replace(claim, attempt=2),
        replace(claim, owner="bob"),
        replace(claim, phase="write"),
        replace(claim, agent="writer"),
        replace(claim, key=2),
        replace(claim, row_id=other.row_id),
        replace(claim, row_id=other.row_id, key=2),
        replace(claim, fence=claim.fence + 1),
        replace(claim, step=None),
        replace(claim, table="terms"),
    ]
    for each in forged:
        me = Caller("analyst", claim=each)
        with pytest.raises((LeaseError, NotAllowedError)):
            book.tables.save("tactics", {"name": "x"}, me)
        with pytest.raises(LeaseError):
            book.steps.finish(each)
        with pytest.raises(LeaseError):
            book.steps.renew(each)
    assert book.tables.many("tactics").rows == []
    book.tables.update("chapters", 1, {"summary": "s"}, Caller("analyst", claim=claim))
    book.steps.finish(claim)


def test_who_works_under_a_claim_writes_as_its_agent(book: Workspace) -> None:
    prepare(book, 1)
    claim = book.steps.claim("ann", step="analyse/analyst/1")
    assert claim is not None
    book.tables.save("decisions", {"agent_name": "x"}, Caller(claim=claim))
    book.tables.update("chapters", 1, {"summary": "s"}, Caller(claim=claim))
    book.steps.finish(claim)
    claim = book.steps.claim("ann", step="write/writer/1")
    assert claim is not None
    with pytest.raises(NotAllowedError):
        book.tables.save("decisions", {"agent_name": "x"}, Caller(claim=claim))


def test_a_step_of_another_agent_is_not_claimed(book: Workspace) -> None:
    prepare(book, 1)
    with pytest.raises(LeaseError, match="analyst"):
        book.steps.claim("ann", step="analyse/analyst/1", agent="writer")


def test_a_step_gives_no_row_of_its_own_to_another_chapter(book: Workspace) -> None:
    prepare(book, 2)
    claim = book.steps.claim("ann", step="analyse/analyst/1")
    assert claim is not None
    me = Caller("analyst", claim=claim)
    saved = book.tables.save("tactics", {"name": "x"}, me)
    for chapter in (2, None):
        with pytest.raises(NotAllowedError):
            book.tables.update("tactics", saved.row_id, {"chapter": chapter}, me)
    book.tables.update("tactics", saved.row_id, {"chapter": 1, "name": "y"}, me)


def test_a_failure_is_told_whatever_its_message_holds(book: Workspace) -> None:
    prepare(book, 1)
    for message in ("a\0b", HALF, "x" * 2_000_000):
        claim = book.steps.claim("ann", step="analyse/analyst/1")
        if claim is None:
            break
        book.steps.fail(claim, "transient", message)
        book.resume_from_chapter(1, "analyse")
    do(book, "analyse/analyst/1", lambda workspace, me: workspace.tables.update("chapters", 1, {"summary": "s"}, me))
    book.steps.validate("analyse/analyst/1", "judge", ["a\0b" + HALF])


def test_no_way_in_leaves_a_secret_in_a_file(book: Workspace) -> None:
    prepare(book, 1)
    claim = book.steps.claim(f"ann {TOKEN}", step="analyse/analyst/1")
    assert claim is not None
    me = Caller(f"analyst {TOKEN}", session=f"s {TOKEN}", claim=claim)
    book.tables.save("terms", {"term": f"roof {TOKEN}", "definition": f"x {TOKEN}"}, me)
    book.tables.update("chapters", 1, {"sections": [f"x {TOKEN}"], "summary": TOKEN}, me)
    book.steps.renew(claim)
    book.steps.fail(claim, "quality", f"failed with {TOKEN}")
    do(book, "analyse/analyst/1", lambda workspace, me: workspace.tables.update("chapters", 1, {"summary": "s"}, me))
    book.steps.validate("analyse/analyst/1", f"judge {TOKEN}", [f"wrong: {TOKEN}"])
    book.snapshots.make("first", by=f"ann {TOKEN}", dump=True)
    book.steps.release(book.steps.claim_row(TOKEN, "chapters", 1))
    book.resume_from_snapshot("first", by=TOKEN)
    for path in (book.folder / ".workspace").rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes(), path
