"""The crash benchmark must be able to fail: each way of spoiling the product is noticed, in the right column."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.crash.model import AcknowledgedState, PendingOperation, StateVerdict, compare
from benchmarks.crash.process import ForkedProcess, adopt_orphans
from benchmarks.crash.recovery_check import compare_answers
from tests.concurrency.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_answers_of_segments_are_compared_with_a_replay() -> None:
    records, answers = {ONE: BOTH[ONE]}, [("hybrid", 0.5)]
    assert compare_answers((records, answers), (records, [("hybrid", 0.5004)])) == []
    for other in ([("hybrid", 0.51)], [("keyword", 0.5)], []):
        assert len(compare_answers((records, answers), (records, other))) == 1
    assert len(compare_answers((records, answers), (BOTH, answers))) == 1


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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to a process")
def test_end_orphans_of_a_killed_process_ends_its_children(tmp_path: Path) -> None:
    writing = f"while true; do mkdir -p {tmp_path}/left; touch {tmp_path}/left/file; done"

    def start(say: Callable[..., None]) -> None:
        say(started=subprocess.Popen(["/bin/sh", "-c", writing]).pid)
        time.sleep(60)

    with adopt_orphans() as end_orphans:
        victim = ForkedProcess(tmp_path / "log", start)
        started = victim.hear(60)
        victim.close()
        end_orphans()
        assert started is not None
        assert not Path(f"/proc/{started['started']}").exists()
        shutil.rmtree(tmp_path / "left", ignore_errors=True)
    assert not (tmp_path / "left").exists()
