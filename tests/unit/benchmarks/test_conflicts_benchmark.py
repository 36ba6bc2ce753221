"""`benchmarks.conflicts`: which labelled conflicts are reported, listed as similar, or missed."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from benchmarks.conflicts.benchmark import (
    CASES,
    NoteSet,
    add_reports,
    load_agent_set,
    load_sets,
    measure,
    render_reports,
)

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = {
    "a": "The staging port is 8080.",
    "b": "User finished the book Circe.",
    "c": "The staging port is 8081.",
    "d": "User finished the book Piranesi.",
    "e": "For the staging port it is 8099 now.",
    "f": "Nobody waters plants.",
    "g": "Ilse has a can for that.",
}
CONFLICTS = frozenset({("c", "a"), ("e", "c"), ("g", "f")})


def test_measure_labelled_notes_counts_each_outcome() -> None:
    report = asyncio.run(measure(NoteSet("mine", TEXTS, CONFLICTS), "none"))
    assert (report.wrong, report.right) == ((("d", "b"),), (("c", "a"),))
    assert (report.listed, report.missed) == ((("e", "c"),), (("g", "f"),))
    assert report.figures == {"precision": 0.5, "recall": 0.333, "recall_with_similar": 0.667}
    first, *_, last = render_reports([report, add_reports([report, report])], TEXTS)
    assert first == "reported by mistake: 2"
    assert last.startswith("all: 2 wrong of 14 notes, 6 conflicts")


def test_load_sets_committed_notes_refer_to_older_ones() -> None:
    sets = list(load_sets(CASES))
    assert sum(len(notes.texts) for notes in sets) >= 300
    assert sum(len(notes.conflicts) for notes in sets) >= 40
    for notes in sets:
        places = {key: place for place, key in enumerate(notes.texts)}
        assert all(places[older] < places[newer] for newer, older in notes.conflicts)


def test_load_agent_set_pairs_of_known_notes(tmp_path: Path) -> None:
    notes, replaced = tmp_path / "agent.jsonl", tmp_path / "replaced.md"
    rows = [{"type": "memory", "id": "old", "text": "Old."}, {"type": "memory", "id": "new", "text": "New."}]
    notes.write_text("\n".join(map(json.dumps, [*rows, {"type": "query", "id": "q", "text": "What?"}])), "utf-8")
    replaced.write_text("Pairs: new > old, new > unknown.", "utf-8")
    assert load_agent_set(notes, replaced) == NoteSet(
        "agent", {"old": "Old.", "new": "New."}, frozenset({("new", "old")})
    )
