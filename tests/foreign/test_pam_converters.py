"""Imported chats next to the converters of portable-ai-memory, on 240 generated exports of ChatGPT and Claude.

The converters return all versions of edited messages, so their messages are chosen by the branch that was generated.
Needs `portable-ai-memory` from PyPI; skipped without it.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.knowledge.intake.turns import FileConversation
from tests.unit.knowledge.sources.conftest import read_source, write_files

if TYPE_CHECKING:
    from pathlib import Path

    Said = tuple[str, str, datetime | None]
    """Role, text and time of a message."""

pytestmark = pytest.mark.deep

EXPORTS = 120
DAY = timedelta(days=1)
BEGUN = 1_767_000_000.0
WORDS = (
    "boat",
    "harbour",
    "ledger",
    "kestrel",
    "Zürich",
    "東京",
    "naïve",
    "tea 🫖",
    "x = 1\ny = 2",
    "- item",
    "#tag",
    "?",
)


def build_text(choose: random.Random) -> str:
    """Return a text of one to eight words."""
    return " ".join(choose.choices(WORDS, k=choose.randint(1, 8))) + f" {choose.randrange(10_000)}"


def build_chatgpt(choose: random.Random, number: int) -> tuple[dict[str, Any], list[str]]:
    """Return a conversation of ChatGPT, and the IDs of its messages in the current branch."""
    nodes: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None, "children": []}}
    branch, parent, kinds = list[str](), "root", ("user", "assistant", "tool", "hidden", "image", "empty")
    for step in range(choose.randint(1, 12)):
        versions = 1 + (choose.random() < 0.3) + (choose.random() < 0.1)
        keys = [f"{number}-{step}-{version}" for version in range(versions)]
        for key in keys:
            kind = choose.choices(kinds, (8, 8, 2, 1, 1, 1))[0]
            nodes[key] = {"id": key, "parent": parent, "children": [], "message": build_node(choose, key, kind, step)}
            nodes[parent]["children"].append(key)
        parent = choose.choice(keys)
        branch.append(parent)
    talk = {
        "title": choose.choice((f"Talk {number}", None, "")),
        "create_time": BEGUN,
        "id": f"talk-{number}",
        "conversation_id": f"talk-{number}",
        "current_node": parent,
        "mapping": dict(choose.sample([*nodes.items()], len(nodes))) if choose.random() < 0.2 else nodes,
    }
    return talk, branch


def build_node(choose: random.Random, key: str, kind: str, step: int) -> dict[str, Any]:
    """Return the message of a node."""
    role = {"hidden": "user", "image": "user", "empty": "assistant"}.get(kind, kind)
    parts: list[Any] = [build_text(choose)] if kind != "empty" else [""]
    metadata: dict[str, Any] = {"is_visually_hidden_from_conversation": True} if kind == "hidden" else {}
    content = {"content_type": "text", "parts": parts}
    if kind == "image":
        pointer = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f", "size_bytes": 3}
        content = {"content_type": "multimodal_text", "parts": [pointer, *parts]}
        metadata["attachments"] = [{"id": "f", "name": "a.png", "size": 3, "mime_type": "image/png"}]
    return {
        "id": key,
        "author": {"role": role, "name": "web" if role == "tool" else None, "metadata": {}},
        "create_time": None if choose.random() < 0.1 else BEGUN + 60 * step + 0.25,
        "update_time": None,
        "content": content,
        "status": "finished_successfully",
        "weight": 1.0,
        "metadata": metadata,
        "recipient": "all",
        "channel": None,
    }


def build_claude(choose: random.Random, number: int) -> tuple[dict[str, Any], list[str]]:
    """Return a conversation of Claude, and the IDs of its messages in the current branch."""
    messages, branch, parent = list[dict[str, Any]](), list[str](), "00000000-0000-4000-8000-000000000000"
    for step in range(choose.randint(1, 12)):
        versions = 1 + (choose.random() < 0.3)
        for version in range(versions):
            key, sender = f"{number}-{step}-{version}", ("human", "assistant")[step % 2]
            text, moment = build_text(choose), datetime.fromtimestamp(BEGUN + 60 * step, UTC)
            has_text = choose.random() < 0.9
            attachment = {"file_name": "a.txt", "file_size": 3, "extracted_content": build_text(choose)}
            messages.append(
                {
                    "uuid": key,
                    "parent_message_uuid": parent,
                    "sender": sender,
                    "text": text if has_text else "",
                    "content": [{"type": "text", "text": text, "citations": []}] if has_text else [],
                    "created_at": moment.isoformat().replace("+00:00", "Z"),
                    "updated_at": moment.isoformat(),
                    "attachments": [attachment] if choose.random() < 0.2 else [],
                    "files": [{"file_name": "b.png"}] if choose.random() < 0.1 else [],
                }
            )
        branch.append(key)  # the last version is the current one
        parent = key
    talk = {
        "uuid": f"talk-{number}",
        "name": choose.choice((f"Talk {number}", "")),
        "created_at": "2025-12-29T09:20:00Z",
    }
    return {**talk, "chat_messages": messages}, branch


def convert(converter: Any, talks: list[dict[str, Any]], branches: dict[str, list[str]]) -> dict[str, list[Said]]:
    """Return what the converter reads in the current branch of each conversation.

    It gives messages without a time the present one; the import gives them that of their conversation.
    """
    said: dict[str, list[Said]] = {}
    for talk in converter.convert_conversations(talks):
        messages, begun = {message.id: message for message in talk.messages}, talk.temporal.created_at
        said[talk.id] = [
            (message.role.value, message.content.text.strip(), moment if moment < begun + DAY else begun)
            for message in (messages[key] for key in branches[talk.id] if key in messages)
            if message.role.value in {"user", "assistant"} and (message.content.text or "").strip()
            for moment in [message.created_at]
        ]
    return {key: turns for key, turns in said.items() if turns}


@pytest.mark.parametrize("program", ["openai", "anthropic"])
def test_generated_exports_give_what_the_converter_reads(program: str, tmp_path: Path) -> None:
    module = pytest.importorskip(f"portable_ai_memory.converters.{program}")
    converter = {"openai": "OpenAIConverter", "anthropic": "AnthropicConverter"}[program]
    build = {"openai": build_chatgpt, "anthropic": build_claude}[program]
    different, count = [], 0
    for seed in range(EXPORTS):
        choose = random.Random(seed)
        built = [build(choose, number) for number in range(choose.randint(1, 4))]
        talks, branches = [talk for talk, _ in built], {f"talk-{n}": branch for n, (_, branch) in enumerate(built)}
        parts = read_source(write_files(tmp_path / str(seed), {"conversations.json": talks}))
        read = {part.key.partition(":")[2]: list_said(part) for _, part in parts if isinstance(part, FileConversation)}
        ours = {key: turns for key, turns in read.items() if turns}
        theirs = convert(getattr(module, converter)(), talks, branches)
        different += [(seed, ours, theirs)] if ours != theirs else []
        count += sum(map(len, theirs.values()))
    assert different == []
    assert count > 10 * EXPORTS


def list_said(talk: FileConversation) -> list[Said]:
    """Return what the user and the assistant said in a conversation."""
    return [(turn.role, turn.text.strip(), turn.said_at) for turn in talk.turns if turn.role in {"user", "assistant"}]
