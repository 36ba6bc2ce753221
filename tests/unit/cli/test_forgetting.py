"""`forget --matching` and `--reason`, what `restore` lists of it, and what of it a file carries."""

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
    """Return `agent-memory` for an agent who knows three things about two people."""
    base = ("--agent", "ann")

    def run(command: str, *arguments: str, **options: object) -> object:
        return cli(command, *base, *arguments, **options)  # type: ignore[arg-type]

    for text in ("Ann's badge is K-12.", "Ann has badge K-12 and drives a van.", "Anna's badge is K-77."):
        run("store", text)
    return run  # type: ignore[return-value]


def texts(run: Run) -> list[str]:
    return sorted(each["content"] for each in document(run("list", "--json"))["memories"])


def test_what_words_mean_is_forgotten_and_comes_back(ann: Run) -> None:
    said = document(ann("forget", "--matching", "Ann's badge", "--yes", "--json"))
    assert said["forgotten"] is True
    assert [each["remains"] for each in said["change"]] == ["Ann drives a van."]
    assert texts(ann) == ["Ann drives a van.", "Anna's badge is K-77."]

    ann("restore", said["forget"][0]["memory_id"])

    assert texts(ann) == ["Ann has badge K-12 and drives a van.", "Ann's badge is K-12.", "Anna's badge is K-77."]


def test_a_restore_names_what_else_came_back(ann: Run) -> None:
    said = document(ann("forget", "--matching", "Ann's badge", "--yes", "--json"))
    cut = said["change"][0]["memory_id"]
    assert f"is back, and {cut} with it." in ann("restore", said["forget"][0]["memory_id"]).stdout


def test_a_restore_of_what_was_only_changed_names_what_else_came_back(ann: Run) -> None:
    ann("store", "Kim sings in a choir and drives a van.")
    said = document(ann("forget", "--matching", "who drives a van", "--yes", "--json"))
    one, other = [each["memory_id"] for each in said["change"]]
    assert (said["forget"], len(texts(ann))) == ([], 4)
    assert "of what was only changed, name its id" in " ".join(ann("restore").stderr.split())
    assert f"content, and {other} with it." in " ".join(ann("restore", one).stdout.split())


def test_what_is_done_without_a_question_is_shown_as_well(ann: Run) -> None:
    done = ann("forget", "--matching", "Ann's badge", "--yes")
    assert "Ann's badge is K-12." in done.stderr
    assert "Ann drives a van." in done.stderr


def test_a_preview_says_what_has_replaced_a_memory_and_stays(ann: Run) -> None:
    old = document(ann("store", "The tea is kept in the cellar.", "--json"))["memory_id"]
    new = document(ann("store", "Green leaves: see shelf nine.", "--supersedes", old, "--json"))["memory_id"]
    said = ann("forget", "--matching", "tea in the cellar", code=2).stderr
    assert f"{new}, which has replaced it, stays" in said


def test_without_a_terminal_the_preview_is_all_that_happens(ann: Run) -> None:
    said = ann("forget", "--matching", "Ann's badge", code=2)
    assert "Ann drives a van." in said.stderr
    assert "Nothing was forgotten" in said.stderr
    assert len(texts(ann)) == 3


def test_words_that_mean_nothing_forget_nothing(ann: Run) -> None:
    assert "nothing was forgotten" in ann("forget", "--matching", "Zoe's badge", "--yes", code=1).stderr
    assert len(texts(ann)) == 3


@pytest.mark.parametrize("arguments", [(), ("mem-00000000000a", "--matching", "tea")])
def test_it_takes_an_id_or_words(ann: Run, arguments: tuple[str, ...]) -> None:
    assert "--matching" in ann("forget", *arguments, code=2).stderr


def test_a_reason_stays_when_the_text_is_gone_and_a_file_takes_it_along(ann: Run, cli: Run, tmp_path: Path) -> None:
    gone = document(ann("forget", "--matching", "Anna's badge", "--reason", "she left", "--yes", "--json"))
    (row,) = document(ann("restore", "--json"))["forgotten"]
    assert (row["content"], row["reason"]) == ("Anna's badge is K-77.", "she left")
    assert "she left" in ann("restore").stdout
    ann("compact", "--now", "--yes")
    (row,) = document(ann("restore", "--json"))["forgotten"]
    assert (row["id"], row["reason"]) == (gone["forget"][0]["memory_id"], "she left")
    assert "content" not in row
    assert "its text is gone" in ann("restore").stdout

    for suffix in ("jsonl", "yaml"):
        file = tmp_path / f"all.{suffix}"
        ann("export", str(file))
        assert "K-77" not in file.read_text()
        other = ("--agent", f"b{suffix}")
        assert "1 trace" in cli("import", *other, str(file)).stderr
        assert "she left" not in cli("store", *other, "anna's badge is K-77.", "--json").stdout
        third = ("--agent", f"c{suffix}")
        cli("import", *third, str(file), "--trusted")
        stored = cli("store", *third, "anna's badge is K-77.")
        assert "she left" in stored.stderr
        assert document(cli("store", *third, "Tea at four.", "--json"))["released"] is None


def test_what_is_no_trace_is_refused() -> None:
    wrong = [{"id": "mem-00000000000a", "released": each} for each in (None, {}, {"at": "x"}, "text")]
    wrong += [{"id": "no id", "released": {"at": "2026-01-01T00:00:00+00:00", "reason": "", "salt": "", "hash": ""}}]
    lines = "".join(json.dumps(each) + "\n" for each in wrong).encode()
    found = list(decode(lines, "jsonl", "ann"))
    assert [each.trace for each in found] == [None] * len(wrong)
    assert all(each.problem for each in found)


def test_what_is_archived_and_meant_is_named_and_stays(ann: Run, cli: Run) -> None:
    known = {each["content"]: each["id"] for each in document(ann("list", "--json"))["memories"]}
    one = known["Ann's badge is K-12."]
    cli("archive", "add", one, "--agent", "ann")
    told = ann("forget", "--matching", "Ann's badge", "--yes")
    assert f"{one}: in the archive, and stays there" in told.stderr
    assert f"`agent-memory forget {one} -a ann`" in told.stderr
    assert document(ann("forget", "--matching", "Ann's badge", "--json", code=1))["archived"] == [one]
    ann("forget", one, "--yes")
    assert document(ann("forget", "--matching", "Ann's badge", "--json", code=1))["archived"] == []


def test_forget_all_counts_asks_and_comes_back(ann: Run) -> None:
    refused = ann("forget", "--all", code=2)
    assert "3 memories: note 3." in refused.stderr
    assert "there is no terminal to ask on" in refused.stderr
    assert len(texts(ann)) == 3

    said = document(ann("forget", "--all", "--yes", "--json"))

    assert (said["forgotten"], said["count"], said["by_category"]) == (True, 3, {"note": 3})
    assert texts(ann) == []
    gone = document(ann("restore", "--json"))["forgotten"]
    ann("restore", gone[0]["id"])
    assert len(texts(ann)) == 3


def test_forget_all_next_to_an_id_is_refused(ann: Run) -> None:
    assert "Invalid value for ID" in ann("forget", "--all", "mem-000000000000", code=2).stderr
