"""What each operation does to the records of one kind."""

from __future__ import annotations

from typing import Any

from agent_memory.journal import Change, Records, apply_change
from tests.rows import check_rows

AT = "2026-03-01T12:00:00Z"


@check_rows(
    ("op", "data", "after"),
    [
        ("put", {"y": 2}, {"y": 2}),
        ("patch", {"y": 2}, {"x": 1, "gone": None, "y": 2}),
        ("patch", {"x": None}, {"gone": None}),
        ("touch", {}, {"x": 1, "gone": None, "access_count": 1, "last_accessed": AT}),
        ("touch", {"count": 3}, {"x": 1, "gone": None, "access_count": 3, "last_accessed": AT}),
        ("delete", {}, None),
        ("mark", {"note": "x"}, {"x": 1, "gone": None}),
    ],
)
def test_each_operation_on_a_known_record(op: str, data: dict[str, Any], after: dict[str, Any] | None) -> None:
    records: Records = {"a": {"x": 1, "gone": None}}
    changed = apply_change(records, Change(op, "memory", "a", data), AT)
    assert records.get("a") == after
    assert changed is (op != "mark")


@check_rows("op", ["patch", "touch", "delete", "mark"])
def test_all_but_put_do_nothing_to_an_unknown_record(op: str) -> None:
    records: Records = {}
    assert apply_change(records, Change(op, "memory", "a", {"x": 1} if op == "patch" else {}), AT) is False
    assert records == {}


def test_a_change_leaves_the_record_that_somebody_else_holds_alone() -> None:
    held = {"x": 1}
    records: Records = {"a": held}
    apply_change(records, Change("patch", "memory", "a", {"x": 2}), AT)
    apply_change(records, Change("touch", "memory", "a"), AT)
    assert held == {"x": 1}
