"""Files of an import, and the parts that are cut from them.

Files are on disk, in a zip archive or pasted. A member of an archive is read by its name and never written. Hidden
files count only where programs keep rules.
"""

from __future__ import annotations

import codecs
import io
import os
import posixpath
import re
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, Self, cast

from agent_memory.errors import ValidationError
from agent_memory.files.atomic import open_to_read, translated
from agent_memory.files.layout import find_memory
from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.turns import FileConversation
from agent_memory.knowledge.passages.sections import find_body, is_item_start, parse_blocks, without_comments
from agent_memory.language.sentences import find_sentences
from agent_memory.models import from_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agent_memory.knowledge.passages.sections import TextBlock

MAX_FILES: Final = 100_000
MAX_TEXT_BYTES: Final = 64 << 20
"""Bytes of a file that is read as a whole."""
MAX_MEMBER_BYTES: Final = 8 << 30
MAX_RATIO: Final = 300
"""Times that an archive's member may be larger than its compressed form; a JSON export is 5 to 20 times larger."""
_LEAST_CHECKED: Final = 32 << 20
"""Bytes from which the ratio of a member counts."""
_LEFT_OUT_FOLDERS: Final = frozenset({"__MACOSX", "__pycache__", "node_modules"})
UNREADABLE: Final = (OSError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error)
"""Errors of a file that cannot be read, such as a damaged member of an archive."""
_RULE_FOLDERS: Final = frozenset({
    ".claude", ".clinerules", ".codex", ".cursor", ".gemini", ".github", ".roo", ".windsurf",
})  # fmt: skip
_RULE_FILES: Final = frozenset({".clinerules", ".cursorrules", ".windsurfrules"})
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_VAULT: Final = ".obsidian"
_ZIPPED: Final = frozenset({".docx", ".epub", ".odt", ".pages", ".pptx", ".xlsx"})
"""Suffixes of documents that are archives."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of an import.

    Attributes:
        name: Path inside the import, with `/`.
        size: Number of bytes.
        open_stream: Opens the content.
        changed_at: Time of the last change, or None if pasted.
        path: Path on disk, or None.
    """

    name: str
    size: int
    open_stream: Callable[[], IO[bytes]]
    changed_at: datetime | None = None
    path: Path | None = None

    @property
    def base_name(self) -> str:
        """Last part of the name."""
        return posixpath.basename(self.name)

    @property
    def suffix(self) -> str:
        """Suffix in lower case, with its dot."""
        return posixpath.splitext(self.name)[1].lower()

    @property
    def folder(self) -> str:
        """Name of the folder inside the import, or empty."""
        return posixpath.dirname(self.name)

    def read_start(self, size: int) -> str:
        """Return the text of the first bytes; undecodable ones are replaced."""
        with self.open_stream() as stream:
            return _decode(stream.read(size), "replace")

    def read_text(self) -> str:
        """Return the whole text.

        Raises:
            ValidationError: It is larger than 64 MB (`too_long`), or not UTF-8 or UTF-16 (`not_text`).
        """
        with self.open_stream() as stream:
            content = stream.read(MAX_TEXT_BYTES + 1)
        if len(content) > MAX_TEXT_BYTES:
            raise ValidationError(
                f"{self.name} has more than {MAX_TEXT_BYTES >> 20} MB.", code="too_long", recovery="Split the file."
            )
        try:
            return _decode(content, "strict")
        except UnicodeDecodeError:
            raise ValidationError(
                f"{self.name} is not a text in UTF-8.", code="not_text", recovery="Save the file as UTF-8."
            ) from None

    def open_utf8(self) -> IO[bytes]:
        """Open the content; UTF-16 is recoded."""
        with self.open_stream() as stream:
            is_utf16 = stream.read(len(_UTF16[0])).startswith(_UTF16)
        stream = self.open_stream()
        return cast("IO[bytes]", codecs.EncodedFile(stream, "utf-8", "utf-16", "replace")) if is_utf16 else stream


