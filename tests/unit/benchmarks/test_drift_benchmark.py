"""The drift benchmark: each rule of its grader on replies made by hand, and one small world from end to end."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

from agent_memory.settings import ServiceSettings
from benchmarks.drift import benchmark as drift
from benchmarks.drift.baselines import TfIdf
from benchmarks.drift.grade import grade, token_score, tokens
from benchmarks.drift.product import ProductSystem
from benchmarks.drift.system import (
    RecallAnswer,
    ShownNote,
    SuspectPair,
    SystemAbilities,
    SystemReplies,
    WriteAnswer,
    replay,
)

ALL = SystemAbilities(suspects=True, trace=True, temporal=True)
DAY = 86_400
DOOR = "src/door.rs"


def note(key: str, title: str, body: str = "", *, day: int = 0, files: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "key": key, "kind": "Decision", "title": title, "body": body, "code_refs": list(files),
        "created_at": 1_780_000_000 + day * DAY, "open": False,
    }  # fmt: skip


def world_of(*probes: dict[str, Any], ops: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"spec": {"base_ts": 1_790_000_000}, "ops": list(ops), "probes": list(probes)}


def points(probe: dict[str, Any], replies: SystemReplies, family: str, can: SystemAbilities = ALL) -> float:
    return grade(world_of(probe), replies, can).columns[family]


def asked(*hits: ShownNote, declined: bool = False) -> SystemReplies:
    return SystemReplies(recalled={"R": RecallAnswer(hits, declined)})


GOLD = {"id": "R", "family": "retrieval", "expect": "gold", "gold": "a", "phrasing": "lexical", "answer": "40 bolts"}


def test_tokens_are_characters_by_four_rounded_up() -> None:
    assert [tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


def test_tokens_score_in_full_up_to_two_hundred_and_nothing_from_three_thousand() -> None:
    assert [token_score(billed) for billed in (0, 200, 3000, 9000)] == [100, 100, 0, 0]
    assert token_score((200 * 3000) ** 0.5) == pytest.approx(50)


@pytest.mark.parametrize(
    ("hits", "passed"),
    [
        ([ShownNote("a", "it has 40 BOLTS")], 100),
        ([ShownNote("a", "it has bolts")], 0),  # the answer cannot be read
        ([ShownNote(str(n), "") for n in range(5)] + [ShownNote("a", "40 bolts")], 0),  # the sixth
        ([ShownNote("x", "", tombstone=True)] * 5 + [ShownNote("a", "40 bolts")], 100),  # traces do not count
        ([ShownNote("old", "39 bolts"), ShownNote("a", "40 bolts")], 0),
        ([ShownNote("a", "40 bolts"), ShownNote("old", "39 bolts")], 100),
        ([], 0),
    ],
)
def test_retrieval_wants_the_readable_note_among_five_and_no_stale_one_above(
    hits: list[ShownNote], passed: float
) -> None:
    assert points({**GOLD, "stale": "old"}, asked(*hits), "retrieval") == passed


def test_signal_is_the_share_of_the_answer_in_what_was_shown() -> None:
    replies = asked(ShownNote("x", "x" * 120), ShownNote("a", "40 bolts" + "." * 32))
    assert points(GOLD, replies, "signal") == pytest.approx(25)


@pytest.mark.parametrize("replies", [asked(ShownNote("a", "40 bolts"), declined=True), asked(ShownNote("a", "bolts"))])
def test_signal_is_nothing_for_a_question_declined_or_unreadable(replies: SystemReplies) -> None:
    assert points(GOLD, replies, "signal") == 0


def test_text_of_every_prompt_counts_a_twentieth() -> None:
    replies = asked(ShownNote("a", "40 bolts"))
    replies.standing_tokens = 400
    assert grade(world_of(GOLD), replies, ALL).details["tokens_per_question"] == 22


def test_a_file_is_answered_by_any_note_about_it() -> None:
    probe = {"id": "R", "family": "retrieval", "expect": "bound", "gold": ["a", "b"], "answers": ["one", "two"]}
    assert points(probe, asked(ShownNote("b", "two")), "retrieval") == 100
    assert points(probe, asked(ShownNote("b", "one")), "retrieval") == 0
    three = asked(ShownNote("b", "two "), ShownNote("a", "uno "), ShownNote("x", "none"))
    assert points(probe, three, "signal") == pytest.approx(200 / 3)


@pytest.mark.parametrize(
    ("replies", "passed"),
    [(asked(), 100), (asked(ShownNote("a", "x")), 0), (asked(ShownNote("a", "x"), declined=True), 100)],
)
def test_abstention_shows_nothing_or_declines(replies: SystemReplies, passed: float) -> None:
    assert points({"id": "R", "family": "abstention", "expect": "control"}, replies, "abstention") == passed


def test_currency_wants_the_head_and_nothing_retired() -> None:
    probe = {"id": "R", "family": "currency", "expect": "current", "head": "c", "retired": ["a"], "answer": "40"}
    assert points(probe, asked(ShownNote("c", "40")), "currency") == 100
    assert points(probe, asked(ShownNote("c", "40"), ShownNote("a", "39")), "currency") == 0


def test_a_lineage_is_complete_or_not_asked_for() -> None:
    probe = {"id": "L", "family": "currency", "expect": "lineage", "head": "c", "retired": ["a", "b"]}
    assert points(probe, SystemReplies(lineage={"L": ["b", "a"]}), "currency") == 100
    assert points(probe, SystemReplies(lineage={"L": ["b"]}), "currency") == 0
    current = {"id": "R", "family": "currency", "expect": "current", "head": "c", "retired": [], "answer": ""}
    replies = asked(ShownNote("c", "x"))
    replies.lineage["L"] = None
    assert grade(world_of(probe, current), replies, ALL).columns["currency"] == 100


def case(*, positive: bool) -> dict[str, Any]:
    return {
        "id": "C", "family": "contradiction", "expect": "case", "gold": "a", "witness": "w", "planted": ["w"],
        "shape": "value", "positive": positive,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pairs", "on_real", "on_harmless"),
    [
        ([], 0, 100),
        ([SuspectPair("a", "w")], 100, 0),
        ([SuspectPair("w", "a", "contradiction")], 100, 0),
        ([SuspectPair("w", "a", "entailment")], 0, 100),
        ([SuspectPair("w", "a", "neutral")], 100, 100),
        ([SuspectPair("w", "a", "entailment"), SuspectPair("w", "a", "contradiction")], 100, 0),
        ([SuspectPair("w", "b")], 0, 100),
    ],
)
def test_contradictions_are_queued_and_harmless_pairs_are_not(
    pairs: list[SuspectPair], on_real: float, on_harmless: float
) -> None:
    assert points(case(positive=True), SystemReplies(queue=pairs), "contradiction") == on_real
    assert points(case(positive=False), SystemReplies(queue=pairs), "contradiction") == on_harmless


def test_a_contradiction_taken_for_its_opposite_is_not_noticed() -> None:
    write = {"op": "inscribe", "id": "W", "mode": "write", "record": note("w", "other")}
    replies = SystemReplies(written={"W": WriteAnswer(matched="a")}, queue=[SuspectPair("a", "w")])
    assert grade(world_of(case(positive=True), ops=(write,)), replies, ALL).columns["contradiction"] == 0
    assert grade(world_of(case(positive=False), ops=(write,)), replies, ALL).columns["contradiction"] == 100


def test_without_an_ability_a_family_is_nothing() -> None:
    replies = SystemReplies(queue=[SuspectPair("a", "w")])
    assert points(case(positive=True), replies, "contradiction", SystemAbilities(suspects=False)) == 0
    probe = {"id": "D", "family": "drift", "expect": "drifted", "gold": "a", "stale": "w"}
    assert points(probe, replies, "drift") == 100
    assert points(probe, replies, "drift", SystemAbilities(suspects=False)) == 0


def test_what_is_gone_is_not_shown_and_its_return_is_warned_of() -> None:
    absent = {"id": "R", "family": "deletion", "expect": "absent", "victim": "a", "released": True, "answer": "x"}
    again = {"id": "W", "family": "deletion", "expect": "resurrect", "victim": "a", "released": True}
    replies = asked(ShownNote("a", "gone", tombstone=True))
    replies.written["W"] = WriteAnswer(released=False)
    assert grade(world_of(absent, again), replies, ALL).columns["deletion"] == 50
    assert grade(world_of(absent, again), replies, SystemAbilities(trace=False)).columns["deletion"] == 100


def test_a_reason_is_found_itself_or_beside_one_of_five() -> None:
    probe = {"id": "R", "family": "rationale", "expect": "linked", "gold": "a", "answer": "since"}
    assert points(probe, asked(ShownNote("x", "", neighbors=("a",))), "rationale") == 100
    assert (
        points(
            probe, asked(*[ShownNote(str(n), "") for n in range(5)], ShownNote("x", "", neighbors=("a",))), "rationale"
        )
        == 0
    )
    assert points(probe, asked(ShownNote("a", "since then")), "rationale") == 100


def test_a_window_is_half_open_and_leaks_nothing() -> None:
    probe = {
        "id": "R", "family": "temporal", "expect": "windowed", "gold": "a", "answer": "40",
        "window": {"after": 100, "before": 200},
    }  # fmt: skip
    assert points(probe, asked(ShownNote("a", "40", 100)), "temporal") == 100
    assert points(probe, asked(ShownNote("a", "40", 100), ShownNote("b", "", 200)), "temporal") == 0


def test_pairs_that_the_world_did_not_plant_are_counted_for_a_hundred_notes() -> None:
    ops = tuple({"op": "inscribe", "mode": "import", "record": note(key, key)} for key in ("a", "b", "w", "z-a", "c"))
    queue = [SuspectPair("a", "w"), SuspectPair("a", "b"), SuspectPair("b", "a"), SuspectPair("b", "c", "neutral")]
    graded = grade(world_of(case(positive=True), ops=ops), SystemReplies(queue=queue), ALL)
    assert graded.false_pairs_per_100 == 25


def small_world() -> dict[str, Any]:
    """One subject with a stale note, a chain of two, a release, and a file."""
    told = [
        (
            "inscribe",
            {"record": note("f0", "tiny brass door opener uses a spring of 40 coils", files=(DOOR,))},
        ),
        ("inscribe", {"record": note("s-f0", "tiny brass door opener uses a spring of 38 coils", day=-20)}),
        ("inscribe", {"record": note("g0", "large iron gate latch uses a gap of 3 inches")}),
        ("inscribe", {"record": note("v0", "round glass lamp shade uses a cord of 9 feet")}),
    ]
    ops: list[dict[str, Any]] = [{"op": op, "mode": "import", **more} for op, more in told]
    ops += [
        {"op": "link", "from": "f0", "to": "g0", "verb": "because"},
        {"op": "supersede", "old": "g0", "new": note("g1", "large iron gate latch uses a gap of 5 inches")},
        {"op": "settle"},
        {"op": "recall", "id": "R1", "query": "tiny brass door opener spring", "k": 10},
        {"op": "recall", "id": "R2", "query": "large iron gate latch gap", "k": 10},
        {"op": "recall_path", "id": "P1", "path": "src/door.rs", "k": 10},
        {"op": "lineage", "id": "L1", "key": "g1"},
        {"op": "suspects", "id": "S"},
        {"op": "release", "key": "v0", "reason": "sold"},
        {"op": "recall", "id": "R3", "query": "round glass lamp shade cord", "k": 10},
    ]
    probes = [
        {**GOLD, "id": "R1", "gold": "f0", "stale": "s-f0", "answer": "40 coils"},
        {"id": "R2", "expect": "current", "head": "g1", "retired": ["g0"], "answer": "5 inches"},
        {"id": "P1", "expect": "bound", "gold": ["f0"], "answers": ["40 coils"]},
        {"id": "L1", "expect": "lineage", "head": "g1", "retired": ["g0"]},
        {"id": "D1", "expect": "drifted", "gold": "f0", "stale": "s-f0"},
        {"id": "R3", "expect": "absent", "victim": "v0", "released": True, "answer": "9 feet"},
    ]
    return {"spec": {"base_ts": 1_790_000_000}, "ops": ops, "probes": probes}


async def test_tfidf_suspects_a_number_that_differs() -> None:
    suspicious = await replay(small_world(), TfIdf())
    assert suspicious.queue == [SuspectPair("f0", "s-f0")]
    assert [hit.text for hit in suspicious.recalled["R2"].hits] == ["large iron gate latch uses a gap of 5 inches"]


async def test_a_step_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="endorse"):
        await replay({"ops": [{"op": "endorse"}]}, TfIdf())


def test_a_world_through_the_products_own_service(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "world.json.gz"
    path.write_bytes(gzip.compress(json.dumps(small_world()).encode()))
    assert drift.main([str(path), "--embedder", "none", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    report = json.loads(line)
    assert {"file", "score", "columns", "false_pairs_per_100", "tfidf"} <= report.keys()
    columns = report["columns"]
    assert (columns["currency"], columns["deletion"]) == (100, 100)
    assert report["score"] == pytest.approx(sum(columns.values()), abs=0.5)


async def test_drift_product_similar_notes_are_marked_pairs(tmp_path: Path) -> None:
    settings = ServiceSettings.model_validate({"embedder": "none"})
    world = small_world()
    product = ProductSystem(tmp_path / "memory", settings, world["spec"]["base_ts"])
    try:
        queue = (await replay(world, product)).queue
    finally:
        await product.close()
    imported = {frozenset((pair.a, pair.b)) for pair in queue if pair.is_similar}
    assert frozenset(("f0", "s-f0")) in imported
    assert all(pair.is_similar for pair in queue if {pair.a, pair.b} != {"f0", "s-f0"})


def test_drift_report_grades_similar_pairs_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps(small_world()), "utf-8")
    assert drift.main([str(path), "--embedder", "none", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["with_similar"]["columns"]["drift"] == 100
    assert report["with_similar"]["false_pairs_per_100"] >= report["false_pairs_per_100"]


def test_a_person_sees_the_worst_world_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    world = small_world()
    good.write_text(json.dumps(world), "utf-8")
    world["probes"] = [{**GOLD, "id": "R1", "gold": "nowhere"}]
    bad.write_text(json.dumps(world), "utf-8")
    assert drift.main([str(good), str(bad), "--embedder", "none"]) == 0
    said = capsys.readouterr().out
    assert said.index("bad.json") < said.index("good.json")
    assert "tf-idf" in said


def test_a_file_that_is_no_world_ends_with_two(tmp_path: Path) -> None:
    path = tmp_path / "no.json"
    path.write_text("{}", "utf-8")
    with pytest.raises(SystemExit) as caught:
        drift.main([str(path)])
    assert caught.value.code == 2
