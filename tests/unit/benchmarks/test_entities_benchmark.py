"""The measurement of names counts what it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks.entities import benchmark as entities
from benchmarks.entities.baselines import capitalised, within_sentences

if TYPE_CHECKING:
    from pathlib import Path

TALK = [("Ann", "hi, I met Tobias Reuter."), ("Ben", "who?"), ("Ann", "that Tobias Reuter, and Zoe.")]


def test_find_as_ingested_name_of_two_turns_is_found_in_both() -> None:
    assert entities.find_as_ingested(TALK) == [frozenset({(10, 23)}), frozenset(), frozenset({(5, 18)})]


def test_load_realtalk_sessions_are_in_order(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    chat = {f"session_{n}": [{"speaker": "Ann", "clean_text": f"{n}"}] for n in (10, 2)} | {"session_2_date": "x"}
    (tmp_path / "data" / "Chat_1.json").write_text(json.dumps(chat))
    assert entities.load_realtalk(tmp_path) == {"Chat_1": [("Ann", "2"), ("Ann", "10")]}


def test_load_locomo_sessions_are_in_order(tmp_path: Path) -> None:
    talk = {f"session_{n}": [{"speaker": "Ann", "text": f"{n}"}] for n in (10, 2)} | {"session_2_date_time": "x"}
    (tmp_path / "locomo.json").write_text(json.dumps([{"sample_id": "conv-1", "conversation": talk}]))
    assert entities.load_locomo(tmp_path / "locomo.json") == {"conv-1": [("Ann", "2"), ("Ann", "10")]}


def test_label_turns_other_text_is_refused() -> None:
    row = json.loads(entities.LABELS.read_text(encoding="utf-8").partition("\n")[0])
    talks = {row["conversation"]: [("Ann", "another text")] * (row["turn"] + 1)}
    with pytest.raises(ValueError, match="another text; use the published files"):
        entities.label_turns(row["set"], talks, entities.find_as_ingested)


def test_measure_counts_wrong_and_right_names() -> None:
    turns = [entities.LabelledTurn("Ann met Bob", frozenset({(0, 3), (8, 11)}), frozenset({(0, 3), (4, 7)}))]
    assert entities.measure(turns) == {"precision": 0.5, "recall": 0.5, "wrong": 1, "right": 1, "there": 2}
    row = entities.add_intervals(turns * 3, 50)
    assert row["precision_interval"] == (0.5, 0.5)
    (without,) = entities.drop_speakers(turns, frozenset({"Ann"}))
    assert (without.names, without.found) == ({(8, 11)}, {(4, 7)})


def test_baselines_find_capitals() -> None:
    assert [(start, end) for start, end, _ in capitalised("Then Bob Lee ran")] == [(0, 12)]
    assert [(start, end) for start, end, _ in within_sentences("Then we met Bob Lee.")] == [(12, 19)]
