"""Web pages, mails, Word files, and what has to be converted first."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from agent_memory.errors import ValidationError
from agent_memory.knowledge.import_formats import find_format, read_parts, take_sample
from agent_memory.knowledge.sources.documents import read_html
from agent_memory.knowledge.sources.source_files import open_source
from tests.support import raises

if TYPE_CHECKING:
    from pathlib import Path

MAIL = """From: Ines <ines@a.example>
Date: Mon, 02 Mar 2026 09:15:00 +0100
Subject: =?utf-8?q?The_l=C3=A9dger?=
Content-Type: multipart/mixed; boundary=b

--b
Content-Type: text/plain; charset=utf-8

We use PostgreSQL.
--b
Content-Type: application/pdf
Content-Disposition: attachment; filename=plan.pdf

x
--b--
"""
WORDS = (
    '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Plan</w:t></w:r></w:p><w:p><w:r><w:t>We use </w:t></w:r>'
)
WORD = (
    '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    f"{WORDS}<w:r><w:tab/><w:t>PostgreSQL.</w:t></w:r></w:p></w:body></w:document>"
)


def read(path: Path) -> list[Any]:
    """Return the parts of a file."""
    tree = open_source(str(path))
    [file] = tree.files.values()
    form = find_format(take_sample(file, tree))
    assert form is not None
    return list(read_parts(form, file, tree))


def write_word(path: Path, document: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("word/document.xml", document)
    return path


def test_page_gives_visible_words_with_low_trust(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        "<html><head><title>The plan</title><style>p {}</style></head><body><h2>Backups</h2>"
        "<p>At&nbsp;02:00 <b>UTC</b>.</p><ul><li>Bergen</li></ul><script>evil()</script></body>"
    )
    [document] = read(page)
    assert (document.title, document.resource_type) == ("The plan", "web_page")
    assert document.text == "## Backups\n\nAt 02:00 UTC.\n\n- Bergen"


@pytest.mark.parametrize("page", ["<p>a<", "<!--", "<script>" * 1_000, "</p>" * 1_000, "<p" * 10_000, "&#xfffffff;"])
def test_broken_page_is_no_error(page: str) -> None:
    read_html(page)


def test_mail_gives_its_text_and_names_attachments(tmp_path: Path) -> None:
    mail = tmp_path / "a.eml"
    mail.write_text(MAIL)
    document, attachment = read(mail)
    assert (document.title, document.resource_type) == ("The lédger", "mail")
    assert document.text.startswith("From: Ines <ines@a.example>\n")
    assert document.text.rstrip().endswith("We use PostgreSQL.")
    assert document.said_at.isoformat() == "2026-03-02T09:15:00+01:00"
    assert attachment.place == "plan.pdf of mail 1"


def test_mailbox_gives_every_mail(tmp_path: Path) -> None:
    box = tmp_path / "a.mbox"
    box.write_text(
        f"From x Mon\n{MAIL}\nFrom y Tue\nSubject: b\nContent-Type: text/html; charset=no-such\n\n<p>Tea</p>\n"
    )
    assert [part.title for part in read(box) if hasattr(part, "title")] == ["The lédger", "b"]


def test_word_file_gives_paragraphs(tmp_path: Path) -> None:
    [document] = read(write_word(tmp_path / "a.docx", WORD))
    assert document.text == "# Plan\n\nWe use \tPostgreSQL."


@pytest.mark.parametrize("content", ["<w:document", "", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;&d;</a>"])
def test_damaged_word_file_is_refused(tmp_path: Path, content: str) -> None:
    with raises(ValidationError, "damaged_file"):
        read(write_word(tmp_path / "a.docx", content))


def test_other_document_is_refused_with_advice(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7")
    with raises(ValidationError, "to_convert"):
        read(path)
