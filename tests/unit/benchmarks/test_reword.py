"""Worlds in other words: what titles say is understood, and every rewording keeps the facts."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.reword import benchmark as reword
from benchmarks.reword.reading import ClaimReader, TitleClaim, carried
from benchmarks.reword.rewording import RewordingFrames, base, ing, names, value

SUBJECT = "tiny brass door opener"
SET = {"s": SUBJECT, "slot": "spring load", "n": "40", "unit": "seconds"}
TITLES = {
    f"{SUBJECT} uses a spring load of 40 seconds — seen twice by the same person": TitleClaim("setting", SET),
    f"{SUBJECT} keeps a spring load of 40 seconds": TitleClaim("setting.again", SET),
    f"{SUBJECT} is configured with 40 seconds": TitleClaim(
        "setting.bare", {"s": SUBJECT, "n": "40", "unit": "seconds"}
    ),
    f"{SUBJECT} keeps its spring load at 40 seconds": TitleClaim("setting.converted", SET),
    f"{SUBJECT} must never slam shut, which is why": TitleClaim("rule", {"s": SUBJECT, "do": "slam shut"}),
    f"{SUBJECT} may freely slam shut": TitleClaim("rule.may", {"s": SUBJECT, "do": "slam shut"}),
    f"{SUBJECT} drops its pin when it rains, so none gets wet": TitleClaim(
        "fault", {"s": SUBJECT, "pred": "drops its pin", "when": "when it rains"}
    ),
    f"{SUBJECT}: drops its pin — never observed, in any environment": TitleClaim(
        "fault.stale", {"s": SUBJECT, "pred": "drops its pin"}
    ),
    f"{SUBJECT} drops its pin under load": TitleClaim(
        "issue", {"s": SUBJECT, "pred": "drops its pin", "when": "under load"}
    ),
    f"{SUBJECT} no longer drops its pin": TitleClaim("issue.over", {"s": SUBJECT, "pred": "drops its pin"}),
    f"{SUBJECT} creaks because the oil is old": TitleClaim(
        "cause", {"s": SUBJECT, "pred": "creaks", "cause": "the oil is old"}
    ),
    f"{SUBJECT} creaks, and the oil is old is not why": TitleClaim(
        "cause.stale", {"s": SUBJECT, "pred": "creaks", "cause": "the oil is old"}
    ),
    f"It is not the case that the {SUBJECT} must never slam shut.": TitleClaim(
        "denied", inner=TitleClaim("rule", {"s": SUBJECT, "do": "slam shut"})
    ),
}


@pytest.mark.parametrize(("title", "claim"), TITLES.items())
def test_a_title_is_read_for_what_it_claims(title: str, claim: TitleClaim) -> None:
    assert ClaimReader({"under load"}).claim(title) == claim


def test_two_claims_in_one_title_are_about_one_subject() -> None:
    title = f"{SUBJECT} drops its pin; separately, operators report that it no longer drops its pin"
    claim = ClaimReader(set()).claim(title)
    assert claim is not None
    assert claim.rest == TitleClaim("no.issue", {"s": SUBJECT, "pred": "drops its pin"})


def test_a_title_of_no_known_form_is_none() -> None:
    assert ClaimReader(set()).claim("Buy milk") is None


def test_a_sentence_of_a_body_is_taken_for_what_it_carries() -> None:
    assert carried("Not negotiable: the hinge is brittle.") == ("ban", {"reason": "the hinge is brittle"})
    assert carried("It has been raining.") is None


@pytest.mark.parametrize(
    ("third", "plain", "with_ing"),
    [
        ("drops its pin", "drop its pin", "dropping its pin"),
        ("loses a key", "lose a key", "losing a key"),
        ("re-emits all", "re-emit all", "re-emitting all"),
        ("echoes", "echo", "echoing"),
        ("flushes twice", "flush twice", "flushing twice"),
        ("carries on", "carry on", "carrying on"),
    ],
)
def test_verbs_change_their_form(third: str, plain: str, with_ing: str) -> None:
    assert (base(third), ing(plain)) == (plain, with_ing)


@pytest.mark.parametrize(
    ("number", "unit", "style", "written"),
    [
        (42, "blocks", "words", "forty-two blocks"),
        (1200, "blocks", "words", "1,200 blocks"),
        (90, "seconds", "short", "90 s"),
        (90, "seconds", "split", "1 min 30 s"),
        (120, "seconds", "split", "2 min"),
        (12, "seconds", "split", "12 seconds"),
    ],
)
def test_quantities_are_written_as_the_frames_ask(number: int, unit: str, style: str, written: str) -> None:
    assert value(number, unit, style) == written


@pytest.mark.parametrize("name", names())
def test_every_rewording_has_words_for_every_claim(name: str) -> None:
    frames, reader = RewordingFrames(name), ClaimReader({"under load"})
    for title in TITLES:
        claim = reader.claim(title)
        assert claim is not None
        for key in "abcdefgh":  # each chooses its own frame
            text = " ".join(frames.note(claim, title, "Found the hard way.", key)).lower()
            assert SUBJECT in text
            assert "{" not in text


def test_rewordings_have_the_same_claims_and_no_sentence_in_common() -> None:
    every = [RewordingFrames(name) for name in names()]
    assert len(every) >= 3
    assert len({frozenset(frames.frames) for frames in every}) == 1
    sentences = [text for frames in every for texts in frames.frames.values() for text in texts]
    assert len(sentences) == len(set(sentences))


def world() -> dict[str, Any]:
    record = {
        "key": "f0", "kind": "Decision", "title": f"{SUBJECT} uses a spring load of 90 seconds", "code_refs": [],
        "body": "Chosen deliberately: the hinge is old, so anything larger breaks it. Some other words.",
        "created_at": 0, "open": False,
    }  # fmt: skip
    again = {**record, "key": "z-f0"}
    ops = [{"op": "inscribe", "mode": "import", "record": each} for each in (record, again)]
    gold = {"id": "R1", "expect": "gold", "gold": "f0", "phrasing": "lexical", "answer": "90 seconds"}
    bound = {"id": "P1", "expect": "bound", "gold": ["f0"], "answers": ["90 seconds"]}
    return {"spec": {}, "digest": "d", "ops": ops, "probes": [gold, bound]}


@pytest.mark.parametrize("name", names())
def test_answers_follow_and_what_is_written_again_is_the_same(name: str) -> None:
    told = world()
    assert reword.reword(told, RewordingFrames(name)) == []
    first, again = (step["record"] for step in told["ops"])
    assert (first["title"], first["body"]) == (again["title"], again["body"])
    text = f"{first['title']}\n{first['body']}".lower()
    assert "uses a" not in text
    assert "the hinge is old" in text
    assert told["probes"][0]["answer"].lower() in text
    assert told["probes"][1]["answers"][0].lower() in text


def test_what_cannot_be_read_is_told_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = world()
    told["ops"][0]["record"]["title"] = "Buy milk"
    source, out = tmp_path / "in.json", tmp_path / "out.json.gz"
    source.write_text(json.dumps(told), "utf-8")
    monkeypatch.setattr("sys.argv", ["reword", str(source), "--frames", names()[0], "-o", str(out)])
    assert reword.main() == 1
    assert "Buy milk" in capsys.readouterr().err
    assert reword.read_world(out)["digest"] == f"d-{names()[0]}"
