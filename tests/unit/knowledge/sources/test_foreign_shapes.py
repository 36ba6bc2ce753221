"""Shapes of other programs' files, as their own tests and other exporters write them."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.knowledge.import_formats import take_sample
from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.turns import parse_moment
from agent_memory.knowledge.sources import documents
from agent_memory.knowledge.sources.source_files import ImportedFact, open_source
from tests.unit.knowledge.sources.conftest import read_source

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.knowledge.sources.conftest import Read

MOMENT = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
CHAT = {"uuid": "c1", "name": "T", "chat_messages": [
    {"uuid": "m1", "sender": "human", "text": "We use PostgreSQL.", "created_at": "2024-01-01T10:00:00Z"},
    {"uuid": "m2", "sender": "assistant", "text": "Noted."},
]}  # fmt: skip
TYPED = {"type": "user", "message": {"role": "user", "content": "Use ruff."}, "timestamp": "2024-01-01T10:00:00Z"}


def node(role: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return a node of a ChatGPT conversation without its parent."""
    return {"message": {"author": {"role": role}, "content": {"content_type": "text", "parts": [text]}}, **fields}


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("as_text", [False, True])
def test_moment_in_any_unit_is_read(scale: int, as_text: bool) -> None:
    value = 1_700_000_000 * scale
    assert parse_moment(str(value) if as_text else value) == MOMENT


@pytest.mark.parametrize(
    "value", [float("inf"), float("-inf"), float("nan"), 10**30, 10**400, "1712", "20240101120000"]
)
def test_number_that_is_no_moment_has_none(value: Any) -> None:
    assert parse_moment(value) is None


def test_turn_without_time_has_that_of_its_conversation(read: Read) -> None:
    [(_, talk)] = read({"conversations.json": [CHAT]})
    assert {turn.said_at for turn in talk.turns} == {datetime(2024, 1, 1, 10, tzinfo=UTC)}


def test_chatgpt_nodes_without_parents_are_all_read(read: Read) -> None:
    nodes = {"a": node("user", "One."), "b": node("assistant", "Two."), "c": node("user", "Three.")}
    [(name, talk)] = read({"conversations.json": [{"title": "T", "mapping": nodes}]})
    assert name == "chatgpt"
    assert [turn.text for turn in talk.turns] == ["One.", "Two.", "Three."]


@pytest.mark.parametrize("chat", [CHAT, {"mapping": {"a": node("user", "We use PostgreSQL.")}}])
def test_conversations_in_an_object_are_read(read: Read, chat: Any) -> None:
    [(_, talk)] = read({"export.json": {"version": 1, "conversations": [chat]}})
    assert talk.turns[0].text == "We use PostgreSQL."


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-16-le", "utf-8-sig"])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_json_with_a_byte_order_mark_is_read(tmp_path: Path, encoding: str, name: str) -> None:
    text = json.dumps([CHAT] if name == "a.json" else TYPED, ensure_ascii=False) + "\n"
    mark = "" if encoding in {"utf-16", "utf-8-sig"} else "\ufeff"
    (tmp_path / name).write_bytes((mark + text).encode(encoding))
    [(_, talk)] = read_source(tmp_path / name)
    assert next(iter(talk.turns)).role == "user"


def test_empty_list_of_an_export_is_not_damaged(tmp_path: Path) -> None:
    path = tmp_path / "projects.json"
    path.write_text("[]\n")
    tree = open_source(str(path))
    assert not take_sample(tree.files["projects.json"], tree).find_damage()


@pytest.mark.parametrize("break_", ["\r\n", "\r"])
def test_note_with_other_line_ends_has_its_format(tmp_path: Path, break_: str) -> None:
    note = "---\ntitle: Coffee\npermalink: coffee\n---\n- [method] Pour over is best #brew\n"
    (tmp_path / "coffee.md").write_bytes(note.replace("\n", break_).encode())
    [(name, fact), *_] = read_source(tmp_path / "coffee.md")
    assert name == "basic-memory"
    assert isinstance(fact, ImportedFact)


def test_graph_as_one_object_is_read(read: Read) -> None:
    graph = {
        "entities": [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}, {"name": 1}],
        "relations": [{"from": "Ada", "to": "Ben", "relationType": "knows"}],
    }
    parts = read({"memory.json": graph})
    assert {name for name, _ in parts} == {"mcp-memory"}
    [fact, skipped, document] = [part for _, part in parts]
    assert fact.text == "Ada: likes tea"
    assert skipped == SkippedPart("entity 2")
    assert document.text == "- Ada knows Ben"


def test_graph_without_types_is_read(read: Read) -> None:
    entity = {"name": "Ada", "entityType": "person", "observations": [{"content": "likes tea", "timestamp": 1}]}
    relation = {"from": "Ada", "to": "Ben", "relationType": "knows"}
    parts = read({"memory.jsonl": f"{json.dumps(entity)}\n{json.dumps(relation)}\n"})
    assert [(name, part.text) for name, part in parts] == [
        ("mcp-memory", "Ada: likes tea"), ("mcp-memory", "- Ada knows Ben"),
    ]  # fmt: skip


def test_agent_file_packed_as_a_text_is_read(read: Read) -> None:
    agent = {"agents": [{"name": "a", "messages": []}], "blocks": [{"label": "human", "value": "Ada likes tea."}]}
    [(name, fact), _] = read({"agent.af": json.dumps(json.dumps(agent))})
    assert (name, fact.text) == ("letta", "Ada likes tea.")


def test_telegram_chat_without_ids_keeps_its_times(read: Read) -> None:
    message = {"type": "message", "date_unixtime": "1700000000", "from": "Ann", "text": "Hello."}
    [(name, talk)] = read({"result.json": {"messages": [message]}})
    assert (name, talk.turns[0].speaker, talk.turns[0].said_at) == ("telegram", "Ann", MOMENT)


@pytest.mark.parametrize("name", ["a.eml", "a.mbox"])
def test_mail_beyond_the_limit_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(documents, "MAX_TEXT_BYTES", 1_000)
    (tmp_path / name).write_text(f"From a\nSubject: A\n\n{'x' * 5_000}\n\nFrom b\nSubject: B\n\nTwo.\n")
    parts = [part for _, part in read_source(tmp_path / name)]
    assert parts[0] == SkippedPart("mail 1", "too_long")
    assert [part.title for part in parts if isinstance(part, ReceivedDocument)] == ["B"] * (name == "a.mbox")


def test_rules_in_an_archive_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "project.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in (".cursorrules", "./.cursor/rules/style.mdc", "../../AGENTS.md", "/CLAUDE.md"):
            archive.writestr(name, "- Use tabs.\n")
    tree = open_source(str(path))
    assert sorted(tree.files) == [".cursor/rules/style.mdc", ".cursorrules", "AGENTS.md", "CLAUDE.md"]
    assert {name for name, _ in read_source(path)} == {"rules"}
    tree.close()


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_of_one_name_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(("a.md", "a.md", "x/../a.md", "..", ".")):
            archive.writestr(name, f"Note {number}.")
    assert len(open_source(str(path)).files) == 3
    texts = {part.text for _, part in read_source(path)}
    assert texts == {"Note 0.", "Note 1.", "Note 2."}


def test_archive_is_closed_with_its_tree(tmp_path: Path) -> None:
    path = tmp_path / "notes.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.md", "Note.")
    with open_source(str(path)) as tree:
        assert tree.files["a.md"].read_text() == "Note."
    with pytest.raises(ValueError, match="closed"):
        tree.files["a.md"].open_stream()
