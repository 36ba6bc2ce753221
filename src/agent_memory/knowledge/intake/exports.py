"""From `conversations.json` of an export of ChatGPT or Claude, or a list of messages, to conversations.

Both keep a conversation as a tree: editing a question begins another branch. Only the branch that the export calls
current is ingested. Hidden messages, system messages and calls of tools are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.drafting import UNKNOWN, ReceivedDocument, ReceivedTurn, SkippedPart
from agent_memory.knowledge.intake.session_logs import read_log
from agent_memory.knowledge.intake.turns import (
    MESSAGE_KEYS,
    FileConversation,
    clean_speaker,
    collect_text,
    has_only,
    is_hidden,
    is_plain,
    make_turns,
    mended,
    moment_of,
    split_keys,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SAID: Final = frozenset({"text", "multimodal_text", "code", "execution_output"})
"""Contents that somebody said or a tool answered; others are a model's thoughts, settings of a user, pictures."""
_SPOKEN: Final = frozenset({"audio_transcription"})
"""Parts with a type that hold words of the message's author."""
_NODE_KEYS: Final = split_keys("""
    author channel content create_time end_turn id metadata recipient status update_time weight
""")
_CONTENT_KEYS: Final = frozenset({"content_type", "parts", "text", "language", "response_format_name"})
_CLAUDE_KEYS: Final = MESSAGE_KEYS | {"edited_at", "files_v2", "sync_sources", "truncated"}
_MOST_NODES: Final = 1_000_000


def parts_of_export(value: Any, name: str) -> list[FileConversation | ReceivedDocument | SkippedPart] | None:
    """Return the conversations of an export with the texts attached to them, or of a list of messages.

    A conversation that is no object, or has no messages, is a skipped part.

    Args:
        value: What the file holds, as JSON.
        name: Of the file.

    Returns:
        None where it is none of these.
    """
    if isinstance(value, dict) and isinstance(value.get("conversations"), list):
        value = value["conversations"]
    many = value if isinstance(value, list) else [value]
    for key, inner, read in (("mapping", dict, _of_chatgpt), ("chat_messages", list, _of_claude)):
        is_whole = [isinstance(each, dict) and isinstance(each.get(key), inner) for each in many]
        if any(is_whole):
            return [
                part
                for number, each in enumerate(many, 1)
                for part in (read(each) if is_whole[number - 1] else [SkippedPart(f"conversation {number}")])
            ]
    return _of_messages(value, name)


def _of_chatgpt(value: Mapping[str, Any]) -> Iterator[FileConversation]:
    nodes = _mapping(value["mapping"])
    turns = [turn for node in _branch(nodes, value.get("current_node")) for turn in _read_node(node)]
    key = value.get("conversation_id") or value.get("id") or value.get("create_time")
    yield FileConversation(
        _title(value.get("title")), f"chatgpt:{key}", turns, moment_of(value.get("create_time")), "chatgpt"
    )


