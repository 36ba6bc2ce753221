"""Web pages, mails and Word files as documents, without extra packages.

A page is read in linear time of its length, which the parser of the standard library does not promise.
"""

from __future__ import annotations

import email
import email.policy
import html
import re
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from agent_memory.errors import ValidationError
from agent_memory.knowledge.intake.drafts import ReceivedDocument, SkippedPart
from agent_memory.knowledge.intake.turns import repair_text
from agent_memory.knowledge.sources.source_files import LEFT_OUT, MAX_TEXT_BYTES, UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from email.message import EmailMessage

    from agent_memory.knowledge.sources.source_files import ImportPart, SourceFile, SourceTree

_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*+)[^<>]*+>|<[!?][^<>]*+>")
_HIDDEN: Final = frozenset({"head", "noscript", "script", "style", "template"})
_BLOCKS: Final = frozenset({
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "footer", "form", "h1",
    "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "tr", "ul",
})  # fmt: skip
_PARAGRAPHS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "p"})
_SPACES: Final = re.compile(r"[^\S\n]++")
_BREAKS: Final = re.compile(r" ?\n ?(?:\n ?)*+")


def read_html(page: str) -> tuple[str, str]:
    """Return the title and the words of a page, as in Markdown."""
    page = _drop_comments(page)
    parts, titles = list[str](), list[str]()
    place, hidden, is_title = 0, "", False
    for tag in _TAG.finditer(page):
        words = page[place : tag.start()].replace("\n", " ")
        if is_title:
            titles.append(words)
        elif not hidden:
            parts.append(words)
        place, name = tag.end(), (tag[2] or "").lower()
        is_title = name == "title" and not tag[1]
        if hidden:
            hidden = "" if tag[1] and name == hidden else hidden
        elif name in _HIDDEN and not tag[1]:
            hidden = name
        elif name:
            parts.append(_mark_tag(name, is_end=bool(tag[1])))
    if not hidden:
        parts.append(page[place:])
    text = _SPACES.sub(" ", html.unescape("".join(parts)))
    text = _BREAKS.sub(lambda gap: "\n\n" if gap[0].count("\n") > 1 else "\n", text)
    return " ".join(html.unescape("".join(titles)).split()), text.strip()


def _mark_tag(name: str, *, is_end: bool) -> str:
    """Return the Markdown mark in place of a tag."""
    if name in {"td", "th"}:
        return "" if is_end else " | "
    if name not in _BLOCKS:
        return ""
    if is_end:
        return "\n\n" if name in _PARAGRAPHS else "\n"
    return f"\n{'#' * int(name[1])} " if name in _PARAGRAPHS - {"p"} else "\n- " if name == "li" else "\n"


def _drop_comments(page: str) -> str:
    head, *rest = page.split("<!--")
    return head + "".join(part.partition("-->")[2] for part in rest)


PAGES: Final = frozenset({".htm", ".html", ".xhtml"})
MAILS: Final = frozenset({".eml", ".mbox"})
WORD: Final = ".docx"
UNREAD: Final = frozenset({".doc", ".epub", ".odt", ".pages", ".pdf", ".pptx", ".rtf", ".xlsx"})
"""Suffixes of documents that another program has to convert."""
_MAIL_FIELDS: Final = ("From", "To", "Cc", "Date", "Subject")
_WORD_SPACE: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_WORD_MARKS: Final = {"tab": "\t", "br": "\n", "cr": "\n"}
_WORD_BODY: Final = "word/document.xml"


