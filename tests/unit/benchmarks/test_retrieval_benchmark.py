"""The retrieval benchmark: its definitions, its readers, and one run from end to end."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("rank_bm25")

from agent_memory.embeddings.testing import HashEmbedder
from benchmarks.retrieval import benchmark as retrieval
from benchmarks.retrieval.data import SetItem, load_jsonl, load_locomo
from benchmarks.retrieval.metrics import Bm25Reference, interval, measure, outcome
from benchmarks.retrieval.report import overview
from benchmarks.retrieval.rivals import RivalRankings
from benchmarks.retrieval.vectors import KeptVectors

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
    "observation": {"session_1_observation": {"Ben": [["Ben has a red kayak.", "D1:2"], ["Ben is here.", "D1:2"]]}},
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
    (group,) = load_locomo(locomo)
    assert group.items[1] == SetItem(
        "D1:2", "Ben: Look at this [a red kayak]", datetime(2023, 5, 8, 13, 56, tzinfo=UTC), "conv-1-session-1"
    )
    assert group.now == datetime(2023, 6, 4, 9, tzinfo=UTC)


def test_questions_of_category_five_or_without_evidence_are_left_out(locomo: Path) -> None:
    (group,) = load_locomo(locomo)
    assert [(query.text, query.gold) for query in group.queries] == [
        ("What is red?", ("D1:2",)),
        ("Both?", ("D1:1", "D10:1")),
    ]
    assert group.skipped == 1


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
    reference = Bm25Reference([SetItem(key, text, when, "") for key, text in texts.items()])
    assert reference.search("who runs the race") == ["a"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("name", "Ben: Look at this [a red kayak]"),
        ("none", "Look at this [a red kayak]"),
        ("bold", "**Ben:** Look at this [a red kayak]"),
        ("clock", "[13:56] Ben says: Look at this [a red kayak]"),
        ("json", '{"speaker": "Ben", "text": "Look at this [a red kayak]"}'),
    ],
)
def test_a_turn_is_written_in_the_form_that_is_asked_for(locomo: Path, form: str, text: str) -> None:
    (group,) = load_locomo(locomo, form)
    assert group.items[1].text == text


def test_each_fact_drawn_from_an_answer_is_one(locomo: Path) -> None:
    (group,) = load_locomo(locomo, "observations")
    assert [item.text for item in group.items] == ["Ben has a red kayak.", "Ben is here."]
    assert ([query.gold for query in group.queries], group.skipped) == ([("O1:0", "O1:1")], 2)


def _set(tmp_path: Path, *rows: dict[str, Any]) -> Path:
    path = tmp_path / "set.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return path


def test_a_line_with_a_speaker_is_a_turn_in_the_form_asked_for(tmp_path: Path) -> None:
    path = _set(tmp_path, {"type": "memory", "id": "1", "text": "hi", "speaker": "Ann", "session": "s"})
    (group,) = load_jsonl(path, "bold")
    assert (group.items[0].text, group.items[0].session) == ("**Ann:** hi", "s")


def test_a_question_with_an_empty_answer_is_one_that_nothing_answers(tmp_path: Path) -> None:
    path = _set(
        tmp_path,
        {"type": "memory", "id": "1", "text": "hi"},
        {"type": "query", "text": "none", "gold": []},
        {"type": "query", "text": "lost", "gold": ["2"]},
    )
    (group,) = load_jsonl(path)
    assert ([query.text for query in group.unanswerable], group.skipped) == (["none"], 1)


def test_rivals_are_words_and_cosines_and_both() -> None:
    when = datetime(2025, 1, 1, tzinfo=UTC)
    items = [SetItem(key, text, when, "") for key, text in {"a": "a red kayak", "b": "the dog", "c": "red tea"}.items()]
    found = RivalRankings(items, HashEmbedder()).search("a red kayak")
    assert [found[name][0] for name in ("BM25", "MiniLM", "RRF")] == ["a", "a", "a"]
    assert RivalRankings(items, None).search("kayak").keys() == {"BM25"}


class _Counting(HashEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> Any:
        self.texts += texts
        return super().embed_documents(texts)


def test_what_was_embedded_is_kept_for_the_next_run(tmp_path: Path) -> None:
    first, again = _Counting(), _Counting()
    for embedder, texts in ((first, ["one", "two"]), (again, ["two", "one", "three"])):
        kept = KeptVectors(embedder, tmp_path / "vectors.sqlite3")
        vectors = kept.embed_documents(texts)
        kept.close()
        assert vectors == pytest.approx(HashEmbedder().embed_documents(texts), abs=1e-3)
    assert (first.texts, again.texts) == (["one", "two"], ["three"])


def test_a_run_through_the_products_own_storage(
    locomo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["retrieval", "--locomo", str(locomo), "--embedder", "none", "--json"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert retrieval.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["memories"], report["queries"], report["modes"]) == (3, 2, {"keyword": 2})
    assert set(report["by_category"]) == {"1", "4"}
    assert report["product"].keys() == report["difference"].keys()


def test_the_worst_form_stands_first(
    locomo: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["retrieval", "--locomo", str(locomo), "--embedder", "none", "--form", "all", "--json"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert retrieval.main() == 0
    reports = json.loads(capsys.readouterr().out)["sets"]
    assert [report["form"] for report in reports] == ["name", "none", "bold", "clock", "json", "observations"]
    for share, report in enumerate(reports):
        report["product"]["frac@10"]["mean"] = 1 - share / 10
    shown = overview(reports, [1, 10]).splitlines()
    assert [line.split()[1] for line in shown[1:7]] == ["observations", "json", "clock", "bold", "none", "name"]


def test_each_group_has_its_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _set(
        tmp_path,
        {"type": "memory", "id": "new", "text": "The bucket is called kelp and only kelp"},
        {"type": "query", "text": "bucket kelp", "gold": ["new"], "now": "2025-02-01"},
        {"type": "query", "text": "rhubarb", "gold": []},
    )
    monkeypatch.setattr(sys, "argv", ["retrieval", "--jsonl", str(path), "--embedder", "none", "--json"])
    assert retrieval.main() == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["queries"], report["by_group"][""]["queries"]) == (1, 1)


@pytest.mark.parametrize("extra", [["--form", "verse"], ["--jsonl", "no-such-file"]])
def test_arguments_that_make_no_sense_end_with_two(
    locomo: Path, monkeypatch: pytest.MonkeyPatch, extra: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["retrieval", "--locomo", str(locomo), *extra])
    with pytest.raises(SystemExit) as caught:
        retrieval.main()
    assert caught.value.code == 2
