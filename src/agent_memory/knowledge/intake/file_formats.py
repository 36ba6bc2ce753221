"""Documents and conversations in files: Markdown, transcripts, JSON lines, exports."""

from __future__ import annotations

import codecs
import hashlib
import json
import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.files.atomic import read_file, translated
from agent_memory.files.layout import find_memory
from agent_memory.knowledge.intake.document_index import (
    DOCUMENT_ID,
    FrontMatter,
    describe_path,
    get_path,
    get_real_path,
    is_placed,
    read_front_matter,
)
from agent_memory.knowledge.intake.drafts import PERSON, UNKNOWN, ReceivedDocument, ReceivedTurn, SkippedPart
from agent_memory.knowledge.intake.session_logs import UnknownShapeError, read_log
from agent_memory.knowledge.intake.turns import (
    MESSAGE_KEYS,
    ROLES,
    FileConversation,
    StreamedTurns,
    clean_speaker,
    collect_text,
    find_days,
    find_past_day,
    has_only,
    is_hidden,
    is_plain,
    make_turns,
    parse_moment,
    repair_text,
    split_keys,
    to_list,
    to_mapping,
    to_name,
)
from agent_memory.knowledge.sources.messengers import is_whatsapp, read_whatsapp
from agent_memory.language.speakers import SpeakerTurn, parse_turn
from agent_memory.models import from_seconds
from agent_memory.models.clock import FILE_TIME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from agent_memory.models import Resource

_FIELD_WORDS: Final = """
    a added address author changed company cons date deadline depends deprecated description due duration email end
    environment expected fixed from goal host id input kind language license location name output owner password path
    phone port priority pros q removed result risk role security severity size source start state status steps subject
    summary tag tags tel time title to type url user-agent username value version website
"""
_FIELDS: Final = frozenset(_FIELD_WORDS.split())
"""Words before a colon that name a field or a kind of change, besides those that no turn begins with."""
_LEAST_TURNS: Final = 4
_LEAST_EACH: Final = 2
"""Turns of each person, on average: two people who speak twice each."""
_LEAST_PEOPLE: Final = 2
_LEAST_SHARE: Final = 0.6
"""Least share of turns among the lines after the heading, empty ones excluded; other lines continue a turn."""
_LEAST_WORDS: Final = 4
"""Least median of the words of a turn: fields hold a word or two."""
_LEAST_CHANGES: Final = 0.4
"""Least share of turns with another speaker than the turn before: lists group kinds of changes."""
_MOST_BEFORE: Final = 10
"""Most lines before the first turn, such as a heading, a date, the people present."""
_WORDS: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|\w+")
"""A word, or a sign of a script without spaces."""
_MARKED_HEADING: Final = re.compile(r"\s*#{1,6} ")
_HEADING: Final = re.compile(r"(?:#{1,6} +)?")
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


