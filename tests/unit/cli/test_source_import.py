"""`import` of other programs' files: table, question, undo, and what is never believed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.cli.runtime import AgentContext
from agent_memory.knowledge.intake import ingest
from tests.unit.cli.conftest import document
from tests.unit.knowledge.sources.conftest import write_zip

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.cli.conftest import Run

PASTED = "[2026-01-03] - Prefers metric units\n[2026-02-10] - Is allergic to peanuts\n"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return an export of Claude with a chat, memories and a document."""
    message = {"uuid": "m1", "sender": "human", "text": "Staging is kestrel.", "created_at": "2026-03-01T10:00:00Z"}
    talk = {"uuid": "cc", "name": "Deploy", "chat_messages": [message]}
    project = {"uuid": "p", "name": "Zephyr", "docs": [{"filename": "adr.md", "content": "Use PostgreSQL."}]}
    files: dict[str, Any] = {
        "conversations.json": [talk],
        "memories.json": [{"conversations_memory": "Ada leads the ledger team."}],
        "projects.json": [project],
    }
    return write_zip(tmp_path / "export.zip", files)


def rows(answer: dict[str, Any]) -> dict[str, tuple[int, int]]:
    """Return numbers of new and known records by kind."""
    return {row["what"]: (row["new"], row["known"]) for row in answer["rows"]}


def test_import_paste_stores_memories_of_low_trust(cli: Run) -> None:
    told = cli("import", "-", "-a", "eve", "--yes", given=PASTED)
    assert "Format paste: -" in told.stdout
    assert "Stored 2 memories." in told.stderr
    [second, first] = document(cli("list", "-a", "eve", "--json"))["memories"]
    assert (first["content"], first["observed_at"][:10]) == ("Prefers metric units", "2026-01-03")
    assert {(memory["trust"], memory["origin"]) for memory in (first, second)} == {("low", "import paste")}
    assert "peanuts" in cli("search", "peanuts", "-a", "eve").stdout


def test_import_second_run_adds_nothing(cli: Run, archive: Path) -> None:
    first = document(cli("import", str(archive), "-a", "eve", "--yes", "--json"))
    assert rows(first) == {"turns": (1, 0), "memories": (1, 0), "documents": (1, 0)}
    assert first["stored"] == {"memories": 1, "turns": 1, "documents": 1}
    second = document(cli("import", str(archive), "-a", "eve", "--yes", "--json"))
    assert rows(second) == {"turns": (0, 1), "memories": (0, 1), "documents": (0, 1)}
    assert second["stored"] == {}


def test_import_of_a_repeated_chat_counts_it_once(cli: Run, tmp_path: Path) -> None:
    def chat(*texts: str) -> dict[str, Any]:
        messages = [{"uuid": text, "sender": "human", "text": text} for text in texts]
        return {"uuid": "cc", "name": "Deploy", "created_at": "2026-03-01T10:00:00Z", "chat_messages": messages}

    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([chat("One."), chat("One.", "Two."), chat("One.")]))
    answer = document(cli("import", str(path), "-a", "eve", "--yes", "--json"))
    assert rows(answer) == {"turns": (2, 2)}
    assert answer["stored"] == {"turns": 2}


def test_import_of_an_empty_document_names_it_once(cli: Run, tmp_path: Path) -> None:
    for name, text in (("empty.md", ""), ("full.md", "Backups run at two.")):
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / name).write_text(text)
    for new in (1, 0):
        answer = document(cli("import", str(tmp_path / "notes"), "-a", "eve", "--yes", "--json", code=1))
        assert rows(answer)["documents"][0] == new
        assert [problem["where"] for problem in answer["problems"]] == ["empty.md"]


def test_import_names_few_of_many_left_out_files(cli: Run, tmp_path: Path) -> None:
    files = {"conversations.json": [], "memories.txt": "Likes tea.\n", **{f"{name}.png": "" for name in "abcd"}}
    told = cli("import", str(write_zip(tmp_path / "export.zip", files)), "-a", "eve", "--dry-run")
    assert "Left out, not content: conversations.json, a.png, b.png and 2 more\n" in told.stdout


