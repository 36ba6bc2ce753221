"""`tidy` and `archive`: what they show, do and take back, as text and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.cli.conftest import A, B, C, document, ids

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

D, E, F = "mem-00000000000d", "mem-00000000000e", "mem-00000000000f"


@pytest.fixture
def eve(cli: Run, tmp_path: Path) -> Run:
    """Return the command line for an agent of whom two old questions, a pair of twins and a decision are known."""
    entries: list[dict[str, Any]] = [
        {"id": A, "content": "Who pays the rent", "timestamp": "2020-01-10T12:00:00Z", "category": "question"},
        {"id": B, "content": "Who has the key", "timestamp": "2020-01-11T12:00:00Z", "category": "question"},
        {"id": C, "content": "The ledger is in MySQL.", "timestamp": "2020-01-12T12:00:00Z", "category": "decision"},
        {"id": D, "content": "Maria likes tea", "timestamp": "2020-01-13T12:00:00Z", "tags": ["drinks"]},
        {"id": E, "content": "Maria likes tea.", "timestamp": "2020-01-14T12:00:00Z", "tags": ["maria"]},
    ]
    file = tmp_path / "eve.jsonl"
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    cli("import", str(file), "--agent", "eve", "--trusted")
    return cli


def known(run: Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document(run("list", "--json", "--all"))["memories"]
    return sorted(found, key=lambda each: str(each["id"]))


def test_a_preview_says_what_why_and_how_and_does_nothing(eve: Run, root: Path) -> None:
    journal = (root / "eve" / "memories.yaml").read_bytes()
    shown = eve("archive", "tidy")
    assert f"{D} archive  says the same as {E}, which is newer" in shown.stdout
    assert "importance 0.23, category question" in shown.stdout
    assert "3 of 5 memories would be archived; nothing was done." in shown.stderr
    assert "`agent-memory archive tidy --apply` does it" in shown.stderr
    assert (root / "eve" / "memories.yaml").read_bytes() == journal
    assert not (root / "eve" / "archive.yaml").exists()
    plan = document(eve("archive", "tidy", "--json"))
    assert (plan["applied"], plan["run"], plan["memories"], plan["waiting"]) == (False, None, 5, 0)
    assert ids(eve("archive", "tidy", "--json"), "suggestions") == [D, B, A]
    assert plan["suggestions"][0]["into"] == E


def test_what_was_done_is_taken_back_with_every_field(eve: Run) -> None:
    before = known(eve)
    done = eve("archive", "tidy", "--apply")
    assert "Archived 3 memories, of which 1 say what others say." in done.stderr
    assert ids(eve("list", "--json"), "memories") == [E, C]
    assert ids(eve("archive", "list", "--json"), "archived") == [D, B, A]
    (run,) = document(eve("archive", "tidy", "--runs", "--json"))["runs"]
    assert run["id"] in done.stderr
    assert run["id"] in eve("archive", "tidy", "--runs").stdout
    assert "3 memories are back as they were." in eve("archive", "tidy", "--undo").stdout
    assert known(eve) == before
    assert eve("archive", "tidy", "--undo", code=3).stdout == ""
    assert "taken back already" in eve("archive", "tidy", "--undo", run["id"], code=1).stderr


def test_a_budget_leaves_the_rest_for_another_run(eve: Run) -> None:
    assert document(eve("archive", "tidy", "--budget", "1", "--json"))["waiting"] == 2
    assert "2 more wait for another run" in eve("archive", "tidy", "--budget", "1", "--apply").stderr
    assert ids(eve("archive", "list", "--json"), "archived") == [D]


def test_rules_come_from_a_file(eve: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "lifecycle:\n"
        "  cleanup: {merge_duplicates: false, min_importance_threshold: 0.1}\n"
        "  retention:\n  - {category: decision, archive_after_days: 30}\n"
    )
    assert ids(eve("archive", "tidy", "--rules", str(rules), "--json"), "suggestions") == [C]
    rules.write_text("retention: [{category: decision, archive_after_days: 0}]\n")
    assert "archive_after_days" in eve("archive", "tidy", "--rules", str(rules), code=1).stderr
    rules.write_text("- one\n")
    eve("archive", "tidy", "--rules", str(rules), code=2)
    eve("archive", "tidy", "--rules", str(tmp_path / "none.yaml"), code=1)
    rules.write_text("")
    assert ids(eve("archive", "tidy", "--rules", str(rules), "--json"), "suggestions") == [D, B, A]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"lifecycle: [", ": This is not YAML in line 2"),
        (b"lifecycle:\n  budget: &many 5\n  cleanup: {max_entries: *many}\n", ": This is not YAML in line 3"),
        (b"a: 1\n--- \nb: 1\n", ": This is not YAML in line 2"),
        (b"budget: \xff\n", " is not UTF-8 text"),
    ],
)
def test_rules_that_cannot_be_read_name_their_file(eve: Run, tmp_path: Path, content: bytes, said: str) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_bytes(content)
    told = eve("archive", "tidy", "--apply", "--rules", str(rules), code=1).stderr
    assert f"{rules}{said}" in " ".join(told.split())
    assert "Nothing was tidied." in told


@pytest.mark.parametrize(
    "wrong", [["--apply", "--undo"], ["--runs", "--undo"], ["run-000000000001"], ["--delete"], ["--budget", "0"]]
)
def test_what_does_not_go_together_is_wrong_usage(eve: Run, wrong: list[str]) -> None:
    assert eve("archive", "tidy", *wrong, code=2).stdout == ""


def test_nothing_to_tidy_is_said(cli: Run) -> None:
    cli("store", "Maria likes tea.", "--agent", "eve")
    assert "Nothing to tidy among 1 memory." in cli("archive", "tidy").stderr
    assert "Nothing was done. There is nothing to tidy among 1 memory." in cli("archive", "tidy", "--apply").stderr
    assert "Nothing was tidied yet." in cli("archive", "tidy", "--runs").stderr


def test_what_is_proposed_for_deletion_goes_with_a_word_of_its_own(eve: Run, tmp_path: Path) -> None:
    eve("archive", "tidy", "--apply")
    rules = tmp_path / "rules.yaml"
    rules.write_text("cleanup: {archive_old_entries_days: 90}\n")  # no time in the archive is asked for
    shown = eve("archive", "tidy", "--rules", str(rules))
    assert f"{A} delete from the archive" in shown.stdout
    assert "3 archived memories would be deleted: --apply --delete." in shown.stderr
    assert "Nothing was done." in eve("archive", "tidy", "--apply", "--rules", str(rules)).stderr
    assert "deleted 3 memories" in eve("archive", "tidy", "--apply", "--delete", "--rules", str(rules)).stderr.lower()
    assert "The archive is empty." in eve("archive", "list").stderr
    assert "3 memories are in the archive again." in eve("archive", "tidy", "--undo").stdout


def test_memories_are_archived_found_and_brought_back_by_hand(eve: Run) -> None:
    assert "Archived 1 memory." in eve("archive", "add", C, "--reason", "it is in PostgreSQL now").stdout
    assert document(eve("search", "ledger", "--json", code=3))["results"] == []
    assert ids(eve("archive", "search", "ledger", "--json")) == [C]
    assert "The ledger is in MySQL." in eve("archive", "search", "ledger").stdout
    assert "it is in PostgreSQL now" in eve("archive", "list").stdout
    assert "1 memory" in eve("archive", "stats").stdout
    assert document(eve("archive", "stats", "--json"))["by_rule"] == {"asked": 1}
    eve("archive", "search", "xylophone", code=3)
    assert C in eve("archive", "restore", C[-1:].rjust(12, "0")).stdout
    assert ids(eve("search", "ledger", "--json")) == [C]
    eve("archive", "restore", C, code=3)
    assert eve("archive", "restore", "0000", code=3).stdout == ""


def test_of_many_a_part_is_listed(eve: Run) -> None:
    eve("archive", "add", A, B, C)
    assert len(ids(eve("archive", "list", "-n", "2", "--json"), "archived")) == 2
    assert "2 of 3" in eve("archive", "list", "-n", "2").stderr
    assert "IDs begin with" in eve("archive", "restore", "mem-0000", code=2).stderr


def test_the_history_of_an_archived_memory_says_so(eve: Run) -> None:
    eve("archive", "add", C)
    assert "archived" in eve("history", C).stdout
    assert "forgotten" not in eve("history", C).stdout


def test_a_search_finds_what_is_archived_where_that_is_asked_for(eve: Run) -> None:
    eve("archive", "add", C)
    assert document(eve("search", "tea", "--json", "--archived"))["archived"] == []
    found = document(eve("search", "ledger", "--archived", "--json"))
    assert ([each["id"] for each in found["archived"]], found["results"]) == ([C], [])
    assert "In the archive:\nThe ledger is in MySQL." in eve("search", "ledger", "--archived").stdout
    assert "archived" not in document(eve("search", "tea", "--json"))


def test_the_status_counts_what_is_archived(eve: Run) -> None:
    assert "looks into it" not in eve("status").stdout
    eve("archive", "add", A, C)
    assert "2 memories; `agent-memory archive` looks into it" in eve("status").stdout
    assert document(eve("status", "--json"))["archived"] == 2


def test_restore_brings_an_archived_memory_back_too(eve: Run) -> None:
    eve("archive", "add", C)
    assert f"Restored from the archive: {C}." in eve("restore", C).stdout
    eve("archive", "add", C)
    assert document(eve("restore", "mem-00000000000c", "--json"))["restored"] == [C]
    assert C in ids(eve("list", "--json"), "memories")


def test_an_archived_memory_is_forgotten_like_every_other_one(eve: Run, root: Path) -> None:
    eve("archive", "add", A, C)
    assert "needs a yes" in eve("forget", C, code=2).stderr
    told = eve("forget", C, B, "--yes", "--reason", "it moved")
    assert f"Forgot {C}, which was archived." in told.stdout
    assert f"agent-memory undo {C}" in told.stderr
    assert ids(eve("archive", "list", "--json"), "archived") == [A]
    assert set(ids(eve("restore", "--json"), "forgotten")) == {B, C}
    eve("forget", A, "--yes", "--now")
    for name in ("memories.yaml", "archive.yaml"):
        text = (root / "eve" / name).read_text()
        assert not any(word in text for word in ("the rent", "ledger", "the key"))


def test_forgetting_takes_along_what_was_merged_into_it(eve: Run) -> None:
    eve("archive", "tidy", "--apply")
    assert D in ids(eve("archive", "list", "--json"), "archived")
    eve("forget", E, "--yes")
    assert ids(eve("archive", "list", "--json"), "archived") == [B, A]
    assert document(eve("search", "tea", "--archived", "--json", code=3))["archived"] == []


def test_an_export_carries_the_archive_and_an_import_brings_it_back(eve: Run, tmp_path: Path) -> None:
    eve("archive", "tidy", "--apply")
    before = document(eve("archive", "list", "--json", "-a", "eve"))["archived"]
    for name in ("one.jsonl", "two.yaml"):
        file, other = str(tmp_path / name), name.partition(".")[0]
        assert "3 archived memories" in eve("export", file, "-a", "eve").stdout
        left = eve("import", file, "-a", other)
        assert "Skipped 3 archived memories: only with --trusted." in left.stderr
        tried = eve("import", file, "-a", other, "--trusted", "--dry-run")
        assert "Would import 3 archived memories." in tried.stderr
        eve("import", file, "-a", other, "--trusted")
        brought = document(eve("archive", "list", "--json", "-a", other))["archived"]
        assert [{**each, "agent_id": "eve"} for each in brought] == before
        assert "archived" not in eve("import", file, "-a", other, "--trusted").stderr
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"kind": "archived", "id": "mem-000000000001"}\n')
    assert "content" in eve("import", str(broken), "-a", "eve", "--trusted", code=1).stderr


def test_what_is_live_or_was_forgotten_stays_so_where_an_archive_comes_in(eve: Run, tmp_path: Path) -> None:
    eve("archive", "add", A, C)
    eve("export", str(tmp_path / "out.jsonl"))
    eve("restore", A)
    eve("forget", C, "--yes")
    eve("import", str(tmp_path / "out.jsonl"), "--trusted", "-a", "eve")
    assert document(eve("archive", "list", "--json"))["archived"] == []


def test_a_copy_of_an_agent_has_its_archive_and_the_doctor_reads_it(eve: Run, root: Path) -> None:
    eve("archive", "add", A, C)
    eve("agents", "copy", "eve", "carol")
    copied, own = (ids(eve("archive", "list", "--json", "-a", each), "archived") for each in ("carol", "eve"))
    assert copied == own == [C, A]
    eve("archive", "restore", A, "-a", "eve")
    shown = eve("doctor", "-v", "-a", "eve").stdout
    assert "archive.yaml" in shown
    assert "forgotten" not in shown, "what was moved was not"
    with (root / "eve" / "archive.yaml").open("a") as file:
        file.write("--- nonsense\n")
    assert "archive.yaml" in eve("doctor", "-a", "eve", code=1).stdout


def test_a_compaction_takes_the_archive_along(eve: Run, root: Path) -> None:
    eve("archive", "add", C)
    eve("archive", "restore", C)
    assert "ledger" in (root / "eve" / "archive.yaml").read_text()
    eve("archive", "compact", "--now", "--yes")
    assert "ledger" not in (root / "eve" / "archive.yaml").read_text()
    eve("archive", "compact")


def test_a_wrong_rule_says_what_to_correct_and_that_nothing_was_done(bob: Run, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("lifecycle: {budget: much}\n")
    told = bob("archive", "tidy", "--apply", "--rules", str(rules), "-a", "bob", code=1).stderr
    assert "budget" in told
    assert "Nothing was tidied." in told
    assert "memory stays off" not in told
