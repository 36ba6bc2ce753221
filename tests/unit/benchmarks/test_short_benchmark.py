"""The benchmark of short answers joins memories to notes and knows where each of them went."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.retrieval.data import QuestionGroup
from benchmarks.short import NOTE, joined

if TYPE_CHECKING:
    from pathlib import Path

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


def test_memories_stand_together_in_notes_and_answer_as_before() -> None:
    group = QuestionGroup("bob")
    for number in range(50):
        group.add(f"m{number}", f"Fact {number} " + "x" * 100, WHEN, "")
    group.ask("Which is the last?", ["m49"], "all")

    notes, answers = joined(group)

    assert "\n".join(item.text for item in notes.items) == "\n".join(item.text for item in group.items)
    assert all(NOTE - 200 < len(item.text) <= NOTE + 50 for item in notes.items[:-1])
    assert answers == {"Which is the last?": [(notes.items[-1].key, group.items[-1].text)]}
    assert notes.queries[0].gold == (notes.items[-1].key,)


def test_the_command_measures_a_set(tmp_path: Path) -> None:
    lines = [
        {"type": "memory", "id": str(number), "group": "g", "text": f"Bob's phone number {number} is {number}55."}
        for number in range(3)
    ]
    lines.append({"type": "query", "text": "phone number 2", "gold": ["2"], "group": "g"})
    (tmp_path / "set.jsonl").write_text("\n".join(map(json.dumps, lines)))

    command = [sys.executable, "-m", "benchmarks.short", "--jsonl", str(tmp_path / "set.jsonl"), "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)

    report = json.loads(ran.stdout)
    assert report["set"]["questions"] == 1
    assert report["set"]["readable"] == report["set"]["whole"] == 1
    assert report["set, notes of 2,000"]["readable"] == 1
