"""Messages of files as turns: who speaks, the words, and when.

A role must be stated to count: a missing or unknown one is `unknown`, which is untrusted, and never the user. Parts of
a message decide who speaks: what a tool answered is the tool's, also in a message of the user's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.drafting import PERSON, UNKNOWN, Turn
from agent_memory.models import as_utc, from_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MILLISECONDS: Final = 1e11
"""Seconds since 1970 are fewer than this until the year 5138; what is more counts milliseconds."""
ROLES: Final = {
    "human": "user", "user": "user", "assistant": "assistant", "ai": "assistant", "model": "assistant", "tool": "tool",
    "function": "tool", "system": "system", "developer": "system",
}  # fmt: skip
_ROLE_NAMES: Final = ("role", "sender", "author", "from")
_TEXTS: Final = ("content", "text", "message", "parts")
_MOMENTS: Final = ("timestamp", "created_at", "said_at", "date", "time", "create_time", "ts")
_SAID_PARTS: Final = frozenset({"", "text", "input_text", "output_text"})
"""Types of parts that hold words of the message's role."""
_TOOL_MARKS: Final = frozenset({
    "toolUseResult", "tool_use_id", "tool_call_id", "toolCallId", "call_id", "functionResponse", "function_response",
})  # fmt: skip
"""Keys of a line or a part with a tool's answer."""
_TOOL_TYPE: Final = re.compile(r"tool_result|tool_response|function_response|_output\Z")
_MESSAGE_TYPES: Final = frozenset({"message", "text", "chat", "msg"})
_HIDDEN: Final = (
    "isMeta", "isSidechain", "isCompactSummary", "isSynthetic", "isVisibleInTranscriptOnly", "is_meta", "is_hidden",
    "is_visually_hidden_from_conversation",
)  # fmt: skip
"""Flags of lines that a program wrote for itself, under another role."""
_INSERTED: Final = re.compile(r"<([A-Z]{4,}+|[A-Za-z][A-Za-z0-9]*+(?:[-_][A-Za-z0-9]++)++)(?:\s[^<>]*+)?+>")
"""Opening tag of a program's text inside a user's message: `<system-reminder>`."""
_DEPTH: Final = 6
"""Levels of a value that are searched for texts and roles."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a file; `key` names it, `form` is its format."""

    title: str
    key: str
    turns: Sequence[Turn] = ()
    said_at: datetime | None = None
    form: str = field(default="", compare=False)


def read_message(value: Mapping[str, Any]) -> list[Turn]:
    """Return the turns of a message, with answers of tools apart.

    Args:
        value: Object with `role` (or `sender`, `author`, `from`) and `content` (or `text`, `message`, `parts`); also
            `speaker` or `name`, and `timestamp`. With a `speaker` and no role it is a person's.

    Returns:
        No turn where the message has no text, or is one that a program wrote for itself.
    """
    if is_hidden(value):
        return []
    stated, name = _read_role(value)
    speaker = first_of(value, "speaker", "name")
    who = clean_speaker(speaker if isinstance(speaker, str) else name)
    is_person = (
        who and isinstance(value.get("speaker"), str) and not value.keys() & set(_ROLE_NAMES) and "type" not in value
    )
    own = PERSON if stated == UNKNOWN and is_person else stated
    moment = moment_of(first_of(value, *_MOMENTS))
    return make_turns(first_of(value, *_TEXTS), own, who, moment)


def make_turns(content: Any, role: str, speaker: str = "", said_at: datetime | None = None) -> list[Turn]:
    """Return the turns of a content, with the role of each part."""
    turns: list[Turn] = []
    for own, text in _split_parts(content, role):
        for who, words in _split_inserted(text) if own == "user" else ((own, text),):
            if not words.strip():
                continue
            if turns and turns[-1].role == who:
                turns[-1] = replace(turns[-1], text=f"{turns[-1].text}\n{words}")
            else:
                turns.append(Turn(words, who, speaker if who == role else "", said_at))
    return turns


def is_hidden(value: Mapping[str, Any]) -> bool:
    """Return True if a program wrote a message for itself."""
    metadata = value.get("metadata")
    own = metadata if isinstance(metadata, dict) else {}
    return own.get("source") == "hook" or any(value.get(flag) or own.get(flag) for flag in _HIDDEN)


def has_inner_role(value: Any, depth: int = _DEPTH) -> bool:
    """Return True if an object inside a value states a role."""
    if not isinstance(value, dict | list) or not depth:
        return False
    inner = value.values() if isinstance(value, dict) else value
    return any((isinstance(part, dict) and "role" in part) or has_inner_role(part, depth - 1) for part in inner)


