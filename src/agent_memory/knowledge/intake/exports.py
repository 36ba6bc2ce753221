"""From `conversations.json` of an export of ChatGPT or Claude, or a list of messages, to conversations.

ChatGPT keeps a conversation as a tree: editing a question begins another branch. What is taken in is the branch that
the export calls current. Hidden messages, system messages and calls of tools are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.drafting import Document, Turn
from agent_memory.knowledge.intake.turns import Conversation, mended, moment_of, text_in, turn_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAID: Final = frozenset({"text", "multimodal_text", "code", "execution_output"})
"""Contents that somebody said or a tool answered; others are a model's thoughts, settings of a user, pictures."""
_MOST_NODES: Final = 1_000_000


def parts_of_export(value: Any, name: str) -> list[Conversation | Document] | None:
    """Return the conversations of an export with the texts attached to them, or of a list of messages.

    Args:
        value: What the file holds, as JSON.
        name: Of the file.

    Returns:
        None where it is none of these.
    """
    if isinstance(value, dict) and isinstance(value.get("conversations"), list):
        value = value["conversations"]
    many = value if isinstance(value, list) else [value]
    every = [each for each in many if isinstance(each, dict)]
    if every and all("mapping" in each for each in every):
        return [_of_chatgpt(each) for each in every]
    if every and all("chat_messages" in each for each in every):
        return [part for each in every for part in _of_claude(each)]
    return _of_messages(value, name)


def _of_chatgpt(value: Mapping[str, Any]) -> Conversation:
    nodes = _mapping(value["mapping"])
    turns = [turn for node in _branch(nodes, value.get("current_node")) if (turn := _turn_of_node(node)) is not None]
    key = value.get("conversation_id") or value.get("id") or value.get("create_time")
    return Conversation(_title(value.get("title")), f"chatgpt:{key}", turns, moment_of(value.get("create_time")))


def _branch(nodes: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """Return the nodes from the first to the current one; without that, to the last child each time."""
    last = _name(current)
    if last not in nodes:
        last = _last_leaf(nodes)
    found: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    while isinstance(node := nodes.get(last), dict) and last not in seen:
        seen.add(last)
        found.append(node)
        last = _name(node.get("parent"))
    return found[::-1]


def _last_leaf(nodes: Mapping[str, Any]) -> str:
    whole = {key: node for key, node in nodes.items() if isinstance(node, dict)}
    at = next((key for key, node in whole.items() if _name(node.get("parent")) not in nodes), "")
    for _ in range(min(len(nodes), _MOST_NODES)):
        children = [one for each in _list(whole.get(at, {}).get("children")) if (one := _name(each)) in whole]
        if not children:
            break
        at = children[-1]
    return at


def _turn_of_node(node: Mapping[str, Any]) -> Turn | None:
    message = node.get("message")
    if not isinstance(message, dict):
        return None
    author, content = message.get("author"), message.get("content")
    role = _name(_mapping(author).get("role"))
    is_hidden = bool(_mapping(message.get("metadata")).get("is_visually_hidden_from_conversation"))
    if role not in {"user", "assistant", "tool"} or is_hidden or not isinstance(content, dict):
        return None
    if _name(content.get("content_type")) not in _SAID or message.get("recipient") not in (None, "all"):
        return None
    text = text_in(content.get("parts") if content.get("parts") is not None else content.get("text"))
    speaker = mended(_name(_mapping(author).get("name")))
    return Turn(text, role, speaker, moment_of(message.get("create_time"))) if text.strip() else None


def _of_claude(value: Mapping[str, Any]) -> Iterator[Conversation | Document]:
    messages = [each for each in _list(value["chat_messages"]) if isinstance(each, dict)]
    turns = [turn for each in messages if (turn := _turn_of_claude(each)) is not None]
    begun = moment_of(value.get("created_at"))
    yield Conversation(_title(value.get("name")), f"claude:{value.get('uuid')}", turns, begun)
    for message in messages:
        for each in _list(message.get("attachments")):
            text = text_in(each.get("extracted_content")) if isinstance(each, dict) else ""
            if text.strip():
                yield Document(text, _title(each.get("file_name")), said_at=moment_of(message.get("created_at")))


def _turn_of_claude(message: Mapping[str, Any]) -> Turn | None:
    parts = _list(message.get("content"))
    said = [each for each in parts if isinstance(each, dict) and each.get("type") == "text"]
    text = text_in(said) or text_in(message.get("text"))
    return turn_of({**message, "content": text, "text": None})


def _of_messages(value: Any, name: str) -> list[Conversation | Document] | None:
    """Return the one conversation of a list of messages, as APIs take them."""
    if isinstance(value, dict):
        value = value.get("messages")
    if not isinstance(value, list) or not value:
        return None
    turns = [turn_of(each) for each in value if isinstance(each, dict) and ("role" in each or "speaker" in each)]
    said = [turn for turn in turns if turn is not None and turn.role != "system"]
    return [Conversation(name, f"{name}:messages", said, said[0].said_at)] if said else None


def _title(value: Any) -> str:
    return mended(value) if isinstance(value, str) else ""


def _name(value: Any) -> str:
    """Return a value that is to be a name; empty for whatever else stands there."""
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
