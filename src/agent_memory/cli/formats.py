"""File formats of memories: YAML for people, JSON lines for programs.

Both keep every field; values equal to their default are omitted. A YAML file has one document per memory, so that a
broken document does not affect the others.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import pydantic
import typer
import yaml
from typing_extensions import override

from agent_memory.errors import ValidationError
from agent_memory.files.yaml_loader import BoundedComposer, load_yaml
from agent_memory.models import (
    ARCHIVED,
    CANDIDATE,
    ArchivedMemory,
    Candidate,
    Memory,
    Trace,
    describe,
    get_import_id,
    is_memory_id,
)
from agent_memory.models.text import escape_in_quotes, has_steering, to_json
from agent_memory.models.verbatim import VERBATIM, VerbatimRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

Format = Literal["yaml", "jsonl"]
FormatName = Annotated[
    Format | None,
    typer.Option("--format", help="Needed only if the file has another suffix; '-' is jsonl."),
]
_SUFFIXES: Final[dict[str, Format]] = {".yaml": "yaml", ".yml": "yaml", ".jsonl": "jsonl", ".ndjson": "jsonl"}

_RELEASED: Final = "released"
"""Key of a trace; a file has it in place of the memory."""
_GIVEN: Final = frozenset({
    "resource", "episode", "topic", "entity", "mentions", "relation", "summary", "stage_mark",
})  # fmt: skip
"""Names of other record kinds in a file. A memory has no field `kind`."""
_COMPUTED: Final = frozenset({"agent_id", "superseded_by"})
"""Fields that only `--json` prints. They are not imported."""
_BOUNDARY: Final = re.compile(rb"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING: Final = re.compile(rb"(?:[ \t\r]*(?:[#%][^\n]*)?(?:\n|\Z))*")
_STR: Final = "tag:yaml.org,2002:str"
_NULL: Final = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """One record of a file, or the error of its line.

    Attributes:
        line: Line number in the file, from 1.
        memory: Memory of the line, or None.
        problem: Reason for a refused line, or empty.
        unknown_fields: Fields of a later version, not imported.
        trace: Trace of a memory forgotten with a reason.
        given: Record of another kind, such as a document.
        archived: Memory in the archive, or None.
        candidate: Candidate in the inbox, or None.
        verbatim: Record of another framework, or None.
    """

    line: int
    memory: Memory | None = None
    problem: str = ""
    unknown_fields: tuple[str, ...] = ()
    trace: Trace | None = None
    given: dict[str, Any] | None = None
    archived: ArchivedMemory | None = None
    candidate: Candidate | None = None
    verbatim: VerbatimRecord | None = None


class BlockText(str):
    """Text that is always written as a block."""

    __slots__ = ()


class _BlockDumper(yaml.SafeDumper):
    """Writes text of several lines as a block."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        """Return True: repeated values are written without anchors."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Represent text as a block, plain, or quoted if it needs escapes."""
        block = "|" if "\n" in text or isinstance(text, BlockText) else None
        return self.represent_scalar(_STR, str(text), style='"' if has_steering(text) else block)


_BlockDumper.add_representer(str, _BlockDumper.represent_text)
_BlockDumper.add_representer(BlockText, _BlockDumper.represent_text)


def to_yaml(values: dict[str, Any]) -> str:
    """Return `values` as block YAML in their order, emoji and all."""
    text = str(yaml.dump(values, Dumper=_BlockDumper, allow_unicode=True, sort_keys=False, width=100))
    return escape_in_quotes(text)


def encode(memory: Memory, form: Format) -> str:
    """Return one memory as a line or document of a file."""
    return encode_entry({"id": memory.id, **memory.to_record()}, form)


def encode_trace(trace: Trace, form: Format) -> str:
    """Return a released memory's trace as a line of a file."""
    return encode_entry({"id": trace.id, _RELEASED: trace.to_json()}, form)


def encode_entry(entry: dict[str, Any], form: Format) -> str:
    """Return a record of another kind as a line of a file."""
    return to_json(entry) + "\n" if form == "jsonl" else f"---\n{to_yaml(entry)}"


_TURN_KEYS: Final = frozenset({"role", "speaker", "messages", "mapping"})
"""Keys of chats, which no export of memories has."""


def decode(content: bytes, form: Format, agent_id: str) -> Iterator[ImportedLine]:
    """Yield the memories of a file, in order, for `agent_id`.

    An entry without an id gets one made of its text, so that importing it twice keeps it once.

    Raises:
        ValidationError: The file is a journal, not an export.
    """
    items = _json_lines(content) if form == "jsonl" else _yaml_items(content)
    for item in items:
        yield item if isinstance(item, ImportedLine) else _parse_line(*item, agent_id)


def read_yaml(text: str) -> Any:
    """Return the one document in `text`.

    Raises:
        ValidationError: Not YAML, or there is more than one document.
    """
    try:
        return load_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" in line {mark.line + 1}" if mark else ""
        raise ValidationError(f"This is not YAML{line}: {_reason(error)}.") from None


