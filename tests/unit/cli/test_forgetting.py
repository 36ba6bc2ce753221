"""`forget WORDS` and `--reason`, what `restore` lists of it, and what of it a file carries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from agent_memory.cli.formats import decode
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


@pytest.fixture
def ann(cli: Run) -> Run:
    """Return `agent-memory` for an agent with memories of two people."""
    base = ("--agent", "ann")

    def run(command: str, *arguments: str, **options: object) -> object:
        return cli(command, *base, *arguments, **options)  # type: ignore[arg-type]

    for text in ("Ann's badge is K-12.", "Ann drives a blue van.", "Zoe's badge is K-77."):
        run("store", text)
    return run  # type: ignore[return-value]


def texts(run: Run) -> list[str]:
    return sorted(each["content"] for each in document(run("list", "--json"))["memories"])


@pytest.mark.parametrize("arguments", [("Ann's badge",), ("Ann's", "badge"), ("--matching", "Ann's badge")])
def test_forget_words_without_terminal_lists_candidates_only(ann: Run, arguments: tuple[str, ...]) -> None:
    listed = ann("forget", *arguments, code=1)
    assert "Ann's badge is K-12." in listed.stdout
    assert "owner: Zoe" in listed.stdout
    assert "Nothing was forgotten." in listed.stderr
    assert len(texts(ann)) == 3


def test_forget_words_with_yes_and_two_strong_candidates_refuses(ann: Run) -> None:
    ann("store", "Ann's badge was lost in May.")
    refused = ann("forget", "Ann's badge", "--yes", code=1)
    assert "candidates match strongly. --yes needs exactly one strong match" in refused.stderr
    assert "Ann's badge is K-12." in refused.stdout
    assert len(texts(ann)) == 4


def test_forget_words_with_yes_and_another_owner_refuses(ann: Run) -> None:
    ann("store", "Kim's landlord's phone number is 555 0199.")
    refused = document(ann("forget", "Kim's phone number", "--yes", "--json", code=1))
    assert (refused["forgotten"], refused["forget"]) == (False, [])
    assert [candidate["owner"] for candidate in refused["candidates"]] == ["Kim's landlord"]
    assert len(texts(ann)) == 4


def test_forget_words_with_yes_forgets_the_only_match(ann: Run) -> None:
    ann("store", "Kim's bike is red.")
    outcome = document(ann("forget", "Kim's bike", "--yes", "--json"))
    assert (outcome["forgotten"], outcome["count"]) == (True, 1)
    assert [memory["content"] for memory in outcome["forget"]] == ["Kim's bike is red."]
    assert outcome["kept_until"]
    assert len(texts(ann)) == 3
    ann("restore", outcome["forget"][0]["memory_id"])
    assert "Kim's bike is red." in texts(ann)


def test_forget_words_prints_texts_kept_ones_and_undo(ann: Run) -> None:
    ann("store", "Kim's bike is red.")
    outcome = ann("forget", "Kim's bike", "--yes")
    assert "Forgot mem-" in outcome.stdout
    assert "Kim's bike is red." in outcome.stdout
    assert "Undo: agent-memory undo mem-" in outcome.stderr


@pytest.mark.parametrize("word", ["dad", "Facade"])
def test_forget_word_of_hex_letters_is_a_description(ann: Run, word: str) -> None:
    ann("store", f"The {word} is in Lisbon.")
    assert f"The {word} is in Lisbon." in ann("forget", word, code=1).stdout
    assert len(texts(ann)) == 4


def test_forget_words_without_match_forgets_nothing(ann: Run) -> None:
    assert "No memory matches; nothing was forgotten." in ann("forget", "the lighthouse", "--yes", code=1).stderr
    assert len(texts(ann)) == 3


def test_forget_id_next_to_words_is_an_unknown_id(ann: Run) -> None:
    assert "No memory" in ann("forget", "mem-00000000000a", "badge", "--yes", code=3).stderr
    assert len(texts(ann)) == 3


@pytest.mark.parametrize("arguments", [(), ("mem-00000000000a", "--matching", "tea")])
def test_it_takes_an_id_or_words(ann: Run, arguments: tuple[str, ...]) -> None:
    assert "--matching" in ann("forget", *arguments, code=2).stderr


def test_a_reason_stays_when_the_text_is_gone_and_a_file_takes_it_along(ann: Run, cli: Run, tmp_path: Path) -> None:
    badge = next(each["id"] for each in document(ann("list", "--json"))["memories"] if "K-77" in each["content"])
    gone = document(ann("forget", badge, "--reason", "she left", "--yes", "--json"))
    (row,) = document(ann("restore", "--json"))["forgotten"]
    assert (row["content"], row["reason"]) == ("Zoe's badge is K-77.", "she left")
    assert "she left" in ann("restore").stdout
    ann("compact", "--now", "--yes")
    (row,) = document(ann("restore", "--json"))["forgotten"]
    assert (row["id"], row["reason"]) == (gone["memory_id"], "she left")
    assert "content" not in row
    assert "its text is deleted" in ann("restore").stdout

    for suffix in ("jsonl", "yaml"):
        file = tmp_path / f"all.{suffix}"
        ann("export", str(file))
        assert "K-77" not in file.read_text()
        other = ("--agent", f"b{suffix}")
        assert "1 trace" in cli("import", *other, str(file)).stderr
        assert "she left" not in cli("store", *other, "zoe's badge is K-77.", "--json").stdout
        third = ("--agent", f"c{suffix}")
        cli("import", *third, str(file), "--trusted")
        stored = cli("store", *third, "zoe's badge is K-77.")
        assert "she left" in stored.stderr
        assert document(cli("store", *third, "Tea at four.", "--json"))["released"] is None


def test_what_is_no_trace_is_refused() -> None:
    wrong = [{"id": "mem-00000000000a", "released": each} for each in (None, {}, {"at": "x"}, "text")]
    wrong += [{"id": "no id", "released": {"at": "2026-01-01T00:00:00+00:00", "reason": "", "salt": "", "hash": ""}}]
    lines = "".join(json.dumps(each) + "\n" for each in wrong).encode()
    found = list(decode(lines, "jsonl", "ann"))
    assert [each.trace for each in found] == [None] * len(wrong)
    assert all(each.problem for each in found)


def test_archived_and_matching_memory_is_named_and_stays(ann: Run, cli: Run) -> None:
    known = {each["content"]: each["id"] for each in document(ann("list", "--json"))["memories"]}
    one = known["Ann's badge is K-12."]
    cli("archive", "add", one, "--agent", "ann")
    told = ann("forget", "Ann's badge", code=1)
    assert f"{one}: archived; not forgotten" in told.stderr
    assert f"`agent-memory forget {one} -a ann`" in told.stderr
    assert document(ann("forget", "Ann's badge", "--json", code=1))["archived"] == [one]
    ann("forget", one, "--yes")
    assert document(ann("forget", "Ann's badge", "--json", code=1))["archived"] == []


def test_forget_all_counts_asks_and_comes_back(ann: Run) -> None:
    refused = ann("forget", "--all", code=2)
    assert "3 memories: note 3." in refused.stderr
    assert "the input is not a terminal" in refused.stderr
    assert len(texts(ann)) == 3

    said = document(ann("forget", "--all", "--yes", "--json"))

    assert (said["forgotten"], said["count"], said["by_category"]) == (True, 3, {"note": 3})
    assert texts(ann) == []
    gone = document(ann("restore", "--json"))["forgotten"]
    ann("restore", gone[0]["id"])
    assert len(texts(ann)) == 3


def test_forget_all_next_to_an_id_is_refused(ann: Run) -> None:
    assert "Invalid value for ID" in ann("forget", "--all", "mem-000000000000", code=2).stderr


@pytest.mark.parametrize("command", [("list",), ("overview",), ("search",)])
def test_empty_memory_after_forgetting_names_undo(ann: Run, command: tuple[str, ...]) -> None:
    ann("forget", "--all", "--yes")
    said = " ".join(ann(*command).stderr.split())
    assert said.startswith("No memories. 3 were forgotten: run `agent-memory undo")
    assert "yet" not in said


def test_overview_shows_a_long_memory_beyond_a_model_line(ann: Run) -> None:
    text = "Renew the TLS certificate of the staging server before the end of November."
    ann("store", text)
    assert text in ann("overview").stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [("blue van", "your words name no owner"), ("Kim's badge K-77", "the strong match is about Zoe")],
)
def test_forget_words_with_yes_names_reason(ann: Run, words: str, reason: str) -> None:
    ann("store", "The printer is on the second floor.")
    assert reason in ann("forget", words, "--yes", code=1).stderr


@pytest.mark.parametrize(
    "command", [("forget", "top-377b12ab", "--yes"), ("show", "res-377b12ab"), ("pin", "epi-377b")]
)
def test_id_of_another_kind_hints_at_why(ann: Run, command: tuple[str, ...]) -> None:
    said = " ".join(ann(*command, code=3).stderr.split())
    assert f"No memory '{command[1]}'" in said
    assert f"`agent-memory why {command[1]}" in said


@pytest.mark.parametrize(("command", "option"), [("store", "--tag"), ("list", "--tag"), ("update", "--untag")])
def test_empty_tag_is_refused(ann: Run, command: str, option: str) -> None:
    (memory_id, *_) = (each["id"] for each in document(ann("list", "--json"))["memories"])
    arguments = {"store": ("text",), "list": (), "update": (memory_id,)}[command]
    assert "a tag is empty" in ann(command, *arguments, option, "", code=2).stderr
    assert len(texts(ann)) == 3
