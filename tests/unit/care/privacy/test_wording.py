"""Words are found however a file writes them, and made unreadable without moving what stands around them."""

from __future__ import annotations

import base64
import gzip
import json
import unicodedata
import zipfile
from typing import TYPE_CHECKING

from agent_memory.care.privacy.erasure import ErasureResult, TextHider, erase_other_files
from agent_memory.care.privacy.text_search import TextMatcher, search
from agent_memory.files.layout import AgentFolder
from agent_memory.journal.purged_spans import BAR
from tests.rows import check_rows

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "Zo\u00eb's Stra\u00dfe \u0130stanbul salary is \u201c72\u201d a year \U0001f600."
WRITTEN = {
    "as it is": TEXT,
    "capitals": TEXT.upper(),
    "small letters": TEXT.lower(),
    "folded": TEXT.casefold(),
    "decomposed": unicodedata.normalize("NFD", TEXT),
    "wide": TEXT.replace("salary", "\uff53\uff41\uff4c\uff41\uff52\uff59"),
    "ligature": TEXT.replace("Stra\u00dfe", "\ufb05ra\u1e9ee"),
    "JSON": json.dumps(TEXT),
    "JSON, decomposed": json.dumps(unicodedata.normalize("NFD", TEXT)),
    "JSON within JSON": json.dumps(json.dumps(TEXT)),
    "YAML, folded": "note: >-\n  " + TEXT.replace(" ", "\n  "),
    "YAML, escaped": TEXT.replace("\u00eb", "\\xeb").replace("\U0001f600", "\\U0001F600").replace("is ", "is\\\n \\ "),
    "YAML, quoted": "'" + TEXT.replace("'", "''").replace("is ", "is\n\n  ") + "'",
    "Markdown": TEXT.replace("\u201c", "\\\u201c").replace("is ", "is&#x9;"),
    "Markdown, quoted": "> " + TEXT.replace("is ", "is\n> "),
    "invisible characters": TEXT.replace("salary", "sal\u200bary"),
    "plain quotation marks": TEXT.replace("\u201c", '"').replace("\u201d", '"').replace("'", "\u2019"),
    "another end": TEXT[:-1] + ", she said",
}


@check_rows("written", WRITTEN.values(), ids=WRITTEN)
def test_a_text_is_found_and_hidden_however_it_is_written(written: str) -> None:
    wording, around = TextMatcher([TEXT]), f"Tea. {written} Cake."
    hidden = wording.hide(around)
    assert wording.count(around) == 1
    assert len(hidden) == len(around)
    assert hidden.startswith("Tea. ")
    assert hidden.endswith(" Cake.")
    assert BAR in hidden
    assert "salary" not in hidden
    assert wording.count(hidden) == 0


@check_rows(
    "other", ["Ann earns 72000 a year", "Ann earns 7 a year", "1Ann earns 720", "Ann earns 7200", "Ann learns 720"]
)
def test_other_words_are_left_alone(other: str) -> None:
    wording = TextMatcher(["Ann earns 720"])
    assert (wording.count(other), wording.hide(other)) == (
        (1, f"1{BAR * 13}") if other == "1Ann earns 720" else (0, other)
    )


def test_nothing_is_hidden_where_no_text_can_be_told_from_others() -> None:
    wording = TextMatcher(["Tea at 4", ""])
    assert not wording
    assert wording.hide("Tea at 4 in the kitchen") == "Tea at 4 in the kitchen"
    assert wording.count("Tea at 4") == 0


def test_a_long_text_is_found_by_each_stretch_of_it() -> None:
    words = [f"word{number}" for number in range(100)]
    wording = TextMatcher([" ".join(words)])
    assert wording.count(" ".join(words[40:])) == 1
    assert wording.count(" ".join(words)) == 2
    assert wording.count(" ".join(words[50:90])) == 0


def test_packed_files_are_searched_and_left_as_they_are(tmp_path: Path) -> None:
    packed = tmp_path / "memories.bak.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    with zipfile.ZipFile(tmp_path / "old.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("memories.yaml", TEXT)
    binary = tmp_path / "core"
    binary.write_bytes(bytes(range(256)) + TEXT.encode() + b"\xff\xfe\x00")
    before = packed.read_bytes()
    erase_other_files(AgentFolder(tmp_path), TextHider([TEXT], ()), ErasureResult())
    assert packed.read_bytes() == before
    assert [(each.path.name, each.member) for each in search(AgentFolder(tmp_path), [TEXT])] == [
        ("memories.bak.gz", None),
        ("old.zip", "memories.yaml"),
    ]
    assert binary.read_bytes()[:256] == bytes(range(256))


def test_a_line_that_was_kept_aside_packed_goes(tmp_path: Path) -> None:
    rejected = tmp_path / "memories.rejected.yaml"
    packed = base64.b64encode(TEXT.encode() + b"\xff").decode()
    rejected.write_text(f'--- {{"reason": "torn", "line_base64": "{packed}"}}\n--- {{"reason": "kept"}}\n', "utf-8")
    assert [each.count for each in search(AgentFolder(tmp_path), [TEXT])] == [1]
    erase_other_files(AgentFolder(tmp_path), TextHider([TEXT], ()), ErasureResult())
    assert rejected.read_text("utf-8") == '--- {"reason": "kept"}\n'


LEADERS = "Chapter 1 " + ". " * 80 + "7"


@check_rows("text", ["'" * 20, '"' * 19 + "7", "\\" * 16, ". " * 30 + "7", LEADERS])
def test_what_signs_alone_make_long_hides_no_word_elsewhere(text: str) -> None:
    wording = TextMatcher([text])
    assert wording.hide("Chapter 1 tells of 7 cranes.") == "Chapter 1 tells of 7 cranes."


def test_a_text_of_words_and_leaders_is_found_as_it_stands() -> None:
    hidden = TextMatcher([LEADERS]).hide(f"So: {LEADERS} pages")
    assert hidden.replace(BAR, "").split() == ["So:", "pages"]