def _branch(nodes: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """Return the nodes from the first to the current one; without that, to the last child each time."""
    last = _name(current)
    if last not in nodes:
        last = _last_leaf(nodes)
    parents = {key: _name(node.get("parent")) for key, node in nodes.items() if isinstance(node, dict)}
    return [nodes[key] for key in reversed(_list_ancestors(parents, last))]


def _last_leaf(nodes: Mapping[str, Any]) -> str:
    whole = {key: node for key, node in nodes.items() if isinstance(node, dict)}
    at = next((key for key, node in whole.items() if _name(node.get("parent")) not in nodes), "")
    for _ in range(min(len(nodes), _MOST_NODES)):
        children = [one for each in _list(whole.get(at, {}).get("children")) if (one := _name(each)) in whole]
        if not children:
            break
        at = children[-1]
    return at


def _read_node(node: Mapping[str, Any]) -> list[ReceivedTurn]:
    message = node.get("message")
    if not isinstance(message, dict):
        return []
    author, content, metadata = (_mapping(message.get(name)) for name in ("author", "content", "metadata"))
    role, kind = _name(author.get("role")), _name(content.get("content_type"))
    if role not in {"user", "assistant", "tool"} or is_hidden(message) or metadata.get("is_user_system_message"):
        return []
    if kind not in _SAID or message.get("recipient") not in (None, "all"):
        return []
    if kind == "execution_output" or _name(_mapping(author.get("metadata")).get("real_author")).startswith("tool"):
        role = "tool"
    parts = content.get("parts") if content.get("parts") is not None else content.get("text")
    own = [
        part for part in _list(parts) if isinstance(part, str) or _name(_mapping(part).get("content_type")) in _SPOKEN
    ]
    text = collect_text(parts if isinstance(parts, str) else own)
    speaker = clean_speaker(_name(author.get("name"))) if role == "tool" else ""
    if role != "tool" and not _is_plain_node(message, author, content):
        role = UNKNOWN
    return make_turns(text, role, speaker, moment_of(message.get("create_time")))


def _is_plain_node(message: Mapping[str, Any], author: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """Return True if nothing in ChatGPT's message makes its role doubtful."""
    return (
        has_only(message, _NODE_KEYS)
        and has_only(author, frozenset({"role", "metadata"}))
        and not _mapping(author.get("metadata")).get("real_author")
        and has_only(content, _CONTENT_KEYS)
        and (author.get("role") != "user" or content.get("content_type") in {"text", "multimodal_text"})
    )


def _of_claude(value: Mapping[str, Any]) -> Iterator[FileConversation | ReceivedDocument]:
    messages = _list_current(value)
    turns = [turn for message in messages for turn in _read_claude(message)]
    begun = moment_of(value.get("created_at"))
    yield FileConversation(_title(value.get("name")), f"claude:{value.get('uuid')}", turns, begun, "claude")
    for message in messages:
        for each in _list(message.get("attachments")):
            text = collect_text(each.get("extracted_content")) if isinstance(each, dict) else ""
            if text.strip():
                yield ReceivedDocument(
                    text, _title(each.get("file_name")), said_at=moment_of(message.get("created_at"))
                )


def _list_current(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a Claude conversation without those that an edit replaced."""
    messages = [each for each in value["chat_messages"] if isinstance(each, dict)]
    nodes = {_name(each.get("uuid")): each for each in messages if each.get("uuid")}
    parents = {key: _name(each.get("parent_message_uuid")) for key, each in nodes.items()}
    if not any(parents.values()):
        return messages
    current = _name(value.get("current_leaf_message_uuid"))
    branch = set(_list_ancestors(parents, current if current in nodes else list(nodes)[-1]))
    forks = {parents[key] for key in branch} - {""}
    children: dict[str, list[str]] = {}
    for key, parent in parents.items():
        children.setdefault(parent, []).append(key)
    replaced = [key for key, parent in parents.items() if parent in forks and key not in branch]
    for key in replaced:  # grows while it is read
        replaced += children.get(key, ())
    left_out = set(replaced)
    return [message for message in messages if _name(message.get("uuid")) not in left_out]


def _list_ancestors(parents: Mapping[str, str], key: str) -> list[str]:
    """Return the ID of a message and of those that it follows, the last first."""
    ancestors: dict[str, None] = {}
    while key in parents and key not in ancestors:
        ancestors[key] = None
        key = parents[key]
    return list(ancestors)


def _read_claude(message: Mapping[str, Any]) -> list[ReceivedTurn]:
    role = {"human": "user", "assistant": "assistant"}.get(_name(message.get("sender")), UNKNOWN)
    content = message.get("content") or message.get("text")
    if not is_plain(message, role, _CLAUDE_KEYS):
        role = UNKNOWN
    return make_turns(content, role, said_at=moment_of(message.get("created_at")))


def _of_messages(value: Any, name: str) -> list[FileConversation | ReceivedDocument | SkippedPart] | None:
    """Return the conversation in a list of messages of an API.

    Raises:
        UnknownShapeError: A message states its role at a place that no reader knows.
    """
    if isinstance(value, dict):
        value = value.get("messages")
    messages = [message for message in _list(value) if isinstance(message, dict)]
    if not messages:
        return None
    form, keyed = read_log(messages)
    spoken = [turn for _, turn in keyed if turn.role != "system"]
    is_chat = any(turn.role != UNKNOWN or turn.speaker for turn in spoken)
    return [FileConversation(name, f"{name}:messages", spoken, spoken[0].said_at, form)] if is_chat else None


def _title(value: Any) -> str:
    return mended(value) if isinstance(value, str) else ""


def _name(value: Any) -> str:
    """Return a value that is to be a name; empty for whatever else stands there."""
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
