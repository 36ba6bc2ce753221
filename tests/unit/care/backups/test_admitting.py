"""What of a backup comes back once something of it was purged: nothing of that, and all else as it was."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from agent_memory.care.backups.admission import AdmissionFilter, barring, without_records
from agent_memory.files.layout import AgentFolder
from agent_memory.journal import PurgeList
from agent_memory.journal.format import add_checksum, encode_line

if TYPE_CHECKING:
    from pathlib import Path

SAID = "Ann's salary is seventy-two thousand a year."
NAME = hashlib.sha256(b"old").hexdigest()
PAGE = (
    "- She is paid well. [^1]\n- Boxes go north. [^1] [^2]\n\n"
    '[^1]: "x" (file, at 0-1, mem-0123456789ab): y\n[^2]: "z" (file, at 0-1, mem-ba9876543210): z\n'
)


def put(record_id: str, **data: object) -> bytes:
    value = {"seq": 1, "at": "2026-03-01T12:00:00Z", "op": "put", "kind": "episode", "id": record_id, "data": data}
    return add_checksum(encode_line(value))


def purged(root: Path) -> AdmissionFilter:
    folder = AgentFolder(root / "bob")
    folder.path.mkdir(parents=True)
    PurgeList(folder.path).begin(["epi-0123456789ab", "mem-0123456789ab"], [SAID], "2026-03-01T12:00:00Z")
    return barring(root, {"bob", "eve"})


def test_where_nothing_was_purged_all_comes_back(root: Path) -> None:
    admission = barring(root, {"bob"})
    line = put("epi-0123456789ab", content=SAID, blob=NAME)
    assert admission.is_all
    assert admission.line(line, {}) == line
    assert admission.text(SAID.encode()) == SAID.encode()
    assert admission.page(PAGE.encode()) == PAGE.encode()


def test_lines_texts_and_pages_lose_what_was_purged(root: Path) -> None:
    admission = purged(root)
    assert admission.line(put("epi-0123456789ab", content="x"), {}) == b""
    kept = admission.line(put("epi-ba9876543210", content=f"So: {SAID} Yes."), {})
    assert b"seventy-two" not in kept
    assert b" Yes." in kept
    assert add_checksum(kept) == kept
    text = admission.text(f"So: {SAID} Yes.".encode()).decode()
    assert (text[:4], text[-5:], "salary" in text) == ("So: ", " Yes.", False)
    page = (admission.page(PAGE.encode()) or b"").decode()
    assert "paid well" not in page
    assert "Boxes go north.  [^2]" in page


def test_a_page_on_which_nothing_stands_any_more_does_not_come_back(root: Path) -> None:
    assert purged(root).page(PAGE.replace("mem-ba9876543210", "mem-0123456789ab").encode()) is None
    assert without_records("No page.", {"mem-0123456789ab"}) == "No page."


def test_a_line_names_the_text_that_lost_words(root: Path) -> None:
    admission = purged(root)
    new = hashlib.sha256(b"new").hexdigest()
    line = admission.line(put("epi-ba9876543210", content="x", blob=NAME), {NAME: new})
    assert line == put("epi-ba9876543210", content="x", blob=new)
    assert admission.line(b"no line\n", {NAME: new}) == b"no line\n"
    assert admission.line(f"{NAME}\n".encode(), {NAME: new}) == f"{NAME}\n".encode()


def test_bytes_that_are_no_text_stay(root: Path) -> None:
    assert purged(root).text(b"\xff\xfe" + SAID.encode())[:2] == b"\xff\xfe"
