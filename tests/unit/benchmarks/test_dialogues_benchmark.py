"""The benchmark of dialogues: it plays real sessions and counts what became of each wish and finding."""

from __future__ import annotations

from typing import Any

from benchmarks.dialogues.__main__ import (
    LABEL,
    DialogueTally,
    count_finding,
    load_dialogues,
    measure_finding,
    measure_wishes,
)


async def test_measure_wishes_kept_proposed_and_lost_are_counted_apart() -> None:
    turns: list[dict[str, Any]] = [
        {"user": "Remember that releases need two approvals. I like small pull requests."},
        {"bash": {"command": "ls", "result": "src"}},
        {"assistant": "Okay."},
        {"user": "run the tests"},
    ]
    tally = DialogueTally()
    await measure_wishes({"name": "d", "turns": turns, "wishes": ["two approvals", "small pull", "never said"]}, tally)
    assert (tally.wishes, tally.kept, tally.proposed, tally.misses) == (3, 1, 1, ["d: never said"])
    assert (tally.messages, tally.notes, tally.proposals) == (2, 1, 0)


async def test_measure_finding_comes_back_in_the_next_session() -> None:
    tally = DialogueTally()
    await measure_finding(load_dialogues("findings.yaml")[0], tally)
    assert (tally.findings, tally.shown, tally.shell_messages, tally.misses) == (1, 1, 1, [])


def test_count_finding_without_its_label_counts_as_an_instruction() -> None:
    tally, finding = DialogueTally(), {"stores": "The pool has two connections.", "part": "two connections"}
    for lines in (["- 2026-11-03 The pool has two connections."], [f"- The pool has two connections. {LABEL}"], []):
        count_finding(lines, finding, tally)
    assert (tally.findings, tally.shown, tally.instructions, len(tally.misses)) == (3, 2, 1, 1)


def test_load_dialogues_has_enough_of_both_kinds() -> None:
    assert len(load_dialogues("wishes.yaml")) >= 60
    assert len(load_dialogues("findings.yaml")) >= 40
