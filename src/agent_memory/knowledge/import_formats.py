"""Formats that an import reads, and their detection."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import AgentMemoryError, ValidationError
from agent_memory.knowledge.intake.file_formats import fill_times
from agent_memory.knowledge.intake.session_logs import find_log_format
from agent_memory.knowledge.intake.turns import FileConversation
from agent_memory.knowledge.sources import chat_exports, documents, fact_lists, messengers, note_files, session_files
from agent_memory.knowledge.sources.json_records import JsonRecord, iter_elements, peek_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent_memory.knowledge.sources.source_files import ImportPart, SourceFile, SourceTree

_PEEKED_ELEMENTS: Final = 5
_PEEKED_BYTES: Final = 1 << 16
_PEEKED_HEAD: Final = 1 << 12
_LINES: Final = frozenset({".jsonl", ".ndjson"})
_OBJECTS: Final = re.compile(r"\s*\[\s*\{")
_OWN_ID: Final = re.compile(r"[a-z]{3}-[0-9a-f]{12}")
_RULE_FOLDER: Final = re.compile(r"(?:^|[/\\])(?:\.clinerules|\.(?:claude|cursor|roo|windsurf)[/\\]rules)[/\\]")
_NOTES: Final = frozenset({".md", ".markdown", ".txt", ".text", ".rst", ".org", ".adoc"})


@dataclass(frozen=True, slots=True)
class FileSample:
    """Beginning of a file, by which its format is detected.

    Attributes:
        file: File of the sample.
        tree: All files of the import.
        text: Text of the first 64 KB.
        records: First JSON records, if it is JSON.
    """

    file: SourceFile
    tree: SourceTree
    text: str
    records: tuple[Any, ...] = ()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Records that are objects."""
        return [record for record in self.records if isinstance(record, dict)]

    def has_record(self, keys: frozenset[str]) -> bool:
        """Return True if a record has one of these keys."""
        return any(not keys.isdisjoint(record) for record in self.objects)

    def find_damage(self) -> str:
        """Return the reason code of an unreadable JSON file, or ""."""
        is_read = not self.records or any(record is not None for record in self.records)
        if is_read or self.file.suffix not in _LINES | {".json"}:
            return ""
        return "not_text" if "\ufffd" in self.text else "damaged_file"

    def is_own_export(self) -> bool:
        """Return True if the records have IDs of this program."""
        ids = [record.get("id") for record in self.objects]
        return any(isinstance(record_id, str) and _OWN_ID.fullmatch(record_id) for record_id in ids)


@dataclass(frozen=True, slots=True)
class ImportFormat:
    """A format of other programs.

    Attributes:
        name: Name for `--format`, and detail of the origin.
        matches: Returns True if a file has this format.
        read: Yields the parts of a file.
    """

    name: str
    matches: Callable[[FileSample], bool]
    read: Callable[[SourceFile, SourceTree], Iterator[ImportPart]]