def test_import_dry_run_and_a_no_store_nothing(cli: Run, archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "claude" in cli("import", str(archive), "-a", "eve", "--dry-run").stdout
    assert "Add --yes" in cli("import", str(archive), "-a", "eve", code=2).stderr
    monkeypatch.setattr(AgentContext, "need_terminal", lambda *_: None)
    assert "Nothing was stored." in cli("import", str(archive), "-a", "eve", given="n\n", code=1).stderr
    assert "No agent 'eve'" in cli("knowledge", "resources", "-a", "eve", code=1).stderr


def test_undo_import_takes_all_of_it_back(cli: Run, archive: Path) -> None:
    cli("import", "-", "-a", "eve", "--yes", given=PASTED)
    imported = document(cli("import", str(archive), "-a", "eve", "--yes", "--json"))["import"]
    told = cli("undo", "--import", imported, "--yes", "-a", "eve")
    assert "Took back 1 memory, 1 turn, 1 document." in told.stdout
    assert document(cli("knowledge", "resources", "-a", "eve", "--json"))["resources"] == []
    left = document(cli("list", "--items", "-a", "eve", "--json"))["memories"]
    assert sorted(memory["content"] for memory in left) == ["Is allergic to peanuts", "Prefers metric units"]


def test_undo_import_prints_only_what_it_took(cli: Run, archive: Path) -> None:
    imported = document(cli("import", str(archive), "-a", "eve", "--yes", "--json"))["import"]
    refused = cli("undo", "--import", imported, "-a", "eve", code=2)
    assert "Take one back" not in refused.stderr
    assert "1 memory, 1 turn, 1 document would be taken back." in refused.stderr
    told = cli("undo", "--import", imported, "--yes", "-a", "eve")
    assert told.stdout.startswith("Took back 1 memory, 1 turn, ")
    assert " 0 " not in told.stdout
    assert "Import the same files again" in told.stderr


def test_undo_import_json_is_one_document(cli: Run, archive: Path) -> None:
    imported = document(cli("import", str(archive), "-a", "eve", "--yes", "--json"))["import"]
    undone = document(cli("undo", "--import", imported, "--yes", "-a", "eve", "--json"))
    assert len(undone["memories"]) == 1
    assert undone["withdrawn"]["resources"] == 2


def test_import_after_its_undo_stores_it_again(cli: Run, archive: Path) -> None:
    answers = []
    for _ in range(2):
        answers.append(document(cli("import", str(archive), "-a", "eve", "--yes", "--json")))
        cli("undo", "--import", answers[-1]["import"], "--yes", "-a", "eve")
    assert answers[0]["stored"] == answers[1]["stored"] == {"memories": 1, "turns": 1, "documents": 1}
    assert answers[0]["import"] != answers[1]["import"]


def test_import_after_its_undo_is_found_again(cli: Run, archive: Path) -> None:
    for _ in range(2):
        imported = document(cli("import", str(archive), "-a", "eve", "--yes", "--json"))["import"]
        assert {
            memory["content"] for memory in document(cli("list", "-a", "eve", "--items", "--json"))["memories"]
        } >= {
            "Staging is kestrel.",
            "Use PostgreSQL.",
        }
        cli("undo", "--import", imported, "--yes", "-a", "eve")


def test_import_after_forget_leaves_memory_forgotten(cli: Run) -> None:
    first = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))
    cli("undo", "--import", first["import"], "--yes", "-a", "eve")
    cli("import", "-", "-a", "eve", "--yes", given=PASTED)
    cli("forget", "-a", "eve", "--yes", *(_find_ids(cli, "peanuts")))
    again = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))
    assert again["rows"][0]["forgotten"] == 1
    assert again["stored"] == {}


def _find_ids(cli: Run, word: str) -> list[str]:
    memories = document(cli("list", "-a", "eve", "--json"))["memories"]
    return [memory["id"] for memory in memories if word in memory["content"]]


def test_undo_of_undo_import_restores_all_at_once(cli: Run) -> None:
    first = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))["import"]
    told = cli("undo", "--import", first, "--yes", "-a", "eve")
    [undo_id] = [word for word in told.stderr.split() if word.startswith("import-")]
    changes = document(cli("undo", "-a", "eve", "--json"))["changes"]
    assert [(change["what"], len(change["memories"])) for change in changes] == [("forgotten", 2), ("stored", 2)]
    cli("undo", "--import", undo_id, "--yes", "-a", "eve")
    assert len(document(cli("list", "-a", "eve", "--json"))["memories"]) == 2
    assert document(cli("undo", "-a", "eve", "--json"))["changes"][0]["what"] == "brought back"


def test_undo_import_twice_says_taken_back_already(cli: Run) -> None:
    imported = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))["import"]
    cli("undo", "--import", imported, "--yes", "-a", "eve")
    told = cli("undo", "--import", imported, "-a", "eve")
    assert told.stdout == ""
    assert "Nothing was changed: this was taken back already." in told.stderr


