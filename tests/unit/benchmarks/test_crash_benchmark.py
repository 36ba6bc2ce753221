"""The crash benchmark must be able to fail: each way of spoiling the product is noticed, in the right column."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.crash.model import AcknowledgedState, PendingOperation, StateVerdict, compare
from tests.concurrency.processes import REPOSITORY, environment

ONE, TWO, THREE = "mem-000000000001", "mem-000000000002", "mem-000000000003"


def crash(*arguments: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.crash", "--json", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment(), check=False)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


def judged(pending: PendingOperation, found: dict[str, Any], *, settled: bool = True) -> StateVerdict:
    expected = AcknowledgedState({ONE: {"content": "one"}, TWO: {"content": "two"}}, {THREE: {"content": "three"}})
    return compare(expected, pending, found, settled=settled)


BOTH = {ONE: {"content": "one"}, TWO: {"content": "two"}}


def test_what_is_there_as_acknowledged_is_right() -> None:
    assert judged(PendingOperation(), BOTH) == StateVerdict()


@pytest.mark.parametrize(
    ("found", "what"),
    [
        ({ONE: BOTH[ONE]}, "is gone"),
        ({**BOTH, TWO: {"content": "2"}}, "differs in"),
        ({**BOTH, THREE: {"content": "three"}}, "is back"),
    ],
)
def test_what_is_not_as_acknowledged_is_lost(found: dict[str, Any], what: str) -> None:
    verdict = judged(PendingOperation("store", extra=[{"content": "four"}]), found)
    assert len(verdict.lost) == 1
    assert what in verdict.lost[0]


def test_what_was_under_way_may_be_there_and_is_learnt_but_only_once() -> None:
    pending = PendingOperation("store", extra=[{"content": "four"}])
    assert judged(pending, BOTH) == StateVerdict()
    assert judged(pending, {**BOTH, "mem-4": {"content": "four"}}).now == {"mem-4": {"content": "four"}}
    assert judged(pending, {**BOTH, "mem-4": {"content": "four"}, "mem-5": {"content": "four"}}).half
    assert judged(pending, {**BOTH, "mem-4": {"content": "fo"}}).half


def test_changes_made_together_are_there_together() -> None:
    pending = PendingOperation("forget", changed={ONE: None, TWO: None})
    assert judged(pending, BOTH) == StateVerdict()
    assert judged(pending, {}) == StateVerdict(now={ONE: None, TWO: None})
    assert judged(pending, {ONE: BOTH[ONE]}).half


def test_an_edit_in_a_file_must_be_there_in_the_end() -> None:
    pending = PendingOperation("scratchpad", changed={ONE: {"content": "1"}}, extra=[{"content": "new"}], must=True)
    assert judged(pending, BOTH, settled=False) == StateVerdict()
    assert len(judged(pending, BOTH).half) == 2
    assert not judged(pending, {**BOTH, ONE: {"content": "1"}, "mem-4": {"content": "new"}}).half


@pytest.mark.parametrize(
    ("spoilt", "operation", "column"),
    [
        ("ack-before-write", "store", "lost"),
        ("forget-one-by-one", "forget", "half"),
        ("compact-in-place", "compaction", "lost"),
        ("litter", "update", "leftovers"),
    ],
)
def test_a_spoilt_product_is_noticed(spoilt: str, operation: str, column: str) -> None:
    code, report = crash(
        "--operations", operation, "--sabotage", spoilt, "--kills", "60", "--seed", "1", "--until-found"
    )
    assert code == 1
    assert report["total"][column] > 0, report["problems"]


def test_a_sound_product_passes_and_the_report_says_where_it_was_killed() -> None:
    code, report = crash("--operations", "store", "--kills", "3", "--seed", "4")
    assert (code, report["passed"], report["problems"]) == (0, True, [])
    assert report["operations"]["store"]["kills"] == report["total"]["kills"] == sum(report["windows"].values()) == 3
    assert os.sep not in "".join(report["windows"])
