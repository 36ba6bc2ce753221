"""Session logs, read line by line, since they may be large."""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import SkippedPart
from agent_memory.knowledge.intake.session_logs import UnknownShapeError, find_log_format
from agent_memory.knowledge.intake.turns import FileConversation, StreamedTurns
from agent_memory.knowledge.sources.json_records import iter_lines, peek_lines
from agent_memory.knowledge.sources.source_files import LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_memory.knowledge.intake.drafts import ReceivedTurn
    from agent_memory.knowledge.intake.session_logs import LogFormat, ReadTurns
    from agent_memory.knowledge.sources.json_records import JsonRecord
    from agent_memory.knowledge.sources.source_files import ImportPart, SourceFile, SourceTree

EVENTS_NAME: Final = "events.jsonl"
_DETAILS: Final = {"sessionId": "session", "cwd": "folder", "gitBranch": "branch"}
"""Fields of a log's first lines by the names under which they are stored."""


@dataclass(slots=True)
class _LogLines:
    """Objects of a log's lines, read from the file each time.

    Attributes:
        is_live: True to leave out an unfinished last line without a problem.
        broken: Numbers of lines that are no objects, as far as they were read.
    """

    file: SourceFile
    is_live: bool = False
    broken: dict[int, None] = field(default_factory=dict)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for record in iter_lines(self.file):
            self.note(record)
            if isinstance(record.value, dict):
                yield record.value

    def note(self, record: JsonRecord) -> None:
        """Note the number of a line that is not an object."""
        if not isinstance(record.value, dict) and not (self.is_live and record.is_unfinished):
            self.broken[record.number] = None


def read_session_log(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the conversations of a log, then its broken lines.

    Raises:
        ValidationError: A line has its role at an unknown place (`unknown_form`).
    """
    first_lines: list[dict[str, Any]] = []
    lines = _LogLines(file, tree.is_live)
    for record in peek_lines(file):
        lines.note(record)
        first_lines += [record.value] if isinstance(record.value, dict) else []
    form = find_log_format(first_lines)
    try:
        yield from _read_talks(form, lines, file.base_name, _read_details(first_lines))
    except UnknownShapeError:
        raise ValidationError(f"{file.name} has roles at an unknown place.", code="unknown_form") from None
    yield from (SkippedPart(f"line {number}") for number in sorted(lines.broken))


def _read_talks(form: LogFormat, lines: _LogLines, name: str, details: dict[str, str]) -> Iterator[FileConversation]:
    read = form.prepare(lines)
    starts: dict[str, ReceivedTurn] = {}
    for key, turn in read(lines):
        starts.setdefault(key, turn)
        if not form.has_keys:
            break
    for key, first in starts.items():
        chat_id = key or hashlib.sha256(first.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        turns = StreamedTurns(partial(_read_talk, read, lines, key))
        metadata = details | ({"session": key} if key else {})
        yield FileConversation(key or name, f"{name}:{chat_id}", turns, first.said_at, form.name, metadata)


def _read_talk(read: ReadTurns, lines: _LogLines, key: str) -> Iterator[ReceivedTurn]:
    return (turn for turn_key, turn in read(lines) if turn_key == key)


def _read_details(lines: list[dict[str, Any]]) -> dict[str, str]:
    """Return session, folder, project and branch that a log names."""
    details: dict[str, str] = {}
    for line in lines:
        payload = line.get("payload") if line.get("type") == "session_meta" else None
        values = {**payload, "sessionId": payload.get("id")} if isinstance(payload, dict) else line
        for key, name in _DETAILS.items():
            if isinstance(value := values.get(key), str) and value:
                details.setdefault(name, value)
    project = PurePath(details.get("folder", "")).name
    return details | ({"project": project} if project else {})


def read_transcript_log(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:
    """Yield the turns of an Amplifier session without events."""
    if posixpath.join(file.folder, EVENTS_NAME) in tree.files:
        yield SkippedPart(f"the session of {EVENTS_NAME}", LEFT_OUT)
        return
    session = file.path.parent.name if file.path is not None else posixpath.basename(file.folder)
    for part in read_session_log(file, tree):
        if isinstance(part, FileConversation) and session:
            yield replace(part, title=session, key=f"{session}/{part.key}", metadata={"session": session})
        else:
            yield part