def test_import_hints_accept_and_says_nothing_new(cli: Run) -> None:
    first = cli("import", "-", "-a", "eve", "--yes", given=PASTED).stderr
    assert "They act as instructions only after `agent-memory accept import-" in first
    second = cli("import", "-", "-a", "eve", "--yes", given=PASTED).stderr
    assert "Nothing new." in second
    assert "accept" not in second


def test_undo_import_takes_only_its_own_turns_back(cli: Run, tmp_path: Path) -> None:
    log, lines = tmp_path / "chat.jsonl", [{"role": "user", "content": f"The boat {n} is blue."} for n in range(3)]
    imported = []
    for count in (2, 3):
        log.write_text("\n".join(map(json.dumps, lines[:count])))
        imported.append(document(cli("import", str(log), "-a", "eve", "--yes", "--json"))["import"])
    assert "1 turn" in cli("undo", "--import", imported[1], "--yes", "-a", "eve").stdout
    left = document(cli("knowledge", "episodes", "-a", "eve", "--json"))["episodes"]
    assert sorted(turn["content"] for turn in left) == ["The boat 0 is blue.", "The boat 1 is blue."]


def test_import_broken_record_is_named_and_exits_with_1(cli: Run, tmp_path: Path) -> None:
    lines = ['{"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Sings"]}', "nope"]
    (tmp_path / "memory.jsonl").write_text("\n".join(lines))
    told = cli("import", str(tmp_path / "memory.jsonl"), "-a", "eve", "--yes", code=1)
    assert "line 2 of memory.jsonl is damaged" in told.stderr
    assert "Stored 1 memory." in told.stderr


def test_import_damaged_export_in_a_zip_exits_with_1(cli: Run, tmp_path: Path) -> None:
    path = write_zip(
        tmp_path / "a.zip", {"conversations.json": "[{cut", "memories.json": [{"conversations_memory": "Sings."}]}
    )
    told = cli("import", str(path), "-a", "eve", "--yes", code=1)
    assert "conversations.json is damaged" in told.stderr
    assert "Stored 1 memory." in told.stderr


