"""Turns as files have them: whose words, which of them, when, under the many names that programs give these."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agent_memory.knowledge.intake.drafting import Turn
from agent_memory.models import as_utc, from_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MILLISECONDS: Final = 1e11
"""Seconds since 1970 are fewer than this until the year 5138; what is more counts milliseconds."""
ROLES: Final = {
    "human": "user", "user": "user", "assistant": "assistant", "ai": "assistant", "bot": "assistant",
    "model": "assistant", "tool": "tool", "function": "tool", "system": "system", "developer": "system",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a file; `key` is what it is called there."""

    title: str
    key: str
    turns: Sequence[Turn] = ()
    said_at: datetime | None = None


def turn_of(value: Mapping[str, Any]) -> Turn | None:
    """Return the turn of an object with `role` (or `sender`, `author`), `content` (or `text`), `speaker`, `timestamp`.

    None where it has no text.
    """
    text = text_in(first_of(value, "content", "text", "message"))
    if not text.strip():
        return None
    named = first_of(value, "role", "sender", "author", "from")
    said = str(named).strip() if isinstance(named, str) else ""
    role = ROLES.get(said.lower(), "user")
    speaker = first_of(value, "speaker", "name")
    who = str(speaker) if isinstance(speaker, str) else ("" if said.lower() in ROLES else said)
    moment = moment_of(first_of(value, "timestamp", "created_at", "said_at", "date", "time", "create_time"))
    return Turn(text, role, mended(who), moment)


def text_in(content: Any) -> str:
    """Return the text of a message: a string, or the texts among its parts."""
    if isinstance(content, str):
        return mended(content)
    if isinstance(content, list):
        return "\n".join(text for part in content if (text := text_in(part)))
    if isinstance(content, dict):
        return text_in(first_of(content, "text", "parts", "content"))
    return ""


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
