"""Files of pages in `topics/`: read, write, propose, and remove items.

A rendering swaps places with the file. What comes out is removed only if it is what was read before; else it is put
back, so a save is never overwritten. After a crash in between the next read puts it back. The checksum in the front
matter tells whether a person changed the file. Blocking: call it in a thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent_memory.encryption import is_encrypted
from agent_memory.files.atomic import make_private_folder, remove_leftovers, replace_file, translated
from agent_memory.files.exchange import move_if_free, put_file_in_place, read_settled, set_aside
from agent_memory.files.names import PAGE_INDEX
from agent_memory.knowledge.pages.page import (
    EDITED,
    Line,
    OwnText,
    Page,
    PageClaim,
    break_claims,
    escape,
    join_claims,
    join_parts,
    parse,
    render,
    split,
    with_lines,
)
from agent_memory.logs import get_logger
from agent_memory.models import to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

_NUMBER: Final = re.compile(r"\[\^(\d+)\]")
_EDITED_NOTE: Final = re.compile(r"\[\^(\d+)\]: .*? at \d+-\d+, (mem-[0-9a-f]{12})\)")
_EDITED_CLAIM: Final = re.compile(r"- (?:\(\d{4}-\d\d-\d\d\) )?(.*?)(?: (?:\[\^\d+\])+)?(?<!\s)\s*")
"""A footnote and a claim of a page that a person changed."""
FORMAT_VERSION: Final = "0.2"
"""Version of the Open Knowledge Format, https://github.com/GoogleCloudPlatform/knowledge-catalog/tree/main/okf."""
PROPOSED: Final = ".proposed.md"
_RESERVED: Final = frozenset({"index", "log"})
_NAME: Final = re.compile(r"\.?([a-z0-9_]+?)_?(?:-\d+)?(?:\.proposed|\.saved-[0-9a-f]+)?\.md")
_FRONT: Final = re.compile(r"\A---\n(?:.*\n)*?---\n+")
_RENDERED: Final = re.compile(r"^rendered: ([0-9a-f]{16})\n", re.MULTILINE)
log = get_logger(__name__)
MAX_BYTES: Final = 4 * 1024 * 1024
NO_PAGE: Final = ".no-page"
"""Behind the name of what was moved out of the place of a page."""
_CAME_OUT: Final = ".old"
_PATIENCE: Final = 0.5
"""Seconds to wait for a program that is writing a page."""


def cut_rendered(text: str, gone: Collection[str]) -> Page | None:
    """Return a rendered page without the claims of items.

    Args:
        text: Rendered page without front matter.
        gone: IDs of the items.

    Returns:
        None if the page must be rebuilt: no claim of another item is left, a person's line is concerned or names a
        footnote, or a claim has other footnotes, too.
    """
    page, gone = parse(text), frozenset(gone)
    lines: list[tuple[str, Line]] = []
    for title, line in page.lines():
        items = line.items if isinstance(line, PageClaim) else ()
        is_by_hand = isinstance(line, OwnText) or line.is_by_hand
        if gone.isdisjoint(items) and not (is_by_hand and "[^" in line.text):
            lines.append((title, line))
        elif is_by_hand or not gone.issuperset(items):
            return None
    short = with_lines(page, lines)
    return short if short.notes else None


def cut_edited(text: str, gone: Collection[str], rendered: Collection[str]) -> str:
    """Remove footnotes of items, and claims without others, from an edited page.

    A claim whose words are a person's stays without these footnotes: what they quote is theirs.

    Args:
        text: Whole text of a file.
        gone: IDs of the items.
        rendered: Claims as they were rendered, in Markdown; all others are a person's.
    """
    lines = join_claims(text).split("\n")
    notes = {line: note for line in lines if (note := _EDITED_NOTE.match(line))}
    numbers = {note[1] for note in notes.values() if note[2] in gone}
    if not numbers:
        return text
    remaining = (line for line in lines if line not in notes or notes[line][1] not in numbers)
    cut_lines = (_cut_line(line, numbers, rendered) for line in remaining)
    return break_claims("\n".join(line for line in cut_lines if line is not None))