def read_transcript(text: str, name: str) -> FileConversation | None:
    """Return the conversation that a text is a transcript of, or None.

    Args:
        text: All of it.
        name: File name; title of a conversation without a heading before its first turn. A day in the
            heading, or else in the name, is the day of the talk; one in a heading further down that of what follows.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    spoken = [_turn(line) for line in lines]
    first = next((place for place, turn in enumerate(spoken) if turn is not None), None)
    if first is None or first > _MOST_BEFORE or not _is_talk(spoken[first:]):
        return None
    said_at = _day_in([*lines[:first], name])
    turns: list[ReceivedTurn] = []
    texts: list[list[str]] = []
    day = said_at
    for line, spoken_turn in zip(lines[first:], spoken[first:], strict=True):
        if _MARKED_HEADING.match(line):  # a heading of a part of the talk
            day = _day_in([line]) or day
        elif spoken_turn is not None:
            turns.append(_make_turn(spoken_turn, day))
            texts.append([turns[-1].text])
        else:
            texts[-1].append(line.strip())
    turns = [replace(turn, text="\n".join(text)) for turn, text in zip(turns, texts, strict=True)]
    title = _HEADING.sub("", lines[0].strip(), count=1).rstrip("#").rstrip() if first else ""
    begun = hashlib.sha256(turns[0].text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return FileConversation(title or name, f"{name}:{begun}", turns, said_at, "transcript")


def read_talk(text: str, name: str) -> FileConversation | None:
    """Return the conversation in a text, None for a document.

    A chat whose order of day and month is not certain has the times of its file.
    """
    if not is_whatsapp(text):
        return read_transcript(text, name)
    try:
        return read_whatsapp(text, name)
    except ValidationError:
        talk = read_whatsapp(text, name, order="dmy")
        return replace(talk, turns=[replace(turn, said_at=None) for turn in talk.turns], said_at=None)


def is_short_talk(text: str) -> bool:
    """Return True if all lines are turns, too few for a conversation."""
    spoken = [_turn(line) for line in text.splitlines() if line.strip()]
    people = {turn.speaker.casefold() for turn in spoken if turn is not None}
    return len(people) >= _LEAST_PEOPLE and None not in spoken and not _is_talk(spoken)


def _turn(line: str) -> SpeakerTurn | None:
    turn = parse_turn(f"{line} ") if not line.lstrip().startswith("{") else None
    return turn if turn is not None and turn.words.strip() and turn.speaker.casefold() not in _FIELDS else None


def _is_talk(spoken: list[SpeakerTurn | None]) -> bool:
    turns = [turn for turn in spoken if turn is not None]
    who = [turn.speaker.casefold() for turn in turns]
    people = len(set(who))
    if people < _LEAST_PEOPLE or len(turns) < max(_LEAST_TURNS, _LEAST_EACH * people):
        return False
    changes = sum(first_speaker != second_speaker for first_speaker, second_speaker in pairwise(who))
    return (
        len(turns) >= _LEAST_SHARE * len(spoken)
        and changes >= _LEAST_CHANGES * (len(turns) - 1)
        and median(len(_WORDS.findall(turn.words)) for turn in turns) >= _LEAST_WORDS
    )


def _day_in(texts: list[str]) -> datetime | None:
    """Return the first day that they name as `2026-03-02`."""
    return next((day for text in texts for day in find_days(text)), None)


def _make_turn(spoken: SpeakerTurn, said_at: datetime | None) -> ReceivedTurn:
    """Return a turn of a person, or unknown for a role label."""
    is_role = spoken.speaker.casefold() in ROLES
    return ReceivedTurn(
        spoken.words.strip(), UNKNOWN if is_role else PERSON, "" if is_role else spoken.speaker, said_at
    )


def read_export(value: Any, name: str) -> list[FileConversation | ReceivedDocument | SkippedPart] | None:
    """Return conversations and documents of an export, or None.

    A conversation without messages is a skipped part.

    Args:
        value: What the file holds, as JSON.
        name: Of the file.

    Returns:
        None for any other JSON.
    """
    if isinstance(value, dict) and isinstance(value.get("conversations"), list):
        value = value["conversations"]
    many = value if isinstance(value, list) else [value]
    for key, inner, read in (("mapping", dict, _of_chatgpt), ("chat_messages", list, _of_claude)):
        is_whole = [
            isinstance(conversation, dict) and isinstance(conversation.get(key), inner) for conversation in many
        ]
        if any(is_whole):
            return [
                part
                for number, conversation in enumerate(many, 1)
                for part in (read(conversation) if is_whole[number - 1] else [SkippedPart(f"conversation {number}")])
            ]
    return _of_messages(value, name)


def _of_chatgpt(value: Mapping[str, Any]) -> Iterator[FileConversation]:
    nodes = to_mapping(value["mapping"])
    turns = [turn for node in _branch(nodes, value.get("current_node")) for turn in _read_node(node)]
    key = value.get("conversation_id") or value.get("id") or value.get("create_time")
    yield FileConversation(
        _title(value.get("title")), f"chatgpt:{key}", turns, parse_moment(value.get("create_time")), "chatgpt"
    )


def _branch(nodes: Mapping[str, Any], current: Any) -> list[Mapping[str, Any]]:
    """Return the nodes from the first to the current one."""
    last = to_name(current)
    if last not in nodes:
        last = _last_leaf(nodes)
    parents = {key: to_name(node.get("parent")) for key, node in nodes.items() if isinstance(node, dict)}
    if not any(parents.values()):  # a simplified export
        return [nodes[key] for key in parents]
    return [nodes[key] for key in reversed(_list_ancestors(parents, last))]


def _last_leaf(nodes: Mapping[str, Any]) -> str:
    valid_nodes = {key: node for key, node in nodes.items() if isinstance(node, dict)}
    leaf = next((key for key, node in valid_nodes.items() if to_name(node.get("parent")) not in nodes), "")
    for _ in range(min(len(nodes), _MOST_NODES)):
        children = [
            child_id
            for child in to_list(valid_nodes.get(leaf, {}).get("children"))
            if (child_id := to_name(child)) in valid_nodes
        ]
        if not children:
            break
        leaf = children[-1]
    return leaf


def _read_node(node: Mapping[str, Any]) -> list[ReceivedTurn]:
    message = node.get("message")
    if not isinstance(message, dict):
        return []
    author, content, metadata = (to_mapping(message.get(name)) for name in ("author", "content", "metadata"))
    role, kind = to_name(author.get("role")), to_name(content.get("content_type"))
    if role not in {"user", "assistant", "tool"} or is_hidden(message) or metadata.get("is_user_system_message"):
        return []
    if kind not in _SAID or message.get("recipient") not in (None, "all"):
        return []
    if kind == "execution_output" or to_name(to_mapping(author.get("metadata")).get("real_author")).startswith("tool"):
        role = "tool"
    parts = content.get("parts") if content.get("parts") is not None else content.get("text")
    spoken_parts = [
        to_name(to_mapping(part).get("text")) if to_name(to_mapping(part).get("content_type")) in _SPOKEN else part
        for part in to_list(parts)
        if isinstance(part, str) or to_name(to_mapping(part).get("content_type")) in _SPOKEN
    ]
    text = collect_text(parts if isinstance(parts, str) else spoken_parts)
    speaker = clean_speaker(to_name(author.get("name"))) if role == "tool" else ""
    if role != "tool" and not _is_plain_node(message, author, content):
        role = UNKNOWN
    return make_turns(text, role, speaker, parse_moment(message.get("create_time")))


def _is_plain_node(message: Mapping[str, Any], author: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """Return True if nothing in ChatGPT's message makes its role doubtful."""
    return (
        has_only(message, _NODE_KEYS)
        and has_only(author, frozenset({"role", "metadata"}))
        and not to_mapping(author.get("metadata")).get("real_author")
        and has_only(content, _CONTENT_KEYS)
        and (author.get("role") != "user" or content.get("content_type") in {"text", "multimodal_text"})
    )