def test_import_killed_and_repeated_equals_one_run(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [{"role": "user", "content": f"The boat {number} is blue."} for number in range(110)]
    (tmp_path / "chat.jsonl").write_text("\n".join(map(json.dumps, lines)))
    store, calls = ingest.store_new, list[int]()

    async def store_once(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return await store(*arguments)

    monkeypatch.setattr(ingest, "store_new", store_once)
    for count in ("100 are", "0 are"):
        told = cli("import", str(tmp_path / "chat.jsonl"), "-a", "eve", "--yes", code=130).stderr
        assert f"Stopped; {count} stored. The same command continues." in told
    assert "Undo: agent-memory undo --import import-" in told
    monkeypatch.setattr(ingest, "store_new", store)
    resumed = document(cli("import", str(tmp_path / "chat.jsonl"), "-a", "eve", "--yes", "--json"))
    assert resumed["stored"] == {"turns": 10}
    cli("import", str(tmp_path / "chat.jsonl"), "-a", "adam", "--yes")
    turns = [
        document(cli("knowledge", "episodes", "-a", name, "--all", "--json"))["episodes"] for name in ("eve", "adam")
    ]
    assert [turn["id"] for turn in turns[0]] == [turn["id"] for turn in turns[1]]
    assert "110 turns" in cli("undo", "--import", resumed["import"], "--yes", "-a", "eve").stdout
    assert (
        document(cli("import", str(tmp_path / "chat.jsonl"), "-a", "eve", "--yes", "--json"))["import"]
        != resumed["import"]
    )


def test_import_format_overrides_detection(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("Likes tea\nLikes boats\n")
    answer = document(cli("import", str(tmp_path / "notes.md"), "--format", "paste", "-a", "eve", "--yes", "--json"))
    assert answer["stored"] == {"memories": 2}
    assert (
        "No format 'nope'" in cli("import", str(tmp_path / "notes.md"), "--format", "nope", "-a", "eve", code=2).stderr
    )


def test_import_similar_memories_are_counted(cli: Run) -> None:
    cli("store", "Prefers metric units over imperial ones", "-a", "eve")
    answer = document(cli("import", "-", "-a", "eve", "--dry-run", "--json", given=PASTED))
    assert list(answer["similar"]) == ["Prefers metric units"]
    assert answer["rows"][0]["similar"] == 1


def test_import_forgotten_memory_stays_forgotten(cli: Run) -> None:
    cli("import", "-", "-a", "eve", "--yes", given=PASTED)
    [memory, _] = document(cli("list", "-a", "eve", "--json"))["memories"]
    cli("forget", memory["id"], "--yes", "-a", "eve")
    answer = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))
    assert (answer["rows"][0]["forgotten"], answer["rows"][0]["new"]) == (1, 0)


def test_import_secret_reaches_no_file(cli: Run, root: Path) -> None:
    secret = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    cli(
        "import", "-", "-a", "eve", "--yes", given=f"[2026-01-03] - The green tea is in the shop, its key is {secret}\n"
    )
    assert not [path for path in root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_import_unknown_file_names_the_way_out(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    assert "--format" in cli("import", str(tmp_path / "a.json"), "-a", "eve", code=1).stderr


def test_import_of_an_empty_pipe_stores_nothing(cli: Run) -> None:
    assert "Imported 0 memories" in cli("import", "-", "--trusted", "-a", "eve", given="").stdout


def test_import_trusted_is_for_exports_only(cli: Run, archive: Path) -> None:
    assert "--trusted" in cli("import", str(archive), "--trusted", "-a", "eve", code=2).stderr


# -- review -----------------------------------------------------------------------------------------------------------


def test_review_holds_memories_as_one_batch(cli: Run, archive: Path) -> None:
    answer = document(cli("import", str(archive), "--review", "-a", "eve", "--yes", "--json"))
    assert answer["stored"] == {"waiting": 1, "turns": 1, "documents": 1}
    [note] = document(cli("inbox", "-a", "eve", "--json"))["waiting"]
    assert (note["batch"], note["via"], note["until"]) == (answer["import"], "import", "")
    assert document(cli("list", "-a", "eve", "--json"))["memories"] == []


def test_accept_batch_stores_memories_of_medium_trust(cli: Run) -> None:
    batch = document(cli("import", "-", "--review", "-a", "eve", "--yes", "--json", given=PASTED))["import"]
    assert "Stored 1 memory" in cli("inbox", "--accept", batch, "--matching", "peanuts", "-a", "eve").stdout
    [memory] = document(cli("list", "-a", "eve", "--json"))["memories"]
    assert (memory["content"], memory["trust"]) == ("Is allergic to peanuts", "medium")
    assert (memory["origin"], memory["observed_at"][:10]) == ("import paste", "2026-02-10")
    assert "Rejected 1 note" in cli("inbox", "--reject", batch, "-a", "eve").stdout
    assert "Nothing of" in cli("inbox", "--accept", batch, "-a", "eve", code=3).stderr


def test_review_second_run_adds_nothing(cli: Run) -> None:
    for stored in ({"waiting": 2}, {"waiting": 0}):
        answer = document(cli("import", "-", "--review", "-a", "eve", "--yes", "--json", given=PASTED))
        assert answer["stored"] == stored


def test_undo_import_removes_what_waits(cli: Run) -> None:
    batch = document(cli("import", "-", "--review", "-a", "eve", "--yes", "--json", given=PASTED))["import"]
    assert "2 waiting notes" in cli("undo", "--import", batch, "--yes", "-a", "eve").stdout
    assert document(cli("inbox", "-a", "eve", "--json"))["waiting"] == []
    assert document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))["stored"] == {"memories": 2}


def test_accept_import_raises_stored_memories(cli: Run) -> None:
    imported = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))["import"]
    raised = document(cli("accept", imported, "-a", "eve", "--json"))["memories"]
    memories = document(cli("list", "-a", "eve", "--json"))["memories"]
    assert {memory["trust"] for memory in memories} == {"medium"}
    assert sorted(raised) == sorted(memory["id"] for memory in memories)
    assert "Nothing is stored" in cli("accept", "import-00000000", "-a", "eve", code=3).stderr


