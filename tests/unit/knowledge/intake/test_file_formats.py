"""What files hold, as documents and conversations."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import ReceivedDocument, ReceivedTurn, SkippedPart
from agent_memory.knowledge.intake.file_formats import parse_file, read_export
from agent_memory.knowledge.intake.turns import FileConversation

if TYPE_CHECKING:
    from pathlib import Path

BEGUN = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def parts(tmp_path: Path, name: str, content: Any) -> list[ReceivedDocument | FileConversation]:
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / name).write_text(text, encoding="utf-8")
    return list(parse_file(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "kind"), [("a.md", "document"), ("b.TXT", "document"), ("NOTES", "document"), ("c.toml", "config")]
)
def test_a_text_is_one_document_of_the_name_of_its_file(tmp_path: Path, name: str, kind: str) -> None:
    [document] = parts(tmp_path, name, "\ufeff# Tea\n")
    assert isinstance(document, ReceivedDocument)
    assert (document.text, document.title, document.resource_type) == ("# Tea\n", name, kind)
    assert document.metadata["path"] == str((tmp_path / name).resolve())


def test_each_line_of_a_chat_is_a_turn_and_its_words_for_things_are_understood(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"role": "user", "name": "Ada", "content": "Tea, please", "timestamp": "2026-01-05T10:30:00+01:00"},
        {"sender": "AI", "text": [{"type": "text", "text": "Green"}, {"type": "image"}, "or black?"]},
        {"speaker": "Bob", "text": "Black \ud800 \0", "created_at": BEGUN.timestamp() * 1000},
        {"role": "narrator", "message": {"content": "They drink"}, "time": "yesterday"},
        {"role": "assistant", "content": None},
    ]
    (chat,) = parts(tmp_path, "chat.jsonl", "\n\n".join(map(json.dumps, lines)))
    assert isinstance(chat, FileConversation)
    assert list(chat.turns) == [
        ReceivedTurn("Tea, please", "unknown", "Ada", BEGUN),
        ReceivedTurn("Green\nor black?", "assistant", "", BEGUN),
        ReceivedTurn("Black \ufffd \ufffd", "person", "Bob", BEGUN),
        ReceivedTurn("They drink", "unknown", "narrator", BEGUN),
    ]
    assert (chat.title, chat.said_at) == ("chat.jsonl", BEGUN)


def test_lines_of_several_conversations_are_told_apart(tmp_path: Path) -> None:
    lines = [{"session": name, "content": f"{name} {number}"} for number in range(2) for name in ("a", "b")]
    chats = parts(tmp_path, "chat.jsonl", "\n".join(map(json.dumps, lines)))
    talks = [chat for chat in chats if isinstance(chat, FileConversation)]
    texts = [(talk.title, [turn.text for turn in talk.turns]) for talk in talks]
    assert texts == [("a", ["a 0", "a 1"]), ("b", ["b 0", "b 1"])]
    assert len({talk.key for talk in talks}) == 2


def node(name: str, parent: str | None, children: list[str], **message: Any) -> dict[str, Any]:
    return {"id": name, "parent": parent, "children": children, "message": message or None}


def said(role: str, *texts: Any, kind: str = "text", **more: Any) -> dict[str, Any]:
    content = {"content_type": kind, "parts": list(texts)}
    return {"author": {"role": role, "name": None}, "content": content, "create_time": BEGUN.timestamp(), **more}


def chatgpt(**more: Any) -> dict[str, Any]:
    nodes = [
        node("root", None, ["system"]),
        node("system", "root", ["asked", "asked-again"], **said("system", "You are helpful")),
        node("asked", "system", ["other"], **said("user", "Which tea is this?")),
        node("other", "asked", [], **said("assistant", "Another branch")),
        node("asked-again", "system", ["thought"], **said("user", "Which tea, please?", {"asset_pointer": "x"})),
        node("thought", "asked-again", ["call"], **said("assistant", "Hm", kind="thoughts")),
        node("call", "thought", ["result"], **said("assistant", "search()", kind="code", recipient="browser")),
        node("result", "call", ["hidden"], **said("tool", "A page about tea")),
        node("hidden", "result", ["end"], **said("user", "x", metadata={"is_visually_hidden_from_conversation": True})),
        node("end", "hidden", [], **said("assistant", "Green tea.", recipient="all")),
    ]
    mapping = {each["id"]: each for each in nodes}
    return {"title": "Tea", "id": "c-1", "create_time": BEGUN.timestamp(), "mapping": mapping} | more


@pytest.mark.parametrize("current", ["end", None, "gone"])
def test_of_a_chatgpt_export_the_current_branch_is_taken_and_what_was_said_in_it(
    tmp_path: Path, current: str | None
) -> None:
    (chat,) = parts(tmp_path, "conversations.json", [chatgpt(current_node=current)])
    assert isinstance(chat, FileConversation)
    assert [(turn.role, turn.text) for turn in chat.turns] == [
        ("user", "Which tea, please?"), ("tool", "A page about tea"), ("assistant", "Green tea."),
    ]  # fmt: skip
    assert (chat.title, chat.key, chat.said_at, chat.turns[0].said_at) == ("Tea", "chatgpt:c-1", BEGUN, BEGUN)


def test_a_damaged_tree_ends(tmp_path: Path) -> None:
    mapping = {"a": node("a", "b", ["b"], **said("user", "A")), "b": node("b", "a", ["a"], **said("assistant", "B"))}
    (chat,) = parts(tmp_path, "c.json", [chatgpt(mapping=mapping, current_node="b")])
    assert isinstance(chat, FileConversation)
    assert [turn.text for turn in chat.turns] == ["A", "B"]
    assert read_export([chatgpt(mapping=[])], "c.json") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["end", "user"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["parts", "text", "role"]), inner),
    max_leaves=6,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where something stands in JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, each in items for place in places(each, (*at, key)))]


def with_value(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    """Return JSON with another value in a place."""
    if not at:
        return new
    whole = dict(value) if isinstance(value, dict) else list(value)
    whole[at[0]] = with_value(whole[at[0]], at[1:], new)
    return whole


@given(data=st.data(), form=st.sampled_from(["chatgpt", "claude"]))
def test_whatever_stands_in_a_place_of_an_export_the_rest_is_read(data: st.DataObject, form: str) -> None:
    talk = chatgpt(current_node="end") if form == "chatgpt" else claude()
    place = data.draw(st.sampled_from(places(talk)[1:]))
    broken = with_value(talk, place, data.draw(JSON))
    read = read_export([broken, talk], "conversations.json")
    assert read is None or len(read) >= 1


def claude() -> dict[str, Any]:
    messages = [
        {"sender": "human", "content": [{"type": "text", "text": "Which tea?"}], "created_at": "2026-01-05T09:30:00Z"},
        {"sender": "assistant", "text": "Green.", "attachments": [{"file_name": "a.txt", "extracted_content": "Tea"}]},
    ]
    return {"uuid": "u-1", "name": "Tea", "created_at": "2026-01-05T09:30:00Z", "chat_messages": messages}


def test_of_a_claude_export_turns_and_attached_texts_are_taken(tmp_path: Path) -> None:
    messages = [
        {"sender": "human", "text": "Look", "content": [{"type": "text", "text": "Look at this"}],
         "created_at": "2026-01-05T09:30:00Z",
         "attachments": [{"file_name": "tea.md", "extracted_content": "# Tea"}, {"file_name": "x.png"}]},
        {"sender": "assistant", "text": "", "content": [{"type": "tool_use", "input": {}}]},
        {"sender": "assistant", "text": "Fine.", "content": []},
    ]  # fmt: skip
    export = {"uuid": "u-1", "name": "Tea", "created_at": "2026-01-05T09:30:00Z", "chat_messages": messages}
    chat, attached = parts(tmp_path, "conversations.json", {"conversations": [export]})
    turns = [ReceivedTurn("Look at this", "user", "", BEGUN), ReceivedTurn("Fine.", "assistant", "", BEGUN)]
    assert chat == FileConversation("Tea", "claude:u-1", turns, BEGUN)
    assert attached == ReceivedDocument("# Tea", "tea.md", "attachment", said_at=BEGUN)


def test_a_list_of_messages_is_a_conversation_without_its_system_prompt(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Tea?"}]
    (chat,) = parts(tmp_path, "call.json", {"messages": messages})
    assert isinstance(chat, FileConversation)
    assert [turn.text for turn in chat.turns] == ["Tea?"]


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.pdf", "%PDF", "unknown_form"), ("a.zip", "PK", "unknown_form"), ("a.json", {"name": "x"}, "unknown_form"),
        ("a.json", [1, 2], "unknown_form"), ("a.json", "{", "damaged_file"), ("a.jsonl", "[1]", "damaged_file"),
        ("a.jsonl", "{}", "damaged_file"), ("a.jsonl", "[" * 100_000, "damaged_file"),
        ("a.json", "[" * 100_000, "damaged_file"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_what_to_do(tmp_path: Path, name: str, content: Any, code: str) -> None:
    with pytest.raises(ValidationError) as caught:
        parts(tmp_path, name, content)
    assert caught.value.code == code
    assert caught.value.recovery


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_parse_file_of_a_unicode_encoding_reads_its_text(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding.endswith("e") else ""
    (tmp_path / "a.txt").write_bytes((mark + "Grüße — 港").encode(encoding))
    (document,) = parse_file(tmp_path / "a.txt")
    assert isinstance(document, ReceivedDocument)
    assert document.text == "Grüße — 港"


@pytest.mark.parametrize("damaged", ['{"content": "I al', "\0" * 20, "[1]", "[" * 100_000, "no JSON"])
def test_parse_file_of_lines_skips_and_names_damaged_ones(tmp_path: Path, damaged: str) -> None:
    first, last = ({"role": "user", "content": text} for text in ("Tea?", "line\u2028separator"))
    lines = [json.dumps(first), damaged, "", json.dumps(last, ensure_ascii=False)]
    skipped, chat = parts(tmp_path, "a.jsonl", "\r\n".join(lines))
    assert skipped == SkippedPart("line 2")
    assert isinstance(chat, FileConversation)
    assert [turn.text for turn in chat.turns] == ["Tea?", "line\u2028separator"]


@pytest.mark.parametrize(
    "damaged", [None, "text", [], {"title": "no messages"}, {"mapping": None}, {"chat_messages": {}}]
)
def test_parse_file_of_an_export_skips_and_names_damaged_conversations(tmp_path: Path, damaged: Any) -> None:
    for talk in (chatgpt(current_node="end"), claude()):
        skipped, chat, *_ = parts(tmp_path, "conversations.json", [damaged, talk])
        assert skipped == SkippedPart("conversation 1")
        assert isinstance(chat, FileConversation)


def test_parse_file_of_claude_leaves_edited_messages_and_their_answers_out(tmp_path: Path) -> None:
    root = "00000000-0000-4000-8000-000000000000"
    texts = {"1": root, "2": "1", "3": root, "4": "3", "5": "2", "6": "4", "7": "4", "8": "lost", "9": "8"}
    messages = [
        {
            "uuid": key,
            "parent_message_uuid": parent,
            "sender": "human",
            "text": f"Text {key}",
            "created_at": "2026-01-05",
        }
        for key, parent in texts.items()
    ]
    export = {"uuid": "u-1", "name": "Tea", "chat_messages": messages, "current_leaf_message_uuid": "6"}
    (chat,) = parts(tmp_path, "conversations.json", [export])
    assert isinstance(chat, FileConversation)
    assert [turn.text for turn in chat.turns] == ["Text 3", "Text 4", "Text 6", "Text 8", "Text 9"]


def test_a_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("Grüße".encode("latin-1"))
    with pytest.raises(ValidationError, match="byte 2"):
        list(parse_file(tmp_path / "a.txt"))