def _decode(content: bytes, errors: str) -> str:
    """Return a text with the line breaks of Unix."""
    text = content.decode("utf-16" if content.startswith(_UTF16) else "utf-8-sig", errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


@dataclass(slots=True)
class StreamPosition:
    """Position in the stream that was opened last."""

    _stream: IO[bytes] | None = None

    def watch(self, file: SourceFile) -> SourceFile:
        """Return a file whose position this object knows."""

        def open_stream() -> IO[bytes]:
            self._stream = file.open_stream()
            return self._stream

        return replace(file, open_stream=open_stream)

    def get(self) -> int:
        """Return the number of bytes before the position."""
        return 0 if self._stream is None or self._stream.closed else self._stream.tell()


@dataclass(slots=True)
class SourceTree:
    """All files of an import.

    Attributes:
        name: Name of the file, folder or archive.
        files: Files by their names.
        folder: Resolved folder on disk, or None.
        is_vault: True for an Obsidian vault.
        refused: Files that cannot be read, and why.
        me: Name of the user in chats between people, or empty.
        date_order: Order of day and month in chats, or None to detect it.
        columns: Names of columns by what they hold.
        is_live: True for logs of sessions that may run: an unfinished last line is left for later.
        archive: Archive of the files, open until `close`; or None.
    """

    name: str
    files: dict[str, SourceFile] = field(default_factory=dict)
    folder: Path | None = None
    is_vault: bool = False
    refused: list[SkippedPart] = field(default_factory=list)
    me: str = ""
    date_order: Literal["dmy", "mdy"] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    is_live: bool = False
    archive: zipfile.ZipFile | None = None

    def __enter__(self) -> Self:
        """Return the tree, which closes at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the archive; its files cannot be read any more."""
        if self.archive is not None:
            self.archive.close()

    def find_linked(self, file: SourceFile, target: str) -> SourceFile | None:
        """Return the file that another one names, inside this import only."""
        name = posixpath.normpath(posixpath.join(file.folder, target))
        if name.startswith(("..", "/")):
            return None
        if name in self.files or self.folder is None:
            return self.files.get(name)
        path = (self.folder / name).resolve()
        is_inside = path.is_relative_to(self.folder) and not find_memory(path)
        return open_path(path, name) if is_inside and path.is_file() else None


def open_source(word: str, pasted: bytes | None = None) -> SourceTree:
    """Return the files of an import.

    Args:
        word: Path of a file, folder or zip archive, or `-`.
        pasted: Content of `-`.

    Raises:
        ValidationError: It does not exist, is a file of an agent's memory, or is a broken archive.
    """
    if pasted is not None:
        return SourceTree("-", {"-": SourceFile("-", len(pasted), lambda: io.BytesIO(pasted))})
    path = Path(word).resolve()
    if memory := find_memory(path):
        raise ValidationError(
            f"{word} is in the memory in {memory}; nothing was imported.",
            code="own_file",
            recovery="To copy memories to another agent, run agent-memory export, then agent-memory import.",
        )
    if path.is_dir():
        return _open_folder(path)
    if not path.is_file():
        raise ValidationError(f"No file {word}.", code="no_file", recovery="Check the name.")
    with translated(path, "read"):
        if path.suffix.lower() == ".zip" or (path.suffix.lower() not in _ZIPPED and zipfile.is_zipfile(path)):
            return _open_archive(path)
        return SourceTree(path.name, {path.name: open_path(path, path.name)}, path.parent, _is_in_vault(path))


def open_path(path: Path, name: str) -> SourceFile:
    """Return a file on disk under a name inside the import."""
    status = path.stat()
    return SourceFile(
        name, status.st_size, lambda: os.fdopen(open_to_read(path), "rb"), from_seconds(status.st_mtime), path
    )


def _is_in_vault(path: Path) -> bool:
    return any((folder / _VAULT).is_dir() for folder in path.parents)


def _open_folder(folder: Path) -> SourceTree:
    tree = SourceTree(folder.name, folder=folder, is_vault=(folder / _VAULT).is_dir() or _is_in_vault(folder))
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if len(tree.files) == MAX_FILES:
            tree.refused.append(SkippedPart(name, "too_many"))
            break
        tree.files[name] = open_path(path, name)
    return tree


def _walk(folder: Path) -> Iterator[Path]:
    """Yield files of a folder, except memories and links out."""
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if find_memory(here.resolve()):
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if is_shown(name, _RULE_FOLDERS))
        for name in sorted(names):
            path = here / name
            if is_shown(name, _RULE_FILES) and path.is_file() and path.resolve().is_relative_to(folder):
                yield path


def is_shown(name: str, hidden: frozenset[str]) -> bool:
    """Return True if a name is visible or among `hidden`."""
    return name in hidden or not (name.startswith(".") or name in _LEFT_OUT_FOLDERS)


def _open_archive(path: Path) -> SourceTree:
    try:
        archive = zipfile.ZipFile(path)  # open as long as its tree: each opening reads the whole directory again
    except (*UNREADABLE, ValueError) as error:
        raise ValidationError(
            f"{path.name} is a broken archive: {error}; nothing was imported.",
            code="damaged_file",
            recovery="Download it again.",
        ) from None
    members = [member for member in archive.infolist() if not member.is_dir()]
    tree = SourceTree(path.name, is_vault=any(_VAULT in member.filename.split("/") for member in members))
    tree.archive = archive
    for member in members:
        name = _name_member(member)
        *folders, base = name.split("/")
        if (
            not base
            or not is_shown(base, _RULE_FILES)
            or not all(is_shown(folder, _RULE_FOLDERS) for folder in folders)
        ):
            continue
        if name in tree.files:
            name = posixpath.join(*folders, f"{len(tree.files)}-{base}")
        if len(tree.files) == MAX_FILES:
            tree.refused.append(SkippedPart(name, "too_many"))
            break
        if code := _check_member(member):
            tree.refused.append(SkippedPart(name, code))
        else:
            tree.files[name] = _open_member(archive, member, name)
    return tree


