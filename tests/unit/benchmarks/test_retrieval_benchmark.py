"""The retrieval benchmark: its definitions, its readers, and one run from end to end."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("rank_bm25")

from benchmarks import retrieval
from benchmarks._retrieval_data import Item, load_jsonl, load_locomo
from benchmarks._retrieval_metrics import Reference, interval, measure, outcome
from benchmarks._retrieval_sealed import portions

TALK = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "Hello there"},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Look at this", "blip_caption": "a red kayak"},
        ],
        "session_10_date_time": "9:00 am on 3 June, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Bye"}],
    },
    "qa": [
        {"question": "What is red?", "evidence": ["D1:2"], "category": 4},
        {"question": "Both?", "evidence": ["D1:1; D10:1"], "category": 1},
        {"question": "Trick", "evidence": ["D1:1"], "category": 5},
        {"question": "Lost", "evidence": ["D7:1"], "category": 2},
    ],
}


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    path = tmp_path / "talks.json"
    path.write_text(json.dumps([TALK]), "utf-8")
    return path


def test_metrics_follow_their_definitions() -> None:
    found = outcome(["a", "x", "b", "y"], ["a", "b", "gone"], "1")
    values = measure(found, [1, 3])
    assert values == pytest.approx(
        {"any@1": 1, "frac@1": 1 / 3, "all@1": 0, "any@3": 1, "frac@3": 2 / 3, "all@3": 0, "MRR": 1}
    )


def test_mrr_is_that_of_the_first_answer_and_zero_for_none() -> None:
    assert measure(outcome(["x", "x", "a"], ["a", "b"], "1"), [1])["MRR"] == pytest.approx(1 / 3)
    assert measure(outcome(["x"], ["a"], "1"), [1])["MRR"] == 0


def test_all_needs_every_answer() -> None:
    assert measure(outcome(["a", "b"], ["b", "a"], "1"), [1, 2])["all@2"] == 1


def test_an_interval_holds_the_mean_and_narrows_to_a_point_for_equals() -> None:
    mean, low, high = interval([0.0, 1.0] * 50)
    assert low < mean == 0.5 < high
    assert interval([0.25] * 9) == pytest.approx((0.25, 0.25, 0.25))


def test_a_turn_is_speaker_text_and_caption_with_its_sessions_date(locomo: Path) -> None:
    (group,) = load_locomo(locomo, [], "turn")
    assert group.items[1] == Item(
        "D1:2", "Ben: Look at this [a red kayak]", datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "conv-1-session-1"
    )
    assert group.now == datetime(2023, 6, 4, 9, tzinfo=UTC)


def test_questions_of_category_five_or_without_evidence_are_left_out(locomo: Path) -> None:
    (group,) = load_locomo(locomo, [], "turn")
    assert [(query.text, query.gold) for query in group.queries] == [
        ("What is red?", ("D1:2",)),
        ("Both?", ("D1:1", "D10:1")),
    ]
    assert group.skipped == 1


def test_a_session_is_all_its_turns_and_answers_for_each(locomo: Path) -> None:
    (group,) = load_locomo(locomo, ["conv-1"], "session")
    assert [item.key for item in group.items] == ["D1", "D10"]
    assert group.items[0].text == "Ann: Hello there\nBen: Look at this [a red kayak]"
    assert group.queries[1].gold == ("D1", "D10")


def test_an_unknown_conversation_is_named(locomo: Path) -> None:
    with pytest.raises(ValueError, match="conv-9"):
        load_locomo(locomo, ["conv-9"], "turn")


def test_lines_are_grouped_and_queries_may_come_first(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "query", "text": "q", "gold": ["1"], "group": "a"},
        {"type": "memory", "id": "1", "text": "one", "group": "a", "date": "2025-01-02"},
        {"type": "memory", "id": "1", "text": "other", "group": "b"},
    ]
    path = tmp_path / "set.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    a, b = load_jsonl(path)
    assert (a.name, a.items[0].when, len(a.queries)) == ("a", datetime(2025, 1, 2, tzinfo=UTC), 1)
    assert (b.name, b.items[0].session, len(b.queries)) == ("b", "", 0)


@pytest.mark.parametrize("row", [{"type": "memo"}, {"type": "memory", "id": "1", "text": "x", "date": "someday"}])
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, row: dict[str, str]) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text("\n" + json.dumps(row), "utf-8")
    with pytest.raises(ValueError, match="line 2"):
        load_jsonl(path)


def test_the_reference_stems_and_leaves_out_what_shares_no_word() -> None:
    when = datetime(2025, 1, 1, tzinfo=UTC)
    texts = {"a": "running shoes", "b": "a cat", "c": "the dog"}
    reference = Reference([Item(key, text, when, "") for key, text in texts.items()])
    assert reference.search("who runs the race") == ["a"]


def test_a_run_through_the_products_own_storage(
    locomo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["retrieval", "--locomo", str(locomo), "--embedder", "none", "--k", "1,2", "--json"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert retrieval.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["memories"], report["queries"], report["modes"]) == (3, 2, {"keyword": 2})
    assert set(report["by_category"]) == {"1", "4"}
    assert report["product"].keys() == report["difference"].keys()


@pytest.mark.parametrize("way", ["all", "mixed"])
def test_what_is_sealed_before_the_questions_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    lines = [{"type": "memory", "id": str(at), "text": f"the parcel {at} weighs {at * 7} pounds"} for at in range(63)]
    questions = [{"type": "query", "text": f"what does parcel {at} weigh", "gold": [str(at)]} for at in (0, 11, 38, 62)]
    path = tmp_path / "parcels.jsonl"
    path.write_text("\n".join(map(json.dumps, lines + questions)), "utf-8")
    monkeypatch.setattr(
        sys, "argv", ["retrieval", "--jsonl", str(path), "--embedder", "none", "--sealed", way, "--json"]
    )
    assert retrieval.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["sealed"], report["memories"], report["product"]["MRR"]["mean"]) == (way, 63, 1.0)


def test_two_thirds_are_sealed_in_segments_that_are_not_merged() -> None:
    items = [Item(str(at), "", datetime(2025, 1, 1, tzinfo=UTC), "") for at in range(63)]
    assert [len(portion) for portion in portions(items, "mixed")] == [32, 8, 2, 21]


@pytest.mark.parametrize("extra", [["--k", "0"], ["--k", "x"], ["--conversations", "conv-9"]])
def test_arguments_that_make_no_sense_end_with_two(
    locomo: Path, monkeypatch: pytest.MonkeyPatch, extra: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["retrieval", "--locomo", str(locomo), *extra])
    with pytest.raises(SystemExit) as caught:
        retrieval.main()
    assert caught.value.code == 2