_ODD_VALUES: Final = (AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What readers raise at a value of another type: one file costs only itself."""


def take_sample(file: SourceFile, tree: SourceTree) -> FileSample:
    """Return the beginning of a file."""
    text = file.read_start(_PEEKED_BYTES)
    records: Iterator[JsonRecord] = iter(())
    if _is_jsonl(file, text):
        records = peek_lines(file)
    elif _is_json(file, text):
        records = islice(iter_elements(file), _PEEKED_ELEMENTS)
    return FileSample(file, tree, text, tuple(record.value for record in records))


def _is_jsonl(file: SourceFile, text: str) -> bool:
    return file.suffix in _LINES or (file.name == "-" and text.lstrip().startswith("{"))


def _is_json(file: SourceFile, text: str) -> bool:
    return file.suffix in {".json", ".af"} or (file.name == "-" and _OBJECTS.match(text) is not None)


def find_format(sample: FileSample, name: str | None = None) -> ImportFormat | None:
    """Return the first format that a file has, or None.

    Args:
        sample: Beginning of the file.
        name: Name of the only formats to try, or None for all.
    """
    forms = (form for form in FORMATS if name is None or form.name == name)
    return next((form for form in forms if _is_match(form, sample)), None)


def _is_match(form: ImportFormat, sample: FileSample) -> bool:
    try:
        return form.matches(sample)
    except _ODD_VALUES:
        return False


def read_parts(form: ImportFormat, file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the parts of a file; turns without a time get one.

    Raises:
        ValidationError: The file is damaged, or has values of another type (`damaged_file`).
    """
    try:
        for part in form.read(file, tree):
            yield fill_times(part, file.changed_at) if isinstance(part, FileConversation) else part
    except AgentMemoryError:
        raise
    except _ODD_VALUES as error:
        raise ValidationError(f"{file.name} has a value of another type.", code="damaged_file") from error


def _match_log(name: str) -> Callable[[FileSample], bool]:
    return lambda sample: find_log_format(sample.objects).name == name


def _is_transcript(sample: FileSample) -> bool:
    return sample.file.base_name == "transcript.jsonl" and _is_chat(sample)


def _read_whatsapp(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    yield messengers.read_whatsapp(file.read_text(), file.base_name, me=tree.me, order=tree.date_order)


def _is_whatsapp(sample: FileSample) -> bool:
    return (sample.file.suffix == ".txt" or sample.file.name == "-") and messengers.is_whatsapp(sample.text)


def _is_chat(sample: FileSample) -> bool:
    has_roles = any(isinstance(record.get("role"), str) for record in sample.objects)
    return has_roles and _is_jsonl(sample.file, sample.text)


def _is_rules(sample: FileSample) -> bool:
    name = sample.file.base_name.lower()
    is_named = name in note_files.RULE_NAMES or name.endswith((".mdc", ".instructions.md"))
    return is_named or (
        sample.file.suffix in _NOTES and _RULE_FOLDER.search(str(sample.file.path or sample.file.name)) is not None
    )


def _is_agent_memory(sample: FileSample) -> bool:
    if sample.file.base_name == note_files.INDEX_NAME:
        return True
    has_index = sample.file.suffix == ".md" and sample.tree.find_linked(sample.file, note_files.INDEX_NAME) is not None
    return has_index and sample.text.startswith("---\n") and "\nname:" in sample.text


def _is_graph_note(sample: FileSample) -> bool:
    """Return True for a note of basic-memory, which gives each a permalink."""
    head, _, _ = sample.text.removeprefix("---\n").partition("\n---")
    return sample.file.suffix == ".md" and sample.text.startswith("---\n") and "\npermalink:" in f"\n{head}"


def _is_okf(sample: FileSample) -> bool:
    index = sample.tree.files.get("index.md") if sample.file.suffix == ".md" else None
    return index is not None and "\nokf_version:" in index.read_start(_PEEKED_HEAD)


def _is_list(sample: FileSample) -> bool:
    is_text = sample.file.name == "-" and not sample.records and bool(sample.text.strip())
    is_named = sample.file.suffix == ".txt" and "memor" in sample.file.base_name.lower()
    return is_text or is_named or (sample.file.suffix in _NOTES and fact_lists.has_dated_lines(sample.text))


def _is_graph(sample: FileSample) -> bool:
    keys = ({"entities", "relations"}, {"name", "entityType"}, {"from", "to", "relationType"})
    return any(names <= record.keys() for record in sample.objects for names in keys)


def _has_memories(key: str, value: object = None) -> Callable[[FileSample], bool]:
    """Return a test for `memories` and a key with a value."""
    return lambda sample: any(
        "memories" in record and key in record and value in (None, record[key]) for record in sample.objects
    )


def _has_table(table: str, columns: frozenset[str]) -> Callable[[FileSample], bool]:
    """Return a test for an SQLite file with a table."""
    return lambda sample: (
        sample.text.startswith(fact_lists.SQLITE_START) and fact_lists.has_table(sample.file, table, columns)
    )


def _has_conversations(key: str) -> Callable[[FileSample], bool]:
    """Return a test for conversations with a key, also inside an object."""
    is_packed = _has_keys("conversations", key)
    return lambda sample: sample.has_record(frozenset({key})) or is_packed(sample)


def _is_slack(sample: FileSample) -> bool:
    """Return True for messages of a channel of Slack."""
    return any(
        record.get("type") == "message" and isinstance(record.get("ts"), str) and "text" in record
        for record in sample.objects
    )


def _is_page(sample: FileSample) -> bool:
    """Return True for a web page except ChatGPT's `chat.html`."""
    is_view = sample.file.base_name == "chat.html" and any("conversations" in name for name in sample.tree.files)
    return sample.file.suffix in documents.PAGES and not is_view


def _is_letta(sample: FileSample) -> bool:
    return any({"agents", "blocks"} <= record.keys() for record in sample.objects)


def _is_telegram(sample: FileSample) -> bool:
    is_full = any(isinstance(chats := record.get("chats"), dict) and "list" in chats for record in sample.objects)
    return is_full or any(
        _has_keys("messages", key)(sample) for key in ("from_id", "text_entities", "actor_id", "date_unixtime")
    )


def _has_keys(*keys: str) -> Callable[[FileSample], bool]:
    """Return a test for a JSON file whose beginning has these keys."""
    return lambda sample: _is_json(sample.file, sample.text) and all(f'"{key}"' in sample.text for key in keys)


def _is_mem0(sample: FileSample) -> bool:
    return any(
        isinstance(memory, dict) and isinstance(memory.get("memory"), str) and "id" in memory
        for record in sample.records
        for memory in fact_lists.list_mem0(record)[:1]
    )


FORMATS: Final = (
    ImportFormat("chatgpt", _has_conversations("mapping"), chat_exports.read_conversations),
    ImportFormat("claude", _has_conversations("chat_messages"), chat_exports.read_conversations),
    ImportFormat(
        "claude", lambda sample: sample.has_record(chat_exports.MEMORY_KEYS), chat_exports.read_claude_memories
    ),
    ImportFormat(
        "claude", lambda sample: sample.has_record(chat_exports.PROJECT_KEYS), chat_exports.read_claude_projects
    ),
    ImportFormat(
        "gemini", lambda sample: any(map(chat_exports.is_gemini_activity, sample.records)), chat_exports.read_gemini
    ),
    ImportFormat("letta", _is_letta, chat_exports.read_letta),
    ImportFormat("claude-code", _match_log("claude_code"), session_files.read_session_log),
    ImportFormat("codex", _match_log("codex"), session_files.read_session_log),
    ImportFormat("amplifier", _match_log("amplifier_events"), session_files.read_session_log),
    ImportFormat("amplifier", _is_transcript, session_files.read_transcript_log),
    ImportFormat("gemini-cli", _match_log("gemini"), session_files.read_session_log),
    ImportFormat("mcp-memory", _is_graph, fact_lists.read_graph),
    ImportFormat("mem0", _is_mem0, fact_lists.read_mem0),
    ImportFormat("mcp-memory-service", _has_memories("export_metadata"), fact_lists.read_memories),
    ImportFormat("mcp-memory-service", _has_table("memories", fact_lists.MEMORY_COLUMNS), fact_lists.read_memory_table),
    ImportFormat("langgraph", _has_table("store", fact_lists.STORE_COLUMNS), fact_lists.read_langgraph_store),
    ImportFormat("csv", lambda sample: sample.file.suffix in {".csv", ".tsv"}, fact_lists.read_csv),
    ImportFormat("slack", _is_slack, messengers.read_slack),
    ImportFormat("telegram", _is_telegram, messengers.read_telegram),
    ImportFormat("discord", _has_keys("channel", "messages", "guild"), messengers.read_discord),
    ImportFormat("pam", _has_memories("schema", "portable-ai-memory"), fact_lists.read_memories),
    ImportFormat("messages", _is_chat, session_files.read_session_log),
    ImportFormat("messages", lambda sample: sample.has_record(frozenset({"messages"})), chat_exports.read_api_messages),
    ImportFormat("rules", _is_rules, note_files.read_rules),
    ImportFormat("claude-code-memory", _is_agent_memory, note_files.read_agent_memory),
    ImportFormat("whatsapp", _is_whatsapp, _read_whatsapp),
    ImportFormat("paste", _is_list, fact_lists.read_list),
    ImportFormat("basic-memory", _is_graph_note, note_files.read_graph_note),
    ImportFormat("okf", _is_okf, note_files.read_okf),
    ImportFormat("html", _is_page, documents.read_page),
    ImportFormat("mail", lambda sample: sample.file.suffix in documents.MAILS, documents.read_mails),
    ImportFormat("word", lambda sample: sample.file.suffix == documents.WORD, documents.read_word),
    ImportFormat(
        "other",
        lambda sample: sample.file.suffix in documents.UNREAD and len(sample.tree.files) == 1,
        documents.refuse_document,
    ),
    ImportFormat(
        "markdown", lambda sample: sample.file.suffix in _NOTES and not sample.tree.is_vault, note_files.read_note
    ),
    ImportFormat("obsidian", lambda sample: sample.file.suffix in _NOTES, note_files.read_note),
)
"""Formats in the order of detection."""
FORMAT_NAMES: Final = tuple(dict.fromkeys(form.name for form in FORMATS))
