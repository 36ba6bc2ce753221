"""What compaction folds, what it keeps, and what it moves to the rejected file."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from agent_memory.journal import Change, Entry, Journal, JournalUpdate, Records, apply_change
from agent_memory.journal.compaction import FoldRules, fold_entries
from agent_memory.journal.format import add_checksum, decode_entry, encode_entry, encode_line
from agent_memory.journal.salvage import get_rejected_path
from tests.rows import check_rows
from tests.support import FrozenClock, lines_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

OLD = "2026-01-01T00:00:00Z"
YOUNG = "2026-03-01T00:00:00Z"
CUTOFF = "2026-02-01T00:00:00Z"
KINDS = frozenset({"memory"})


def entry(seq: int, *changes: Change, at: str = OLD) -> Entry:
    return decode_entry(encode_entry(seq, at, changes))


def foreign(seq: int, at: str = OLD, **fields: Any) -> Entry:
    return decode_entry(add_checksum(encode_line({"seq": seq, "at": at, **fields})))


def put(record_id: str, **data: Any) -> Change:
    return Change("put", "memory", record_id, data)


def touch(record_id: str, **data: Any) -> Change:
    return Change("touch", "memory", record_id, data)


def lines_after(entries: Sequence[Entry], judge: Callable[[Change], str | None] | None = None) -> list[bytes]:
    young = next((position for position, e in enumerate(entries) if e.at >= CUTOFF), len(entries))
    return fold_entries(entries, young, FoldRules(KINDS, judge)).lines


def folded(*entries: Entry) -> list[Entry]:
    return [decode_entry(line) for line in lines_after(entries)]


def outline(entries: list[Entry]) -> list[tuple[int, list[tuple[str, str]]]]:
    return [(e.seq, [(change.op, change.id) for change in e.changes]) for e in entries]


def test_the_old_past_of_a_record_becomes_one_put_with_the_number_of_its_last_change() -> None:
    result = folded(entry(1, put("a", x=1)), entry(2, Change("patch", "memory", "a", {"y": 2})), entry(3, touch("a")))
    assert outline(result) == [(3, [("put", "a")])]
    assert result[0].changes[0].data == {"x": 1, "y": 2, "access_count": 1, "last_accessed": OLD}
    assert result[0].at == OLD


def test_what_was_deleted_long_ago_leaves_no_trace() -> None:
    assert folded(entry(1, put("a", secret="x")), entry(2, Change("delete", "memory", "a"))) == []


def test_versions_within_the_grace_time_stay_byte_for_byte() -> None:
    young = [entry(1, put("a", x=1), at=YOUNG), entry(2, put("a", x=2), at=YOUNG)]
    young.append(entry(3, Change("delete", "memory", "a"), at=YOUNG))
    assert [e.raw for e in folded(*young)] == [e.raw for e in young]


def test_a_clock_that_jumped_back_lets_no_young_line_be_overtaken() -> None:
    entries = [entry(1, put("a", x=1), at=YOUNG), entry(2, put("a", x=2), at=OLD), entry(3, put("b"), at=OLD)]
    assert [e.raw for e in folded(*entries)] == [e.raw for e in entries]


def test_young_touches_in_a_row_become_one_with_their_sum() -> None:
    result = folded(
        entry(1, put("a"), at=YOUNG),
        entry(2, touch("a"), at=YOUNG),
        entry(3, touch("a", count=4), touch("b"), at=YOUNG),
        entry(4, touch("a"), at="2026-03-02T00:00:00Z"),
    )
    assert outline(result) == [(1, [("put", "a")]), (3, [("touch", "b")]), (4, [("touch", "a")])]
    assert result[-1].changes[0].data == {"count": 6}
    assert result[-1].at == "2026-03-02T00:00:00Z"


def test_touches_are_not_moved_past_another_change_of_their_record() -> None:
    patch = Change("patch", "memory", "a", {"access_count": 0})
    entries = [entry(1, put("a"), at=YOUNG), entry(2, touch("a"), at=YOUNG), entry(3, patch, at=YOUNG)]
    entries.append(entry(4, touch("a"), at=YOUNG))
    assert outline(folded(*entries)) == outline(entries)


def test_a_mark_beside_a_put_stays_in_its_line_so_that_numbers_still_rise() -> None:
    result = folded(entry(1, Change("mark", "memory", "a", {"why": "import"}), put("a", x=1)), entry(2, put("b")))
    assert outline(result) == [(1, [("mark", "a"), ("put", "a")]), (2, [("put", "b")])]


def test_other_kinds_are_left_alone() -> None:
    entries = [entry(1, Change("put", "topic", "t", {"x": 1})), entry(2, Change("delete", "topic", "t"))]
    assert [e.raw for e in folded(*entries)] == [e.raw for e in entries]


@check_rows(
    "line",
    [
        {"op": "archive", "kind": "memory", "id": "a"},
        {"op": "put", "kind": "memory", "id": "b", "signature": "…"},
        {"op": "batch", "entries": [{"op": "touch", "kind": "memory", "id": "a"}, {"op": "x", "kind": "topic"}]},
    ],
)
def test_nothing_of_a_kind_is_moved_past_a_line_of_a_later_version_about_that_kind(line: dict[str, Any]) -> None:
    """A later version replays the compacted file, too: for it, `archive` before or after a patch is a difference."""
    entries = [entry(1, put("a", x=1)), foreign(2, **line), entry(3, Change("patch", "memory", "a", {"x": 2}))]
    result = folded(*entries)
    assert [e.raw for e in result] == [e.raw for e in entries]


def test_young_touches_are_not_moved_past_an_operation_of_a_later_version() -> None:
    entries = [entry(1, put("a"), at=YOUNG), entry(2, touch("a"), at=YOUNG)]
    entries.append(foreign(3, at=YOUNG, op="reset_counts", kind="memory", id="a"))
    entries.append(entry(4, touch("a"), at=YOUNG))
    assert outline(folded(*entries)) == outline(entries)


def test_an_unknown_operation_on_another_kind_does_not_stop_folding() -> None:
    archive = foreign(2, op="archive", kind="sealed", id="s")
    result = folded(entry(1, put("a", x=1)), archive, entry(3, Change("patch", "memory", "a", {"x": 2})))
    assert [e.seq for e in result] == [2, 3]
    assert result[0].raw == archive.raw
    assert result[1].changes[0].data == {"x": 2}


def test_a_record_that_a_patch_broke_keeps_its_past() -> None:
    """Its last good version is what readers still show; folding would leave the broken one alone."""
    entries = [entry(1, put("b", x=1)), entry(2, put("a", x=1)), entry(3, Change("patch", "memory", "a", {"x": "no"}))]

    def judge(change: Change) -> str | None:
        return None if isinstance(change.data.get("x"), int) else "x is no number"

    assert lines_after(entries, judge) == [e.raw for e in entries]


@pytest.fixture
def journal(root: Path, clock: FrozenClock) -> Journal:
    return Journal(root / "bob" / "memories.yaml", KINDS, clock=clock)


def store(journal: Journal, *changes: Change) -> None:
    with journal.locked() as writer:
        writer.append(changes)


def rejected(journal: Journal) -> list[dict[str, Any]]:
    path = get_rejected_path(journal.path)
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8"))) if path.exists() else []


def test_a_damaged_line_goes_to_the_rejected_file_once(journal: Journal) -> None:
    store(journal, put("a"))
    with journal.path.open("ab") as file:
        file.write(b"--- {broken\n\xff\xfe\n")
    store(journal, put("b"))
    assert [problem.raw for problem in journal.reader.problems] == [b"--- {broken\n", b"\xff\xfe\n"]
    for _ in range(3):
        journal.compact()
    documents = rejected(journal)
    assert [document.get("line", document.get("line_base64")) for document in documents] == ["--- {broken\n", "//4K"]
    assert all(document["reason"] and document["at"] for document in documents)
    assert journal.reader.problems == []
    assert b"broken" not in journal.path.read_bytes()


def test_a_put_that_its_owner_refuses_goes_to_the_rejected_file(journal: Journal) -> None:
    store(journal, put("good", x=1))
    store(journal, put("bad", x="no"))
    journal.compact(keep=lambda change: None if change.id == "good" else "x is no number")
    assert [document["reason"] for document in rejected(journal)] == ["x is no number"]
    assert len(lines_of(journal.path)) == 1


def test_a_good_record_in_one_batch_with_a_bad_one_is_not_taken_away_with_it(journal: Journal) -> None:
    store(journal, put("good", x=1), put("bad", x="no"))
    journal.compact(keep=lambda change: None if change.id == "good" else "x is no number")
    records: Records = {}
    for line in Journal(journal.path, KINDS).poll().entries:
        for change in line.changes:
            apply_change(records, change, line.at)
    assert records["good"] == {"x": 1}


def test_a_compaction_tells_its_owner_nothing_that_it_knew_and_a_newcomer_everything(
    journal: Journal, clock: FrozenClock
) -> None:
    store(journal, put("a", x=1))
    store(journal, put("a", x=2))
    clock.advance(days=31)
    assert journal.compact() == JournalUpdate()
    update = Journal(journal.path, KINDS).poll()
    assert outline(update.entries) == [(2, [("put", "a")])]
    assert update.entries[0].changes[0].data == {"x": 2}


def test_the_grace_time_is_counted_from_now(journal: Journal, clock: FrozenClock) -> None:
    store(journal, put("a", x=1))
    store(journal, Change("delete", "memory", "a"))
    clock.advance(days=29)
    journal.compact()
    assert len(lines_of(journal.path)) == 2
    clock.advance(days=2)
    journal.compact(grace=timedelta(days=30))
    assert lines_of(journal.path) == []


def left_of(*entries: Entry, young: int) -> list[str]:
    """Return the ids that are left when every record with `over` has had its time."""
    result = fold_entries(entries, young, FoldRules(KINDS, None, lambda change: bool(change.data.get("over"))))
    return [change.id for line in result.lines for change in decode_entry(line).changes]


def test_a_record_whose_time_is_over_goes_unless_something_was_written_about_it_since() -> None:
    over, other = entry(1, put("a", over=True)), entry(2, put("b"))
    assert left_of(over, other, young=2) == ["b"]
    assert left_of(over, other, entry(3, touch("a"), at=YOUNG), young=2) == ["b", "a"], "a touch of nothing"
    patch = entry(3, Change("patch", "memory", "a", {"over": False}), at=YOUNG)
    assert left_of(over, other, patch, young=2) == ["a", "b", "a"]
    unknown = foreign(3, op="extend", kind="memory", id="a", at=YOUNG)
    assert left_of(over, other, unknown, young=2) == ["a", "b"], "what a newer version said may concern it"


def test_what_is_forgotten_for_good_is_named() -> None:
    entries = [entry(1, put("a"), put("b"), put("c", over=True)), entry(2, Change("delete", "memory", "a"))]
    entries += [entry(3, Change("delete", "memory", "b")), entry(4, put("b"), at=YOUNG)]
    result = fold_entries(entries, 3, FoldRules(KINDS, None, lambda change: bool(change.data.get("over"))))
    assert result.forgotten == {"a", "c"}


def test_the_last_text_that_is_over_is_named_by_the_number_of_what_ended_it() -> None:
    said, other = entry(1, put("a", text="x", n=1)), entry(4, Change("patch", "memory", "a", {"n": 2}))
    reworded, gone = entry(2, Change("patch", "memory", "a", {"text": "y"})), entry(3, Change("delete", "memory", "a"))
    put_again = entry(5, put("a", text="z"))

    def purged(*entries: Entry, young: int | None = None) -> int:
        return fold_entries(
            entries, len(entries) if young is None else young, FoldRules(KINDS, words=("text",))
        ).purged_seq

    assert purged(said, other) == 0
    assert purged(said, reworded, other) == 2
    assert purged(said, reworded, other, young=1) == 0
    assert purged(said, gone, other) == 3
    assert purged(said, other, put_again) == 5
