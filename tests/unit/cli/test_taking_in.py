"""`ingest`: what cannot be taken in is told as it is, and what groups gave is told apart."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from agent_memory.cli.runtime import AgentContext
from tests.unit.cli.conftest import document

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run


def test_of_an_empty_file_nothing_else_was_taken_in(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.md").write_text("")
    told = cli("ingest", "-a", "eve", str(tmp_path / "empty.md"), code=1).stderr
    assert "Not ingested: empty.md is empty, or no text." in told
    assert "All else" not in told


def test_ingest_empty_folder_takes_nothing_in(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    assert "Nothing was ingested" in cli("ingest", "-a", "eve", str(folder), code=1).stderr


def test_a_long_text_has_to_be_split(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("The boat is blue. " * 60_000)
    assert "so it has to be split" in cli("ingest", "-a", "eve", str(tmp_path / "long.txt"), code=1).stderr


def test_a_group_that_no_session_can_have_takes_nothing_in(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("The boat is blue.")
    told = cli("ingest", "-a", "eve", "--group", "my friends", str(tmp_path / "note.md"), code=1)
    assert "such as acme:7f3a; nothing was stored. [invalid_group]" in told.stderr
    assert document(cli("knowledge", "resources", "-a", "eve", "--json", code=1)).keys() == {"error"}


def test_the_group_of_what_was_given_is_listed(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("The boat is blue.")
    cli("ingest", "-a", "eve", str(tmp_path / "note.md"))
    cli("ingest", "-a", "eve", "--group", "acme:7f3a", str(tmp_path / "note.md"))
    lines = [line for line in cli("knowledge", "resources", "-a", "eve").stdout.splitlines() if line.startswith("res-")]
    assert sorted(line.endswith("17 characters · group acme:7f3a") for line in lines) == [False, True]


@pytest.mark.parametrize(("names", "whose"), [(["a"], "1 resource, with its"), (["a", "b"], "2 resources, with their")])
def test_who_is_asked_reads_a_sentence(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], whose: str
) -> None:
    monkeypatch.setattr(AgentContext, "need_terminal", lambda *_: None)
    for name in names:
        (tmp_path / f"{name}.md").write_text(f"The boat {name} is blue.")
        cli("ingest", "-a", "eve", str(tmp_path / f"{name}.md"))
    asked = cli("ingest", "-a", "eve", "--undo", *(f"{name}.md" for name in names), given="n\n", code=1)
    assert f"Forget {whose} turns and what was extracted from" in asked.output


def test_link_out_of_a_folder_is_named_and_left_out(cli: Run, tmp_path: Path) -> None:
    folder, private = tmp_path / "notes", tmp_path / "private"
    folder.mkdir()
    private.mkdir()
    (private / "keys.txt").write_text("The spare key is under the mat.")
    (folder / "boat.md").write_text("The boat is blue.")
    (folder / "link.txt").symlink_to(private / "keys.txt")
    (folder / "more").symlink_to(private)
    (folder / "own.md").symlink_to(folder / "boat.md")
    (folder / ".env").write_text("The spare key is under the mat.")
    (folder / "settings.txt").symlink_to(folder / ".env")
    answer = document(cli("ingest", "-a", "eve", "--json", str(folder)))
    assert sorted(link.rpartition("/")[2] for link in answer["links"]) == ["link.txt", "more", "settings.txt"]
    assert [file["file"].rpartition("/")[2] for file in answer["files"]] == ["boat.md", "own.md"]
    assert "spare key" not in cli("knowledge", "resources", "-a", "eve", "--json").stdout
    assert (
        "3 links lead out of the folder or to hidden files: more, link.txt, settings.txt. They were left out."
        in cli("ingest", "-a", "eve", str(folder)).stderr
    )
    assert "1 ingested" in cli("ingest", "-a", "eve", str(folder / "link.txt")).stdout


def test_ingest_of_a_second_file_with_the_id_names_the_first(cli: Run, tmp_path: Path) -> None:
    for name, color in (("boat", "blue"), ("download", "red")):
        (tmp_path / f"{name}.md").write_text(f"---\nid: boat-1\n---\nThe boat is {color}.")
        answer = cli("ingest", "-a", "eve", str(tmp_path / f"{name}.md"))
    [older] = [
        row["id"]
        for row in document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"]
        if row["title"] == "boat.md"
    ]
    assert f"It may be a version of {older}, which has the same id or name. Both are kept." in answer.stderr
    assert f"maybe a version of {older}" in cli("knowledge", "resources", "-a", "eve").stdout


def test_undo_of_a_missing_file_keeps_others_of_its_name(cli: Run, tmp_path: Path) -> None:
    for folder in "ab":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "README.md").write_text(f"The boat {folder} is blue.")
        cli("ingest", "-a", "eve", str(tmp_path / folder / "README.md"))
    (tmp_path / "a" / "README.md").unlink()
    cli("ingest", "-a", "eve", "--undo", "--yes", str(tmp_path / "a" / "README.md"))
    [left] = document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"]
    assert left["metadata"]["path"].endswith("/b/README.md")


def test_names_that_look_random_are_no_secrets_in_a_path(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "tmpotxqvu5c" / "a8f5f167f44f4964e6c998dee827110c"
    folder.mkdir(parents=True)
    file = folder / "Xk29dQ8zLm3Rt7.md"
    file.write_text("The boat is blue.")
    answer = cli("ingest", "-a", "eve", str(file))
    assert "Secrets were removed" not in answer.output
    [row] = document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"]
    assert (row["file"], row["metadata"]["path"]) == (file.name, str(file))
    cli("ingest", "-a", "eve", "--undo", "--yes", str(file))
    assert document(cli("knowledge", "resources", "-a", "eve", "--json"))["total"] == 0


def test_known_and_labelled_secrets_in_a_path_are_removed(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "password=hunter2abc" / "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    folder.mkdir(parents=True)
    (folder / "boat.md").write_text("The boat is blue.")
    assert "Secrets were removed (password, github-token)" in cli("ingest", "-a", "eve", str(folder / "boat.md")).stderr
    listed = cli("knowledge", "resources", "-a", "eve", "--json").stdout
    assert "hunter2abc" not in listed
    assert "ghp_16C7" not in listed


def test_ingest_of_a_folder_leaves_memories_out(cli: Run, tmp_path: Path, root: Path) -> None:
    folder, other = tmp_path / "notes", tmp_path / "notes" / "deep" / "other"
    folder.mkdir()
    (folder / "boat.md").write_text("The boat is blue.")
    for place in (other, folder / "memories"):
        cli("store", "The spare key is under the mat.", "-a", "bob", "--root", str(place))
        cli("forget", "--all", "--yes", "-a", "bob", "--root", str(place))
    arguments = ("-a", "eve", "--root", str(folder / "memories"))
    answer = cli("ingest", *arguments, str(folder), "--json")
    assert [file["file"].rpartition("/")[2] for file in document(answer)["files"]] == ["boat.md"]
    told = cli("ingest", *arguments, str(folder)).stderr
    assert f"2 folders hold memories of agents and were left out: {other}/bob, {folder}/memories." in told
    assert "spare key" not in cli("search", *arguments, "spare key", "--items", code=3).stdout


def test_ingest_of_a_file_of_a_memory_is_refused(cli: Run, tmp_path: Path, root: Path) -> None:
    cli("store", "The spare key is under the mat.", "-a", "bob")
    (root / "bob" / "topics").mkdir()
    (root / "bob" / "topics" / "keys.md").write_text("The spare key is under the mat.")
    for file in ("memories.yaml", "topics/keys.md"):
        told = cli("ingest", "-a", "eve", str(root / "bob" / file), code=1).stderr
        assert f"is a file of the memory in {root / 'bob'}; nothing was ingested." in told
        assert "agent-memory export" in told
    told = cli("ingest", "-a", "eve", str(root / "bob" / "topics"), code=1).stderr
    assert "1 folder holds memories of agents and was left out" in told
    assert "spare key" not in cli("knowledge", "resources", "-a", "eve").stdout


@pytest.mark.parametrize("name", ["", "  "])
def test_ingest_of_an_empty_name_takes_nothing_in(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "boat.md").write_text("The boat is blue.")
    monkeypatch.chdir(tmp_path)
    assert "FILE is empty; nothing was ingested." in cli("ingest", "-a", "eve", "boat.md", name, code=1).stderr
    assert "No agent" in cli("knowledge", "resources", "-a", "eve", code=1).stderr
    cli("ingest", "-a", "eve", "boat.md")
    assert "nothing was changed" in cli("ingest", "-a", "eve", "--undo", "--yes", name, code=1).stderr
    assert "boat.md" in cli("knowledge", "resources", "-a", "eve").stdout


BOAT = (
    "# Boat\n\nThe boat is {color} and old.\n\n# Keys\n\nThe spare key is under the mat.\n\n"
    "# Oars\n\nThe oars are in the shed.\n"
)


@pytest.mark.parametrize("colors", [("blue",), ("red", "blue"), ("blue", "red", "blue")])
def test_ingest_after_undo_is_found_again(cli: Run, tmp_path: Path, colors: tuple[str, ...]) -> None:
    file = tmp_path / "boat.md"
    for color in colors:
        file.write_text(BOAT.format(color=color))
        cli("ingest", "-a", "eve", str(file))
    before = document(cli("list", "-a", "eve", "--items", "--json"))["memories"]
    for _ in range(2):
        cli("ingest", "-a", "eve", "--undo", str(file), "--yes")
        assert "boat" not in cli("list", "-a", "eve", "--items").stdout
        (tmp_path / "note.jsonl").write_text('{"text": "The flag is green."}')
        cli("ingest", "-a", "eve", str(tmp_path / "note.jsonl"))  # the step notes what is forgotten
        cli("ingest", "-a", "eve", "--undo", str(tmp_path / "note.jsonl"), "--yes")
        assert "forgotten" not in cli("ingest", "-a", "eve", str(file)).output
        after = document(cli("list", "-a", "eve", "--items", "--json"))["memories"]
        assert {row["id"] for row in after} == {row["id"] for row in before}
        [resource] = document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"]
        assert {link["id"] for row in after for link in row["links"]} == {resource["id"]}


def test_single_forgotten_passage_stays_forgotten_after_undo(cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "boat.md"
    file.write_text(BOAT.format(color="blue"))
    cli("ingest", "-a", "eve", str(file))
    rows = document(cli("list", "-a", "eve", "--items", "--json"))["memories"]
    [key] = [row["id"] for row in rows if "spare key" in row["content"]]
    for is_first in (True, False):
        if not is_first:
            cli("restore", key, "-a", "eve")
        cli("forget", key, "--yes", "-a", "eve")
        cli("ingest", "-a", "eve", "--undo", str(file), "--yes")
        for _ in range(2):
            told = cli("ingest", "-a", "eve", str(file)).stderr
            assert "1 item was forgotten before and stays forgotten" in told
            assert f"agent-memory restore {key}" in told
            listed = cli("list", "-a", "eve", "--items").stdout
            assert ("oars" in listed, "spare key" in listed) == (True, False)


def test_passage_forgotten_after_ingest_stays_forgotten(cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "boat.md"
    file.write_text(BOAT.format(color="blue"))
    cli("ingest", "-a", "eve", str(file))
    cli("ingest", "-a", "eve", "--undo", str(file), "--yes")
    cli("ingest", "-a", "eve", str(file))
    rows = document(cli("list", "-a", "eve", "--items", "--json"))["memories"]
    [key] = [row["id"] for row in rows if "spare key" in row["content"]]
    cli("forget", key, "--yes", "-a", "eve")
    assert key in cli("ingest", "-a", "eve", str(file)).stderr
    assert "spare key" not in cli("list", "-a", "eve", "--items").stdout


def test_chat_after_undo_is_found_again(cli: Run, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    turns = ("Who keeps the boat?", "Terraform keeps the boat in Bergen.", "The oars are in the shed.")
    file.write_text(
        "\n".join(
            json.dumps({"speaker": name, "text": turn}) for name, turn in zip(("Ada", "Bob", "Ada"), turns, strict=True)
        )
    )
    cli("ingest", "-a", "eve", str(file))
    before = cli("list", "-a", "eve", "--items").stdout
    cli("ingest", "-a", "eve", "--undo", str(file), "--yes")
    (tmp_path / "note.md").write_text("The flag is green.")
    cli("ingest", "-a", "eve", str(tmp_path / "note.md"))
    cli("ingest", "-a", "eve", "--undo", str(tmp_path / "note.md"), "--yes")
    assert "forgotten" not in cli("ingest", "-a", "eve", str(file)).output
    assert cli("list", "-a", "eve", "--items").stdout == before
    assert "Terraform" in cli("search", "-a", "eve", "Terraform Bergen", "--items").stdout
    assert "Terraform" in cli("knowledge", "resources", "-a", "eve", "chat.jsonl").stdout


def test_resources_counts_current_documents(cli: Run, tmp_path: Path) -> None:
    for color in ("blue", "red"):
        (tmp_path / "boat.md").write_text(f"The boat is {color}.")
        cli("ingest", "-a", "eve", str(tmp_path / "boat.md"))
    listed = cli("knowledge", "resources", "-a", "eve", "--all")
    assert "shows more" not in listed.output
    assert document(cli("knowledge", "resources", "-a", "eve", "--json"))["total"] == 1


def test_removed_folder_is_named_and_pruned(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "old notes"
    folder.mkdir()
    (folder / "boat.md").write_text("The boat is blue.")
    cli("ingest", "-a", "eve", str(folder))
    (folder / "boat.md").unlink()
    folder.rmdir()
    told = cli("ingest", "-a", "eve", str(folder)).stderr
    assert "1 file is missing: boat.md." in told
    assert f"Run `agent-memory ingest '{folder}' --prune -a eve` to withdraw it." in told
    assert "Withdrew boat.md" in cli("ingest", "-a", "eve", str(folder), "--prune").stdout
    assert "No file" in cli("ingest", "-a", "eve", str(folder), "--prune", code=1).stderr


@pytest.mark.parametrize("is_removed", [False, True])
def test_undo_of_a_folder_withdraws_its_documents(cli: Run, tmp_path: Path, *, is_removed: bool) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    for file in (folder / "boat.md", folder / "deep" / "oars.md", tmp_path / "flag.md"):
        file.write_text(f"The {file.stem} is blue.")
        cli("ingest", "-a", "eve", str(file))
    (folder / "boat.md").write_text("The boat is red.")
    cli("ingest", "-a", "eve", str(folder))
    if is_removed:
        shutil.rmtree(folder)
    assert "not a terminal" in cli("ingest", "-a", "eve", "--undo", str(folder), code=2).stderr
    gone = cli("ingest", "-a", "eve", "--undo", str(folder), "--yes").stdout
    assert gone.startswith("Forgot 3 resources")
    [left] = document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"]
    assert left["title"] == "flag.md"
    told = cli("ingest", "-a", "eve", "--undo", str(folder), "--yes", code=3).stderr
    assert ("Nothing from" if is_removed else "No document was ingested from files below") in told
    assert "Name a chat by its file" in told or is_removed


def test_files_of_unknown_form_are_named_once(cli: Run, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("a.json", "b.json", "c.json"):
        (folder / name).write_text('{"width": 3}')
    (folder / "boat.md").write_text("The boat is blue.")
    result = cli("ingest", "-a", "eve", str(folder), code=1)
    assert "boat.md: 1 ingested" in result.stdout
    assert "3 files are of no known form and were not ingested: a.json, b.json, c.json." in result.stderr
    assert result.stderr.count("Known are") == 1
    assert "this JSON is no chat" in cli("ingest", "-a", "eve", str(folder / "a.json"), code=1).stderr


def test_ingest_names_a_chat_of_too_few_turns(cli: Run, tmp_path: Path) -> None:
    chat = tmp_path / "chat.txt"
    chat.write_text("Ann: We moved the ledger last week.\nBob: Good. Who keeps the backups?\n")
    assert "It was taken as a document" in cli("ingest", "-a", "eve", str(chat)).stderr
    chat.write_text("The ledger is in PostgreSQL.\nThe backups are in Bergen.\n")
    assert "It was taken as a document" not in cli("ingest", "-a", "eve", str(chat)).stderr


def test_import_of_a_chat_stores_turns_after_a_yes(cli: Run, tmp_path: Path) -> None:
    chat = tmp_path / "chat.jsonl"
    chat.write_text('{"content": "Tea is green."}\n{"role": "user", "content": "My sister lives in Lyon."}')
    assert "Add --yes" in cli("import", "-a", "eve", str(chat), code=2).stderr
    cli("import", "-a", "eve", str(chat), "--yes")
    turns = document(cli("knowledge", "episodes", "-a", "eve", "--json"))["episodes"]
    assert sorted((turn["trust"], turn["content"]) for turn in turns) == [
        ("low", "My sister lives in Lyon."), ("low", "Tea is green."),
    ]  # fmt: skip
    assert document(cli("list", "-a", "eve", "--json"))["memories"] == []