def test_imported_rule_is_no_instruction_until_accepted(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("- Always deploy with the kestrel script.\n")
    imported = document(cli("import", str(tmp_path / "AGENTS.md"), "-a", "eve", "--yes", "--json"))["import"]
    assert "kestrel" not in cli("briefing", "-a", "eve").stdout
    cli("accept", imported, "-a", "eve")
    assert "kestrel" in cli("briefing", "-a", "eve").stdout


def list_trusts(cli: Run) -> dict[str, str]:
    """Return the trust of each passage by its words."""
    items = document(cli("list", "--items", "-a", "eve", "--json"))["memories"]
    return {item["content"].rpartition(": ")[2]: item["trust"] for item in items}


def test_accept_import_raises_only_turns_of_the_user(cli: Run, tmp_path: Path) -> None:
    roles = {"user": "The boat lies in Bergen.", "assistant": "The harbour charges ten crowns.", "tool": "Rain comes."}
    log = tmp_path / "chat.jsonl"
    log.write_text("\n".join(json.dumps({"role": role, "content": text}) for role, text in roles.items()))
    imported = document(cli("import", str(log), "-a", "eve", "--yes", "--json"))["import"]
    assert set(list_trusts(cli).values()) == {"low"}
    [item_id] = document(cli("accept", imported, "-a", "eve", "--json"))["memories"]
    assert "medium: a person, or an earlier version, accepted it; " in cli("why", item_id, "-a", "eve").stdout
    assert list_trusts(cli) == {roles["user"]: "medium", roles["assistant"]: "low"}
    cli("import", str(log), "-a", "eve", "--yes")
    assert list_trusts(cli) == {roles["user"]: "medium", roles["assistant"]: "low"}


def test_accept_document_raises_it_and_new_version_replaces_it(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    (tmp_path / "vault" / ".obsidian" / "app.json").write_text("{}")
    note = tmp_path / "vault" / "Boats.md"
    note.write_text("The boat lies in Bergen.\n")
    answer = document(cli("import", str(tmp_path / "vault"), "-a", "eve", "--yes", "--json"))
    assert list_trusts(cli) == {"The boat lies in Bergen.": "low"}
    cli("accept", answer["import"], "-a", "eve")
    assert list_trusts(cli) == {"The boat lies in Bergen.": "medium"}
    note.write_text("The boat lies in Utsira.\n")
    cli("import", str(tmp_path / "vault"), "-a", "eve", "--yes")
    assert list_trusts(cli) == {"The boat lies in Utsira.": "low"}


@pytest.mark.parametrize("name", ["exports", "exports/notes.json", "exports/notes.xyz"])
def test_import_of_unknown_form_says_so(cli: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / ("notes.json" if name == "exports" else name.rpartition("/")[2])).write_text('{"a": 1}')
    told = cli("import", str(tmp_path / name), "-a", "eve", code=1).stderr
    assert "has no format that is known; nothing was imported. [unknown_form]" in told
    assert "Move what is called" not in told


def test_import_of_empty_name_does_not_read_the_folder(cli: Run) -> None:
    assert "SOURCE is empty; nothing was imported." in cli("import", "", "-a", "eve", code=2).stderr


def test_import_notes_guessed_and_unreadable_dates(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("3/2/26, 9:15 AM - Ines: Moved.\n3/2/26, 9:16 AM - Tom: Fine.\n")
    (tmp_path / "a.csv").write_text("text,date\nLikes tea,soon\n")
    told = cli("import", str(tmp_path / "chat.txt"), "-a", "eve", "--dry-run").stderr
    assert "chat.txt: 3/2 was read as 2 March; add --dates dmy for 3 February." in told
    answer = document(cli("import", str(tmp_path / "a.csv"), "-a", "eve", "--dry-run", "--json"))
    assert answer["notes"] == ["line 2 of a.csv has no readable date"]


def test_accept_import_twice_changes_nothing(cli: Run) -> None:
    imported = document(cli("import", "-", "-a", "eve", "--yes", "--json", given=PASTED))["import"]
    cli("accept", imported, "-a", "eve")
    told = cli("accept", imported, "-a", "eve")
    assert "They are accepted already." in told.stdout
    assert "Undo" not in told.stderr


def test_undo_lists_imports_of_chats_alone(cli: Run, tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("3/2/26, 9:15 AM - Ines: Moved.\n3/2/26, 9:16 AM - Tom: Fine.\n")
    imported = document(cli("import", str(tmp_path / "chat.txt"), "-a", "eve", "--yes", "--json"))["import"]
    listed = cli("undo", "-a", "eve")
    assert f"{imported}  " in listed.stdout
    assert "1 conversation stored" in listed.stdout
    assert "undo --import ID" in listed.stderr
    told = cli("undo", "--import", imported, "--yes", "-a", "eve")
    assert told.stdout == "Took back 2 turns.\n"
    assert imported not in cli("undo", "-a", "eve").stdout


def test_import_usage_error_names_its_own_help(cli: Run) -> None:
    told = cli("import", "-", "-a", "eve", "--columns", "x", code=2, given=PASTED).stderr
    assert "(see `agent-memory import --help`)" in told
    answer = document(cli("import", "-", "-a", "eve", "--columns", "x", "--json", code=2, given=PASTED))
    assert answer["error"]["recovery"] == "See `agent-memory import --help`."