def _cut_line(line: str, numbers: Collection[str], rendered: Collection[str]) -> str | None:
    """Return a line without references to footnotes, None if nothing is left."""
    references = set(_NUMBER.findall(line))
    if references.isdisjoint(numbers):
        return line
    claim = _EDITED_CLAIM.fullmatch(line)
    if claim and references <= set(numbers) and not line.rstrip().endswith(EDITED) and claim[1] in rendered:
        return None
    return _NUMBER.sub(lambda number: "" if number[1] in numbers else number[0], line).rstrip()


@dataclass(frozen=True, slots=True)
class PageFile:
    """Page of a file, and whether a person edited it."""

    page: Page
    is_edited: bool


def file_name(topic: str, part: int = 1) -> str:
    """Return the file name of a part of a page."""
    stem = f"{topic}_" if topic in _RESERVED else topic
    return f"{stem}.md" if part == 1 else f"{stem}-{part}.md"


def proposal_name(topic: str) -> str:
    """Return the file name of a proposed page."""
    return file_name(topic).removesuffix(".md") + PROPOSED


def get_topic(name: str) -> str:
    """Return the topic of a file name, or ""."""
    match = _NAME.fullmatch(name)
    return match[1] if match else ""


def get_body(text: str) -> str:
    """Return the text of a file without front matter."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT.match(text)
    return text[front.end() :] if front else text


def page_file(page: Page, description: str) -> str:
    """Return the whole file of a page."""
    front = ["type: Topic", f"title: {_quote(page.title)}", f"description: {_quote(description)}"]
    if page.consolidated_at is not None:
        front.append(f"generated: {{by: agent-memory, at: {_quote(to_text(page.consolidated_at))}}}")
    text = "\n".join(["---", *front, "---", "", render(page)])
    return _add_checksum(text)


def _add_checksum(text: str) -> str:
    return text.replace("\n---\n", f"\nrendered: {_checksum(text)}\n---\n", 1)


def _split_file(text: str) -> tuple[str, str, bool]:
    """Return front matter without the checksum, page, and if it is edited."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT.match(text)
    mark = _RENDERED.search(front[0]) if front else None
    if front is None or mark is None:
        return "", text[front.end() :] if front else text, True
    head = front[0][: mark.start()] + front[0][mark.end() :]
    body = text[front.end() :]
    return head, body, _checksum(head + body) != mark[1]


def read_page_file(text: str) -> PageFile:
    """Return the page of a file; edited without its checksum."""
    _, body, is_edited = _split_file(text)
    return PageFile(parse(body), is_edited)


def shortened_file(text: str, gone: Collection[str]) -> str | None:
    """Return a rendered file without some items, or None."""
    head, body, is_edited = _split_file(text)
    short = None if is_edited else cut_rendered(body, gone)
    return None if short is None else _add_checksum(head + render(short))


def index_file(topics: Sequence[tuple[str, str, str, int]]) -> str:
    """Return the page that lists the topics.

    Args:
        topics: Name, title, description and number of items of each.
    """
    lines = [
        f"- [{escape(title)}]({file_name(name)}) - {escape(description)} ({items} items)"
        for name, title, description, items in sorted(topics)
    ]
    return "\n".join(
        ["---", f'okf_version: "{FORMAT_VERSION}"', "---", "", "# Topics", "", *(lines or ["None yet."]), ""]
    )


def _quote(text: str) -> str:
    """Return a text as YAML writes it between quotes, in one line."""
    shown = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"' + "".join(character if character.isprintable() else f"\\U{ord(character):08X}" for character in shown) + '"'
    )


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SavedPage:
    """Page of a topic in its files.

    Attributes:
        page: Whole, all its parts joined.
        is_edited: A person changed one of them.
        contents: What is in each file, by its name.
    """

    page: Page
    is_edited: bool
    contents: Mapping[str, bytes]

    @property
    def text(self) -> str:
        """Contents of the files, joined, without front matter."""
        return "\n".join(get_body(content.decode("utf-8", "replace")) for content in self.contents.values())


@dataclass(frozen=True, slots=True)
class PageFiles:
    """Files of a page in order, with edits and proposals."""

    files: tuple[Path, ...] = ()
    is_edited: bool = False
    proposed: Path | None = None