def has_role(value: Mapping[str, Any]) -> bool:
    """Return True if a message itself has a role or a name."""
    return any(isinstance(value.get(name), str) for name in (*_ROLE_NAMES, "speaker", "name"))


def _read_role(value: Mapping[str, Any]) -> tuple[str, str]:
    """Return the role that a message states, and its other name."""
    stated = first_of(value, *_ROLE_NAMES)
    label = stated.strip() if isinstance(stated, str) else ""
    kind = value.get("type")
    type_name = kind.lower() if isinstance(kind, str) else ""
    if _TOOL_MARKS & value.keys() or _TOOL_TYPE.search(type_name):
        return "tool", ""
    role = ROLES.get(label.lower(), UNKNOWN)
    if len(_list_known_roles(value)) > 1:
        return UNKNOWN, ""
    if type_name and type_name not in _MESSAGE_TYPES and ROLES.get(type_name, UNKNOWN) != role:
        return UNKNOWN, ""
    return role, label if role == UNKNOWN else ""


def _list_known_roles(value: Mapping[str, Any]) -> set[str]:
    """Return the known roles that a message states, under any name."""
    stated = [value.get(name) for name in _ROLE_NAMES]
    labels = [label.get("role") if isinstance(label, dict) else label for label in stated]
    return {ROLES[role] for label in labels if isinstance(label, str) and (role := label.strip().lower()) in ROLES}


def clean_speaker(name: str) -> str:
    """Return a speaker's name, or nothing if it claims a role."""
    own = mended(name).strip()
    return "" if own.casefold().removeprefix("the ").strip() in ROLES else own


def _split_parts(content: Any, role: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a content, with their roles."""
    if isinstance(content, str):
        yield role, mended(content)
    elif isinstance(content, list):
        for part in content:
            yield from _split_parts(part, role)
    elif isinstance(content, dict):
        yield from _split_part(content, role)


def _split_part(part: Mapping[str, Any], role: str) -> Iterator[tuple[str, str]]:
    kind = part.get("type") or part.get("content_type") or ""
    kind = kind if isinstance(kind, str) else "?"
    if _TOOL_MARKS & part.keys() or _TOOL_TYPE.search(kind):
        yield "tool", collect_text(part)
    elif kind in _SAID_PARTS and not part.get("thought"):
        inner = part.get("role")
        same = inner is None or (isinstance(inner, str) and ROLES.get(inner.lower()) == role)
        text = first_of(part, "text", "value", *(() if kind else ("parts", "content")))
        yield from _split_parts(text, role if same else UNKNOWN)


def _split_inserted(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a user's text, with a program's blocks apart.

    A block ends at the last tag that closes it, since its own text may hold such a tag, too.
    """
    place = 0
    while match := _INSERTED.search(text, place):
        closing = f"</{match[1]}>"
        last = text.rfind(closing, match.end())
        end = len(text) if last < 0 else last + len(closing)
        yield "user", text[place : match.start()]
        yield "tool", text[match.start() : end]
        place = end
    yield "user", text[place:]


def collect_text(value: Any, depth: int = _DEPTH) -> str:
    """Return all texts inside a tool's answer, without names and types."""
    if isinstance(value, str):
        return mended(value)
    if not isinstance(value, dict | list) or not depth:
        return ""
    inner = [part for key, part in value.items() if key not in _LABELS] if isinstance(value, dict) else value
    return "\n".join(text for part in inner if (text := collect_text(part, depth - 1)).strip())


_LABELS: Final = frozenset({"type", "id", "name", "status", "role", "toolName", "mimeType", "data"}) | _TOOL_MARKS - {
    "functionResponse", "function_response", "toolUseResult",
}  # fmt: skip


def mended(text: str) -> str:
    """Return text without what no file can carry: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def moment_of(value: Any) -> datetime | None:
    """Return the moment that seconds or milliseconds since 1970, or ISO 8601, name; None for anything else."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return from_seconds(value / 1000 if abs(value) > _MILLISECONDS else value)
        if isinstance(value, str) and value.strip():
            return as_utc(datetime.fromisoformat(value.strip()))
    except (ValueError, OverflowError, OSError):
        return None
    return None


def first_of(value: Mapping[str, Any], *names: str) -> Any:
    """Return the first of some values that is there."""
    return next((value[name] for name in names if value.get(name) is not None), None)