def _of_claude(value: Mapping[str, Any]) -> Iterator[FileConversation | ReceivedDocument]:
    messages = _list_current(value)
    turns = [turn for message in messages for turn in _read_claude(message)]
    begun = parse_moment(value.get("created_at"))
    yield FileConversation(_title(value.get("name")), f"claude:{value.get('uuid')}", turns, begun, "claude")
    for message in messages:
        for attachment in to_list(message.get("attachments")):
            text = collect_text(attachment.get("extracted_content")) if isinstance(attachment, dict) else ""
            if text.strip():
                title, said_at = _title(attachment.get("file_name")), parse_moment(message.get("created_at"))
                yield ReceivedDocument(text, title, "attachment", said_at)


def _list_current(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a Claude conversation without replaced ones."""
    messages = [entry for entry in value["chat_messages"] if isinstance(entry, dict)]
    nodes = {to_name(entry.get("uuid")): entry for entry in messages if entry.get("uuid")}
    parents = {key: to_name(entry.get("parent_message_uuid")) for key, entry in nodes.items()}
    if not any(parents.values()):
        return messages
    current = to_name(value.get("current_leaf_message_uuid"))
    branch = set(_list_ancestors(parents, current if current in nodes else list(nodes)[-1]))
    forks = {parents[key] for key in branch} - {""}
    children: dict[str, list[str]] = {}
    for key, parent in parents.items():
        children.setdefault(parent, []).append(key)
    replaced = [key for key, parent in parents.items() if parent in forks and key not in branch]
    for key in replaced:  # grows while it is read
        replaced += children.get(key, ())
    left_out = set(replaced)
    return [message for message in messages if to_name(message.get("uuid")) not in left_out]


def _list_ancestors(parents: Mapping[str, str], key: str) -> list[str]:
    """Return the ID of a message and its ancestors, newest first."""
    ancestors: dict[str, None] = {}
    while key in parents and key not in ancestors:
        ancestors[key] = None
        key = parents[key]
    return list(ancestors)


def _read_claude(message: Mapping[str, Any]) -> list[ReceivedTurn]:
    role = {"human": "user", "assistant": "assistant"}.get(to_name(message.get("sender")), UNKNOWN)
    content = message.get("content") or message.get("text")
    if not is_plain(message, role, _CLAUDE_KEYS):
        role = UNKNOWN
    return make_turns(content, role, said_at=parse_moment(message.get("created_at")))


def _of_messages(value: Any, name: str) -> list[FileConversation | ReceivedDocument | SkippedPart] | None:
    """Return the conversation in a list of messages of an API.

    Raises:
        UnknownShapeError: A message states its role at a place that no reader knows.
    """
    if isinstance(value, dict):
        value = value.get("messages")
    messages = [message for message in to_list(value) if isinstance(message, dict)]
    if not messages:
        return None
    form, keyed = read_log(messages)
    spoken = [turn for _, turn in keyed if turn.role != "system"]
    is_chat = any(turn.role != UNKNOWN or turn.speaker for turn in spoken)
    return [FileConversation(name, f"{name}:messages", spoken, spoken[0].said_at, form)] if is_chat else None


def _title(value: Any) -> str:
    return repair_text(value) if isinstance(value, str) else ""


def parse_file(path: Path) -> Iterator[ReceivedDocument | FileConversation | SkippedPart]:
    """Yield the parts of a file in order.

    Raises:
        ValidationError: `unknown_form`: of no form that is known here; `not_text`: not in UTF-8 or UTF-16; `too_long`.
        StorageError: It cannot be read.
    """
    for part in _parse_parts(path):
        changed_at = from_seconds(path.stat().st_mtime)
        yield fill_times(part, changed_at) if isinstance(part, FileConversation) else part


def fill_times(part: FileConversation, changed_at: datetime | None) -> FileConversation:
    """Return a conversation with a time for each turn.

    Args:
        part: Conversation; its own time, or that of its first dated turn, is that of turns without one.
        changed_at: Time of the last change of its file, or None.
    """
    stated = part.said_at
    if stated is None and not isinstance(part.turns, StreamedTurns):
        stated = next((turn.said_at for turn in part.turns if turn.said_at), None)
    said_at = stated or changed_at
    more = {} if stated else {FILE_TIME: True}

    def fill(turn: ReceivedTurn) -> ReceivedTurn:
        return turn if turn.said_at else replace(turn, said_at=said_at, metadata={**turn.metadata, **more})

    turns = part.turns
    filled = StreamedTurns(lambda: map(fill, turns)) if isinstance(turns, StreamedTurns) else [*map(fill, turns)]
    return replace(part, turns=filled, said_at=said_at)


def _parse_parts(path: Path) -> Iterator[ReceivedDocument | FileConversation | SkippedPart]:
    suffix = path.suffix.lower()
    if suffix not in _TEXTS | _CONFIGS | _LINES | {".json"}:
        raise _make_form_error(path.name, f"files that end with {suffix} are not known here")
    text = _read_text(path)
    if suffix in _LINES:
        yield from read_chat_lines(text, path.name)
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
        return path is None or read_front_matter(_read_text(path)).document_id == resource.metadata.get(DOCUMENT_ID)
    except AgentMemoryError:
        return True


def find_moved(same_id: Sequence[Resource]) -> Resource | None:
    """Return the only document whose file is missing or changed its id."""
    moved = [
        document for document in same_id if get_path(document) and not (is_placed(document) and has_its_id(document))
    ]
    return moved[0] if len(moved) == 1 else None


def read_chat_lines(text: str, name: str) -> Iterator[FileConversation | SkippedPart]:
    """Yield the conversations of JSON lines in order of their start.

    Other lines, such as the last line of a truncated file, are yielded as skipped parts.

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
        raise _make_form_error(name, _inner_role(f"line {[*lines][error.number]}")) from None
    talks: dict[str, list[ReceivedTurn]] = {}
    for key, turn in turns:
        talks.setdefault(key, []).append(turn)
    if not talks:
        raise _make_damage_error(f"{name} has no line that is a JSON object with `content` or `text`")
    first = next(iter(talks.values()))[0].text
    for key, own_turns in talks.items():
        chat_id = key or hashlib.sha256(first.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        yield FileConversation(key or name, f"{name}:{chat_id}", own_turns, own_turns[0].said_at, form)


def _read_line(line: str) -> Any:
    """Return the value of a line of JSON, or None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _parts_of_json(text: str, path: Path) -> Iterable[ReceivedDocument | FileConversation | SkippedPart]:
    try:
        parts = read_export(_json(text, path.name), path.name)
    except UnknownShapeError as error:
        raise _make_form_error(path.name, _inner_role(f"message {error.number + 1}")) from None
    if parts is None:
        raise _make_form_error(path.name, "this JSON is no chat and no export that is known")
    return parts


def _of_text(text: str, path: Path, *, is_config: bool) -> ReceivedDocument | FileConversation:
    talk = None if is_config else read_talk(text, path.name)
    if talk is not None:
        return talk
    front_matter = FrontMatter() if is_config else read_front_matter(text)
    changed_at = from_seconds(path.stat().st_mtime)
    written_at = front_matter.written_at or find_past_day(path.name, changed_at)
    more = {} if written_at else {FILE_TIME: True}
    metadata = {**describe_path(str(path.resolve())), **front_matter.metadata, **more}
    kind = "config" if is_config else "document"
    return ReceivedDocument(text, path.name, kind, written_at or changed_at, front_matter.tags, metadata)


def _read_text(path: Path) -> str:
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
        raise _make_damage_error(f"{what} is no JSON ({reason})") from None


def _make_damage_error(what: str) -> ValidationError:
    return ValidationError(
        f"Nothing was taken in: {what}.",
        code="damaged_file",
        recovery="Mend or remove that part, or write the file anew, and take it in again.",
    )


def _inner_role(where: str) -> str:
    return f"{where} says who speaks in an inner object, at a place that is not known here, so its speakers are unclear"


_OTHERS: Final = "For an archive or memories of another program, run agent-memory import FILE."


def _make_form_error(name: str, why: str) -> ValidationError:
    return ValidationError(
        f"{name} was not taken in: {why}.", code="unknown_form", recovery=f"Known are {FORMS}. {_OTHERS}"
    )


def list_files(folder: Path, storage_root: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """List files to ingest, and links and memories left out.

    A link is left out if it leads out of the folder or to a hidden file. Hidden files and folders count for nothing,
    and linked folders are not entered. The folder of an agent and the storage root are left out: what was forgotten
    is still in a journal.

    Args:
        folder: Folder that a person named.
        storage_root: Resolved folder of all agents in use.
    """
    files, links, memories, root = list[Path](), list[Path](), list[Path](), folder.resolve()
    for place, folders, names in os.walk(folder):
        real = Path(place).resolve()
        if real == storage_root or find_memory(real):
            memories.append(Path(place))
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        links += [path for name in folders if _leads_out(path := Path(place, name), root)]
        paths = [Path(place, name) for name in sorted(names) if not name.startswith(".")]
        readable = [path for path in paths if is_known_file(path) and path.is_file()]
        links += [path for path in readable if _leads_out(path, root)]
        files += [path for path in readable if not _leads_out(path, root)]
    return files, links, memories


def _leads_out(path: Path, root: Path) -> bool:
    """Return True for a link to an outside or hidden file."""
    if not path.is_symlink():
        return False
    target = path.resolve()
    return not target.is_relative_to(root) or any(name.startswith(".") for name in target.relative_to(root).parts)