def _parse_line(line: int, item: Any, agent_id: str) -> ImportedLine:
    if not isinstance(item, dict):
        return ImportedLine(line, problem="not a memory: a mapping of fields is expected")
    if "journal" in item and "generation" in item:
        message = "This is a journal, not an export; nothing was imported."
        recovery = "Make a file with `agent-memory export`, or copy the agent's whole folder."
        raise ValidationError(message, code="not_an_export", recovery=recovery)
    if "id" not in item and _TURN_KEYS.intersection(item):
        raise ValidationError(
            f"Line {line} is a turn of a conversation, not a memory; nothing was imported.",
            code="not_an_export",
            recovery="Run `agent-memory ingest FILE`: it keeps who said what.",
        )
    if item.get("kind") in _GIVEN:
        return ImportedLine(line, given={str(key): value for key, value in item.items()})
    if _RELEASED in item and "content" not in item:
        return _parse_trace(line, item)
    if model := _OTHER_MODELS.get(str(item.get("kind"))):
        return _parse_other(line, item, agent_id, model)
    fields = {str(key): value for key, value in item.items() if key not in _COMPUTED}
    unknown = tuple(key for key in fields if key not in Memory.model_fields)
    memory_fields = {key: value for key, value in fields.items() if key in Memory.model_fields}
    if "id" not in memory_fields and isinstance(memory_fields.get("content"), str):
        memory_fields = {"source": {"kind": "import"}, **memory_fields, "id": get_import_id(memory_fields["content"])}
    try:
        return ImportedLine(
            line, Memory.model_validate({**memory_fields, "agent_id": agent_id}), unknown_fields=unknown
        )
    except pydantic.ValidationError as error:
        return ImportedLine(line, problem=describe(error))


_OTHER_MODELS: Final[dict[str, type[ArchivedMemory | Candidate | VerbatimRecord]]] = {
    ARCHIVED.name: ArchivedMemory,
    CANDIDATE.name: Candidate,
    VERBATIM.name: VerbatimRecord,
}


def _parse_other(
    line: int, item: dict[str, Any], agent_id: str, model: type[ArchivedMemory | Candidate | VerbatimRecord]
) -> ImportedLine:
    fields = {str(key): value for key, value in item.items() if key in model.model_fields}
    try:
        record = model.model_validate({**fields, "agent_id": agent_id})
    except pydantic.ValidationError as error:
        return ImportedLine(line, problem=describe(error))
    if isinstance(record, VerbatimRecord):
        return ImportedLine(line, verbatim=record)
    if isinstance(record, Candidate):
        return ImportedLine(line, candidate=record)
    return ImportedLine(line, archived=record)


def _parse_trace(line: int, item: dict[str, Any]) -> ImportedLine:
    record_id, fields = item.get("id"), item[_RELEASED]
    is_trace = isinstance(record_id, str) and is_memory_id(record_id) and isinstance(fields, dict)
    trace = Trace.from_json(record_id, fields) if is_trace and isinstance(record_id, str) else None
    return ImportedLine(line, trace=trace, problem="" if trace else "not the trace of a memory that was released")


def _json_lines(content: bytes) -> Iterator[tuple[int, Any] | ImportedLine]:
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, json.loads(line)
        except UnicodeDecodeError:
            yield ImportedLine(number, problem="not UTF-8")
        except (ValueError, RecursionError) as error:
            yield ImportedLine(number, problem=f"not JSON: {error}")


def _yaml_items(content: bytes) -> Iterator[tuple[int, Any] | ImportedLine]:
    """Split a YAML stream at its document markers and yield the items."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    starts = [match.start() for match in _BOUNDARY.finditer(content)]
    line = 1
    for begin, end in zip([0, *starts], [*starts, len(content)], strict=True):
        chunk = content[begin:end]
        if not _NOTHING.fullmatch(chunk):
            yield from _yaml_document(chunk, line)
        line += chunk.count(b"\n")


def _yaml_document(chunk: bytes, first_line: int) -> Iterator[tuple[int, Any] | ImportedLine]:
    """Yield the memories of one document, which may be a list."""
    try:
        composer = BoundedComposer(chunk.decode())
        node = composer.get_single_node()
        if node is None or node.tag == _NULL:
            return
        nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
        for item in nodes:
            yield first_line + item.start_mark.line, composer.construct_document(item)
    except UnicodeDecodeError:
        yield ImportedLine(first_line, problem="not UTF-8")
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        yield ImportedLine(first_line + (mark.line if mark else 0), problem=f"not YAML: {_reason(error)}")


def _reason(error: Exception) -> str:
    """Return the reason of a YAML error without the parser's excerpt."""
    if isinstance(error, yaml.MarkedYAMLError):
        return str(error.problem or error.context)
    return " ".join(str(error).split())[:200]


def is_export_name(file: str) -> bool:
    """Return True if an export has this suffix."""
    return Path(file).suffix.lower() in _SUFFIXES


def choose_format(file: str, form: Format | None) -> Format:
    """Return the requested format, or that of the file suffix.

    Raises:
        typer.BadParameter: The suffix belongs to no format.
    """
    if form is not None:
        return form
    if file == "-":
        return "jsonl"
    suffix = _SUFFIXES.get(Path(file).suffix.lower())
    if suffix is None:
        raise typer.BadParameter(
            f"the suffix of {file!r} names no format of an export. For documents and chats run `agent-memory ingest "
            f"{file}`; for an export add --format yaml or --format jsonl",
            param_hint="FILE",
        )
    return suffix
