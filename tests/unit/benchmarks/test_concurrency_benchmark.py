"""The concurrency benchmark: what its checker accuses, and one small run from end to end for each backend."""

import json
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("qdrant_edge")

from benchmarks.concurrency import benchmark as concurrency
from benchmarks.concurrency.check import AcknowledgedWrite, compare, expected
from benchmarks.concurrency.worker import WorkerOrders
from benchmarks.harness import render_figures

A, B = "mem-00000000000a", "mem-00000000000b"


def told(op: str, memory_id: str, text: str = "", begin: float = 1, end: float = 2) -> AcknowledgedWrite:
    return AcknowledgedWrite(op, memory_id, text, begin, end)


def problems(
    records: list[AcknowledgedWrite], found: dict[str, str], before: dict[str, str] | None = None
) -> list[str]:
    return compare(expected(before or {}, records), found)


def test_what_was_acknowledged_and_is_there_is_in_order() -> None:
    records = [
        told("store", A, "tea"),
        told("update", A, "coffee", 3, 4),
        told("store", B, "x"),
        told("forget", B, "", 5, 6),
    ]
    assert problems(records, {A: "coffee"}) == []


@pytest.mark.parametrize(
    ("records", "found", "accusation"),
    [
        ([told("store", A, "tea")], {}, "lost"),
        ([told("store", A, "tea")], {A: "tea", B: "x"}, "nobody was told"),
        ([told("store", A, "tea"), told("forget", A, "", 3, 4)], {A: "tea"}, "came back"),
        ([told("store", A, "tea"), told("update", A, "milk", 3, 4)], {A: "tea"}, "lost update"),
        ([told("store", A, "tea"), told("store", B, "Tea ")], {A: "tea", B: "Tea "}, "kept 2 times"),
        ([told("store", A, "tea"), told("store", A, "tea", 3, 4)], {A: "tea"}, "stored 2 times"),
        ([told("forget", A), told("forget", A, "", 3, 4)], {}, "forgotten 2 times"),
        (
            [told("store", A, "t"), told("forget", A, "", 3, 4), told("update", A, "u", 5, 6)],
            {},
            "after it was forgotten",
        ),
        ([told("duplicate", B, "tea")], {}, "nobody stored"),
        ([told("store", A, "t"), told("forget", A, "", 3, 4), told("duplicate", A, "t", 5, 6)], {}, "forgotten before"),
        (
            [told("capture", A, "tea"), told("forget", A, "", 3, 4), told("capture", B, "tea", 5, 6)],
            {B: "tea"},
            "captured again",
        ),
    ],
)
def test_each_kind_of_loss_is_accused(records: list[AcknowledgedWrite], found: dict[str, str], accusation: str) -> None:
    assert any(accusation in problem for problem in problems(records, found))


def test_of_two_changes_at_the_same_time_either_may_have_come_last() -> None:
    records = [told("update", A, "left", 1, 4), told("update", A, "right", 2, 3)]
    for text in ("left", "right"):
        assert problems(records, {A: text}, {A: "before"}) == []
    assert problems(records, {A: "before"}, {A: "before"})


def test_of_two_changes_one_after_the_other_only_the_later_may_stay() -> None:
    records = [told("update", A, "first", 1, 2), told("update", A, "second", 3, 4)]
    assert problems(records, {A: "second"}, {A: "before"}) == []
    assert problems(records, {A: "first"}, {A: "before"})


def test_orders_come_out_of_a_command_line_as_they_went_in() -> None:
    orders = WorkerOrders("r", "vector", 1, 5, "s", "l", ("a",), (3,), ((2, "migrate"),))
    again = WorkerOrders.decode(orders.encode())
    assert (again.moves, again.number, tuple(again.shared)) == (orders.moves, 1, ("a",))


@pytest.mark.parametrize("backend", ["file", "vector"])
def test_a_small_run_ends_as_the_processes_were_told(backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = f"--processes 3 --operations 25 --repeat 1 --memories 40 --backend {backend}"
    assert concurrency.main([*arguments.split(), "--json"]) == 0
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    part = report["backends"][backend]
    assert (part["rounds"], part["as_told"], part["problems"]) == (1, 1, [])
    assert part["acknowledged"]["store"] > 0
    assert part["searches"].keys() == {"hybrid"}
    assert backend in "\n".join(render_figures(report))


def test_a_loss_ends_the_run_with_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def lossy(_root: object) -> dict[str, str]:
        return {}

    monkeypatch.setattr(concurrency, "contents", lossy)
    monkeypatch.setattr(
        concurrency, "_work", lambda *_: [[{"op": "store", "id": A, "text": "t", "begin": 1, "end": 2}]]
    )
    assert concurrency.main(["--repeat", "1", "--memories", "5", "--backend", "file"]) == 1
    assert "lost: " in capsys.readouterr().out