def _name_member(member: zipfile.ZipInfo) -> str:
    """Return the path of a member below the archive, with `/`."""
    return posixpath.normpath("/" + member.filename.replace("\\", "/").lstrip("/"))[1:]


def _check_member(member: zipfile.ZipInfo) -> str:
    """Return the reason code of an unreadable member, or ""."""
    if member.flag_bits & 1:
        return "encrypted"
    is_bomb = member.file_size > _LEAST_CHECKED and member.file_size > MAX_RATIO * max(1, member.compress_size)
    return "too_long" if is_bomb or member.file_size > MAX_MEMBER_BYTES else ""


def _open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> SourceFile:
    return SourceFile(name, member.file_size, lambda: archive.open(member), _read_time(member))


def _read_time(member: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*member.date_time).astimezone()
    except ValueError:
        return None


LEFT_OUT: Final = "left_out"
"""Code of a part that is not content, such as a file of settings."""
_BOLD_LINE: Final = re.compile(r"\s*\*\*([^*\n]+)\*\*:?\s*")
_BULLET: Final = re.compile(r"\s{0,40}(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX-]\]\s+)?")


@dataclass(frozen=True, slots=True)
class ImportedFact:
    """A fact that becomes a memory.

    Attributes:
        text: Words of the fact.
        place: Where it is in its file, such as `line 3`.
        said_at: Time that the file states, or None.
        category: Category of the memory.
        tags: Tags of the memory.
        project: Name of the project, or empty.
        metadata: What else the file says, as plain JSON.
        note: What the reader could not use, such as `has no readable date`; empty for nothing.
    """

    text: str
    place: str = ""
    said_at: datetime | None = None
    category: str = "note"
    tags: tuple[str, ...] = ()
    project: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


ImportPart = ImportedFact | FileConversation | ReceivedDocument | SkippedPart


@dataclass(frozen=True, slots=True)
class CutStatement:
    """Statement of a text, with its line and heading."""

    text: str
    line: int
    section: str = ""

    @property
    def metadata(self) -> dict[str, str]:
        """The heading as metadata of a memory."""
        return {"section": self.section} if self.section else {}


def cut_statements(text: str, paragraphs: Literal["whole", "lines", "sentences"] = "whole") -> Iterator[CutStatement]:
    """Yield items of lists and paragraphs of a Markdown text.

    A nested item and a block of code belong to the statement before them.

    Args:
        text: Text with or without front matter; comments are left out.
        paragraphs: Way to cut a paragraph.
    """
    body = find_body(text)
    first_line = text.count("\n", 0, body)
    words = without_comments(text[body:])
    waiting: CutStatement | None = None
    for block, section in _list_sections(words):
        line = first_line + words.count("\n", 0, block.start) + 1
        if block.kind == "code" and waiting is not None:
            code = words[block.start : block.end].rstrip()
            waiting = CutStatement(f"{waiting.text}\n{code}", waiting.line, waiting.section)
            continue
        for part, offset in _cut_block(words, block, paragraphs):
            if waiting is not None:
                yield waiting
            waiting = CutStatement(part, line + offset, section)
    if waiting is not None:
        yield waiting


def _list_sections(text: str) -> Iterator[tuple[TextBlock, str]]:
    """Yield blocks with content and the heading above each."""
    section = ""
    for block in parse_blocks(text):
        bold = _BOLD_LINE.fullmatch(text[block.start : block.end])
        if block.kind == "heading":
            section = block.title
        elif bold is not None:
            section = bold[1].strip().rstrip(":")
        else:
            yield block, section


def _cut_block(text: str, block: TextBlock, paragraphs: str) -> Iterator[tuple[str, int]]:
    """Yield the statements of a block, with lines from its start."""
    words = text[block.start : block.end]
    if block.kind == "list":
        yield from _cut_list(words)
    elif block.kind == "text" and paragraphs == "sentences":
        for start, end in find_sentences(words):
            yield " ".join(words[start:end].split()), words.count("\n", 0, start)
    elif block.kind == "text" and paragraphs == "lines":
        yield from ((line.strip(), number) for number, line in enumerate(words.split("\n")) if line.strip())
    elif words.strip():
        yield words.strip(), 0


def _cut_list(words: str) -> Iterator[tuple[str, int]]:
    """Yield the outer items of a list with their inner ones."""
    lines = words.rstrip().split("\n")
    depths = [len(line) - len(line.lstrip()) for line in lines]
    outer = min((depth for line, depth in zip(lines, depths, strict=True) if is_item_start(line)), default=0)
    starts = [number for number, line in enumerate(lines) if is_item_start(line) and depths[number] <= outer]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        item = "\n".join(lines[start:end]).rstrip()
        yield strip_bullet(item), start


def strip_bullet(line: str) -> str:
    """Return a line without its bullet or number."""
    return _BULLET.sub("", line, count=1).strip()
