"""From a file to documents and conversations: Markdown, text, chats in JSON lines. Reads; stores nothing.

The exports of ChatGPT and Claude are in `agent_memory.knowledge.intake.exports`.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.files.atomic import read_file, translated
from agent_memory.knowledge.intake.document_index import DOCUMENT_ID, describe_path, get_real_path
from agent_memory.knowledge.intake.drafting import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.exports import parts_of_export
from agent_memory.knowledge.intake.session_logs import UnknownShapeError, read_log
from agent_memory.knowledge.intake.transcripts import transcript_in
from agent_memory.knowledge.intake.turns import FileConversation, find_past_day
from agent_memory.knowledge.passages.front_matter import FrontMatter, read_front_matter
from agent_memory.models import from_seconds
from agent_memory.models.clock import FILE_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from agent_memory.knowledge.intake.drafting import ReceivedTurn
    from agent_memory.models import Resource

_MOST_BYTES: Final = 512 << 20
_TEXTS: Final = frozenset({".md", ".markdown", ".txt", ".text", ".rst", ".org", ".adoc", ""})
_CONFIGS: Final = frozenset({".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf"})
_LINES: Final = frozenset({".jsonl", ".ndjson"})
FORMS: Final = (
    "Markdown and text (.md, .txt; lines such as `Ada: words` are a chat), settings (.yaml, .toml, .ini), chats with a "
    "JSON object a line (.jsonl: `role` or `speaker`, `content` or `text`), session logs of Claude Code, Codex, Gemini "
    "CLI, Cursor and Amplifier, messages of an API or of LangChain, conversations.json of an export of ChatGPT "
    "or Claude"
)


def parse_file(path: Path) -> Iterator[ReceivedDocument | FileConversation | SkippedPart]:
    """Yield what is in a file, in its order, with the parts that cannot be read.

    Raises:
        ValidationError: `unknown_form`: of no form that is known here; `not_text`: not in UTF-8 or UTF-16; `too_long`.
        StorageError: It cannot be read.
    """
    for part in _parse_parts(path):
        yield _fill_times(part, path) if isinstance(part, FileConversation) else part


def _fill_times(part: FileConversation, path: Path) -> FileConversation:
    """Return a conversation whose turns without a time have its own, or that of the file."""
    said_at = part.said_at or from_seconds(path.stat().st_mtime)
    more = {} if part.said_at else {FILE_TIME: True}
    turns = [
        turn if turn.said_at else replace(turn, said_at=said_at, metadata={**turn.metadata, **more})
        for turn in part.turns
    ]
    return replace(part, turns=turns, said_at=said_at)


def _parse_parts(path: Path) -> Iterator[ReceivedDocument | FileConversation | SkippedPart]:
    suffix = path.suffix.lower()
    if suffix not in _TEXTS | _CONFIGS | _LINES | {".json"}:
        raise _unknown(path.name, f"files that end with {suffix} are not known here")
    text = _text_of(path)
    if suffix in _LINES:
        yield from chats_of_lines(text, path.name)
    elif suffix == ".json":
        yield from _parts_of_json(text, path)
    else:
        yield _of_text(text, path, is_config=suffix in _CONFIGS)


def is_known_file(path: Path) -> bool:
    """Return True if a file name has a known suffix."""
    suffix = path.suffix.lower()
    return bool(suffix) and suffix in _TEXTS | _CONFIGS | _LINES | {".json"}


def has_its_id(resource: Resource) -> bool:
    """Return True if a document's file has its id or is unreadable."""
    path = get_real_path(resource)
    try:
        return path is None or read_front_matter(_text_of(path)).document_id == resource.metadata.get(DOCUMENT_ID)
    except AgentMemoryError:
        return True


def chats_of_lines(text: str, name: str) -> Iterator[FileConversation | SkippedPart]:
    """Yield the conversations of JSON lines, one turn each, in the order in which they begin.

    Lines that are no JSON object, such as the last line of a file that was cut, are yielded as skipped parts.

    Args:
        text: The lines. `conversation_id`, `conversation`, `session_id`, `session` or `thread_id` tells conversations
            apart; without them all is one.
        name: Of the file: of what the conversations without a name of their own are called.

    Raises:
        ValidationError: No line is a turn.
    """
    lines: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(text.split("\n"), 1):  # a JSON text may hold other line separators
        value = _read_line(line)
        if isinstance(value, dict):
            lines[number] = value
        elif line.strip():
            yield SkippedPart(f"line {number}")
    try:
        form, turns = read_log([*lines.values()])
    except UnknownShapeError as error:
        raise _unknown(name, _inner_role(f"line {[*lines][error.number]}")) from None
    talks: dict[str, list[ReceivedTurn]] = {}
    for key, turn in turns:
        talks.setdefault(key, []).append(turn)
    if not talks:
        raise _damaged(f"{name} has no line that is a JSON object with `content` or `text`")
    first = next(iter(talks.values()))[0].text
    for key, own_turns in talks.items():
        own = key or hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        yield FileConversation(key or name, f"{name}:{own}", own_turns, own_turns[0].said_at, form)


def _read_line(line: str) -> Any:
    """Return the value of a line of JSON, or None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _parts_of_json(text: str, path: Path) -> Iterable[ReceivedDocument | FileConversation | SkippedPart]:
    try:
        parts = parts_of_export(_json(text, path.name), path.name)
    except UnknownShapeError as error:
        raise _unknown(path.name, _inner_role(f"message {error.number + 1}")) from None
    if parts is None:
        raise _unknown(path.name, "this JSON is no chat and no export that is known")
    return parts


def _of_text(text: str, path: Path, *, is_config: bool) -> ReceivedDocument | FileConversation:
    talk = None if is_config else transcript_in(text, path.name)
    if talk is not None:
        return talk
    said = FrontMatter() if is_config else read_front_matter(text)
    changed_at = from_seconds(path.stat().st_mtime)
    written_at = said.written_at or find_past_day(path.name, changed_at)
    more = {} if written_at else {FILE_TIME: True}
    metadata = {**describe_path(str(path.resolve())), **said.metadata, **more}
    kind = "config" if is_config else "document"
    return ReceivedDocument(text, path.name, kind, written_at or changed_at, said.tags, metadata)


def _text_of(path: Path) -> str:
    with translated(path, "read"):
        if path.stat().st_size > _MOST_BYTES:
            raise ValidationError(
                f"{path.name} has more than {_MOST_BYTES >> 20} MB; nothing of it was taken in.",
                code="too_long",
                recovery="Split it into files of fewer conversations.",
            )
        content = read_file(path)
    is_utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValidationError(
            f"{path.name} is no text in UTF-8 (byte {error.start:,}); nothing of it was ingested.",
            code="not_text",
            recovery="Save it as UTF-8. A text of an older Windows program: `iconv -f WINDOWS-1252 -t UTF-8 FILE`.",
        ) from None


def _json(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else type(error).__name__
        raise _damaged(f"{what} is no JSON ({reason})") from None


def _damaged(what: str) -> ValidationError:
    return ValidationError(
        f"Nothing was taken in: {what}.",
        code="damaged_file",
        recovery="Mend or remove that part, or write the file anew, and take it in again.",
    )


def _inner_role(where: str) -> str:
    return f"{where} says who speaks in an inner object, at a place that is not known here, so its speakers are unclear"


def _unknown(name: str, why: str) -> ValidationError:
    return ValidationError(
        f"{name} was not taken in: {why}.",
        code="unknown_form",
        recovery=f"Known are {FORMS}. Unpack an archive first.",
    )