class TopicFiles:
    """The folder with the pages of one agent.

    Args:
        folder: `topics` in the agent's folder; made with the first page.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, topic: str) -> SavedPage | None:
        """Return a topic's page, or None.

        Raises:
            BusyError: A program is writing it at this moment.
            StorageError: It cannot be read.
        """
        contents: dict[str, bytes] = {}
        for name, came_out in self._names(topic).items():
            if came_out:
                self._put_back(name)
            with contextlib.suppress(FileNotFoundError):
                contents[name] = self._read_content(name)
        if not contents:
            return None
        files = [read_page_file(content.decode("utf-8", "replace")) for content in contents.values()]
        if files[0].page.parts == 1 and not files[0].is_edited:
            files = files[:1]  # whole: a proposal that was moved here, next to its original
        return SavedPage(join_parts([file.page for file in files]), any(file.is_edited for file in files), contents)

    def get_files(self, topic: str) -> PageFiles:
        """Return the files of a topic's page.

        Raises:
            StorageError: It cannot be read.
        """
        saved, proposed = self.read(topic), self._folder / proposal_name(topic)
        files = tuple(self._folder / name for name in saved.contents) if saved else ()
        return PageFiles(files, saved is not None and saved.is_edited, proposed if proposed.exists() else None)

    def write(self, topic: str, page: Page, description: str, read: SavedPage | None) -> bool:
        """Write a page over the read one.

        Returns:
            False if a file changed in between: read and consolidate again.

        Raises:
            StorageError: It could not be written; what was there is there.
        """
        if is_encrypted(self._folder.parent):  # the record has the page
            return True
        make_private_folder(self._folder)
        (self._folder / proposal_name(topic)).unlink(missing_ok=True)
        contents = dict(read.contents) if read else {}
        parts = {file_name(topic, part.part): page_file(part, description) for part in split(page)}
        done = [self._replace(name, text.encode(), contents.pop(name, None)) for name, text in parts.items()]
        done += [self._remove(name, content) for name, content in contents.items()]
        return all(done)

    def propose(self, topic: str, page: Page, description: str) -> None:
        """Write a page next to the one that a person edited.

        Raises:
            StorageError: It could not be written.
        """
        if not is_encrypted(self._folder.parent):
            make_private_folder(self._folder)
            with translated(self._folder, "write"):
                path = self._folder / proposal_name(topic)
                replace_file(path, page_file(page, description).encode(), durable=False)

    def write_index(self, topics: Sequence[tuple[str, str, str, int]]) -> None:
        """Write the list of topics with titles, descriptions and counts."""
        if is_encrypted(self._folder.parent):
            return
        make_private_folder(self._folder)
        remove_leftovers(self._folder)  # of a process that was killed while it wrote a page
        with translated(self._folder, "write"):
            replace_file(self._folder / PAGE_INDEX, index_file(topics).encode(), durable=False)

    def remove(self, topic: str) -> bool:
        """Remove an unedited page with proposals; return False if it is edited."""
        (self._folder / proposal_name(topic)).unlink(missing_ok=True)
        saved = self.read(topic)
        if saved is None or saved.is_edited:
            return saved is None
        gone = [self._remove(name, content) for name, content in saved.contents.items()]
        return all(gone)

    def withdraw(self, gone: Collection[str], rendered: Callable[[], Collection[str]]) -> dict[str, bool]:
        """Remove the words of deleted items from all files.

        Args:
            gone: Ids of the items.
            rendered: Returns the claims as they were rendered: see `cut_edited`.

        Returns:
            The topics in whose files such words stood, and whether they are out: else the page must be rebuilt.

        Raises:
            StorageError: A file cannot be read or written.
        """
        results: dict[str, bool] = {}
        contents: dict[str, bytes] = {}
        for path in _pages_in(self._folder):
            with contextlib.suppress(FileNotFoundError):
                contents[path.name] = self._read_content(path.name)
        named = [name for name, content in contents.items() if any(item_id.encode() in content for item_id in gone)]
        for name in named:
            text, topic, is_out = contents[name].decode("utf-8", "replace"), get_topic(name), False
            if name.endswith(PROPOSED):
                (self._folder / name).unlink(missing_ok=True)
            elif (short := shortened_file(text, gone)) is not None:
                is_out = self._replace(name, short.encode(), contents[name])
            elif _is_changed(topic, contents):  # no part of such a page is rendered again
                self._replace(name, cut_edited(text, gone, rendered()).encode(), contents[name])
            results[topic] = results.get(topic, True) and is_out
        return results

    def _replace(self, name: str, content: bytes, expected: bytes | None) -> bool:
        path, new = self._folder / name, self._came_out(name)

        def spare() -> Path:
            olds.append(self._came_out(name))
            return olds[-1]

        with translated(path, "write"):
            try:
                if self._read_content(name) != expected:
                    return False
            except FileNotFoundError:
                if expected is not None:
                    return False
            if content == expected:
                return True
            replace_file(new, content, durable=False)
            olds = [new]
            put_file_in_place(new, path, spare)
            return self._settle(name, (content, expected), olds)

    def _remove(self, name: str, expected: bytes) -> bool:
        path = self._folder / name
        with translated(path, "remove"), contextlib.suppress(FileNotFoundError):
            old = path.rename(self._came_out(name))
            return self._settle(name, (expected,), [old])
        return True

    def _settle(self, name: str, expected: Collection[bytes | None], olds: Sequence[Path]) -> bool:
        """Remove a moved file if its content was known, else restore it."""
        nothing_else = True
        for old in filter(Path.exists, olds):
            content = self._read_content(old.name)
            if content in expected:
                old.unlink(missing_ok=True)
                continue
            nothing_else = False
            self._put_back(name)
        return nothing_else

    def _put_back(self, name: str) -> None:
        """Restore what a person saved during a rendering, also after a crash."""
        path = self._folder / name
        for old in self._olds(name):
            with contextlib.suppress(FileNotFoundError):
                if not _is_edited(self._read_content(old.name)):
                    old.unlink()
                elif move_if_free(old, path):
                    continue
                elif _is_edited(self._read_content(name)):  # two saves: both are a person's
                    old.rename(path.with_name(f"{path.stem}.saved-{secrets.token_hex(4)}.md"))
                else:
                    put_file_in_place(old, path, lambda: self._came_out(name))
                    old.unlink(missing_ok=True)

    def _read_content(self, name: str) -> bytes:
        path = self._folder / name
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            _move_away(path)
        return read_settled(path, _PATIENCE, MAX_BYTES)[0]

    def _names(self, topic: str) -> dict[str, bool]:
        """Return the files of a topic in order; True for moved ones."""
        stem = re.escape(file_name(topic).removesuffix(".md"))
        pattern = re.compile(rf"\.?({stem}(?:-(\d+))?\.md)(?:\.[0-9a-f]{{8}}\{_CAME_OUT})?")
        with contextlib.suppress(FileNotFoundError):
            matches = [match for path in self._folder.iterdir() if (match := pattern.fullmatch(path.name))]
            olds = {match[1] for match in matches if match[0] != match[1]}
            return {match[1]: match[1] in olds for match in sorted(matches, key=lambda match: int(match[2] or 1))}
        return {}

    def _olds(self, name: str) -> list[Path]:
        pattern = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{8}}\{_CAME_OUT}")
        with contextlib.suppress(FileNotFoundError):
            return [path for path in self._folder.iterdir() if pattern.fullmatch(path.name)]
        return []

    def _came_out(self, name: str) -> Path:
        return self._folder / f".{name}.{secrets.token_hex(4)}{_CAME_OUT}"


def _move_away(path: Path) -> None:
    """Move away a pipe, a link or a large file.

    The page is rebuilt, and what is forgotten can be taken out of everything else.

    Raises:
        StorageError: It cannot be moved.
    """
    with translated(path, "read"), contextlib.suppress(FileNotFoundError):
        aside = set_aside(path, path.with_name(f"{path.name}{NO_PAGE}"))
        log.warning("no_page_set_aside", name=aside.name)


def _pages_in(folder: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(path for path in folder.iterdir() if path.suffix == ".md" and path.name != PAGE_INDEX)
    return []


def _is_changed(topic: str, contents: Mapping[str, bytes]) -> bool:
    """Return True if a person changed any part of a page."""
    parts = (content for name, content in contents.items() if get_topic(name) == topic and not name.endswith(PROPOSED))
    return any(map(_is_edited, parts))


def _is_edited(content: bytes) -> bool:
    return read_page_file(content.decode("utf-8", "replace")).is_edited


def put_page(folder: Path, topic: str, text: str) -> bool:
    """Write an edited page if none exists; return True if written.

    Raises:
        StorageError: It could not be written.
    """
    if is_encrypted(folder.parent):
        return False
    make_private_folder(folder)
    path = folder / file_name(topic)
    with translated(path, "write"):
        if path.exists():
            return False
        replace_file(path, text.encode(), durable=False)
    return True