def read_page(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield the words of a web page, with low trust."""
    title, text = read_html(repair_text(file.read_text()))
    if text:
        yield ReceivedDocument(text, title or file.base_name, "web_page", file.changed_at)
    else:
        yield SkippedPart("the page", LEFT_OUT)


def read_mails(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield each mail of a file as a document, with low trust."""
    for number, content in enumerate(_split_mails(file), 1):
        place = f"mail {number}"
        try:
            parts = _read_mail(content, file.base_name, place) if content else [SkippedPart(place, "too_long")]
        except Exception:  # noqa: BLE001 - the parser of Python raises anything at odd fields; the mail is named
            parts = [SkippedPart(place)]
        yield from parts


def _read_mail(content: bytes, name: str, place: str) -> list[ImportPart]:
    """Return a mail as a document, and its attachments as left out."""
    message = email.message_from_bytes(content, policy=email.policy.default)
    text = _get_body(message)
    if not text.strip():
        return [SkippedPart(place)]
    fields = [(field, repair_text(str(message[field]))) for field in _MAIL_FIELDS if message[field]]
    subject = dict(fields).get("Subject", "")
    head = "\n".join(f"{field}: {value}" for field, value in fields)
    left_out = [
        SkippedPart(f"{part.get_filename() or 'an attachment'} of {place}", LEFT_OUT)
        for part in message.iter_attachments()
    ]
    return [ReceivedDocument(f"{head}\n\n{text}", subject or name, "mail", _get_time(message)), *left_out]


def _split_mails(file: SourceFile) -> Iterator[bytes]:
    """Yield the mails of a file, empty for too large ones."""
    lines, size, is_gap = list[bytes](), 0, True
    with file.open_stream() as stream:
        while line := stream.readline(MAX_TEXT_BYTES):
            if file.suffix == ".mbox" and is_gap and line.startswith(b"From "):
                if size:
                    yield b"".join(lines)
                lines, size = [], 0
            else:
                size += len(line)
                lines.append(line)
                if size > MAX_TEXT_BYTES:
                    lines.clear()
            is_gap = not line.strip()
    if size:
        yield b"".join(lines)


def _get_body(message: EmailMessage) -> str:
    """Return the text of a mail, without the marks of HTML."""
    part = message.get_body(("plain", "html"))
    try:
        content = "" if part is None else part.get_content()
    except (LookupError, ValueError, UnicodeError):  # an unknown character set
        payload = part.get_payload(decode=True) if part is not None else b""
        content = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    text = repair_text(content if isinstance(content, str) else "").replace("\r\n", "\n")
    return read_html(text)[1] if part is not None and part.get_content_subtype() == "html" else text


def _get_time(message: EmailMessage) -> datetime | None:
    moment: datetime | None = getattr(message["Date"], "datetime", None)
    return moment


def read_word(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Yield the paragraphs of a Word file.

    Raises:
        ValidationError: It is damaged (`damaged_file`) or too large (`too_long`).
    """
    try:
        with file.open_stream() as stream, zipfile.ZipFile(BytesIO(stream.read(MAX_TEXT_BYTES))) as archive:
            if archive.getinfo(_WORD_BODY).file_size > MAX_TEXT_BYTES:
                raise ValidationError(f"{file.name} is too large.", code="too_long")
            root = ET.fromstring(archive.read(_WORD_BODY))  # noqa: S314 - expat bounds entities
    except (KeyError, ET.ParseError, *UNREADABLE) as error:
        raise ValidationError(f"{file.name} is damaged: {error}.", code="damaged_file") from None
    text = "\n\n".join(filter(str.strip, map(_render_paragraph, root.iter(f"{_WORD_SPACE}p"))))
    if text:
        yield ReceivedDocument(repair_text(text), file.base_name, "document", file.changed_at)
    else:
        yield SkippedPart("the text", LEFT_OUT)


def _render_paragraph(paragraph: ET.Element) -> str:
    """Return a paragraph with the Markdown mark of its style."""
    style = paragraph.find(f"{_WORD_SPACE}pPr/{_WORD_SPACE}pStyle")
    name = "" if style is None else style.get(f"{_WORD_SPACE}val", "")
    level = name.removeprefix("Heading")
    is_item = paragraph.find(f"{_WORD_SPACE}pPr/{_WORD_SPACE}numPr") is not None
    mark = f"{'#' * int(level)} " if level in set("123456") else "- " if is_item else ""
    nodes = ((node.tag.removeprefix(_WORD_SPACE), node.text or "") for node in _iter_own_nodes(paragraph))
    words = "".join(text if tag == "t" else _WORD_MARKS.get(tag, "") for tag, text in nodes)
    return f"{mark}{words}" if words.strip() else ""


def _iter_own_nodes(paragraph: ET.Element) -> Iterator[ET.Element]:
    """Yield the nodes of a paragraph without those of inner paragraphs."""
    waiting = [*reversed(paragraph)]
    while waiting:
        node = waiting.pop()
        if node.tag != f"{_WORD_SPACE}p":
            yield node
            waiting += reversed(node)


def refuse_document(file: SourceFile, tree: SourceTree) -> Iterator[ImportPart]:  # noqa: ARG001 - of all readers
    """Refuse a document that has to be converted first.

    Raises:
        ValidationError: Always (`to_convert`).
    """
    raise ValidationError(
        f"{file.name} is not read.", code="to_convert", recovery="Convert it to text or Markdown first."
    )
