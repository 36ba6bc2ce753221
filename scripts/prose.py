"""Check prose: `python -m scripts.prose [FILE…]` lists odd words, long sentences and crowded paragraphs.

The list of words is that of the style rules. Code, generated pages and quoted output are not prose.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).resolve().parents[1]
MAX_SENTENCE: Final = 20
"""Words of a sentence or table cell."""
MAX_PARAGRAPH: Final = 4
"""Sentences of a paragraph."""
WORDS: Final = {
    "anew": "again, or rebuild",
    "once more": "again",
    "beside": "next to, in the same folder, also",
    "besides": "also",
    "told": "reported",
    "tell": "report",
    "tells": "reports",
    "stands": "is, is stored",
    "lies": "is, is stored",
    "nobody": "never, no user",
    "somebody": "the caller, another process",
    "whoever": "the caller",
    "whence": "the source",
    "take in": "ingest",
    "takes in": "ingests",
    "taken in": "ingested",
    "drawn from": "extracted from",
    "look at": "check, scan",
    "looks at": "checks",
    "looked at": "checked",
    "is none": "is not a",
    "is no": "is not a",
    "are no": "are not",
    "goes on": "continues",
    "go on": "continue",
    "meanwhile": "while, during",
    "all there is": "everything",
    "that is there": "existing",
    "of which": "rewrite the sentence",
    "as far as": "rewrite the sentence",
    "but for": "except",
    "mend": "repair",
    "mends": "repairs",
    "mended": "repaired",
    "spoilt": "corrupt",
    "set aside": "quarantined, archived",
    "kept aside": "quarantined",
    "gone": "deleted",
    "thrown away": "discarded",
    "portion": "batch",
    "portions": "batches",
    "stretch": "span",
    "stretches": "spans",
    "behind the answer": "in the background",
    "behind the answers": "in the background",
    "in turn": "in order",
    "by turns": "in order",
    "stranger": "untrusted source",
    "stranger's": "untrusted",
    "strangers": "untrusted sources",
    "wish": "user request",
    "wishes": "user requests",
    "suspect": "conflict",
    "suspects": "conflicts",
}
"""Words that are not used, each with what to write."""
_ODD: Final = re.compile(
    rf"\b(?!(?:is|are) no longer)(?:{'|'.join(sorted(WORDS, key=len, reverse=True))})\b", re.IGNORECASE
)
_CODE: Final = re.compile(
    r"```.*?^ *```|^::: (?:.+\n)+|`[^`\n]*`|<!--.*?-->|\]\([^)]*\)|https?://\S+", re.DOTALL | re.MULTILINE
)
_SENTENCE_END: Final = re.compile(
    r"(?:(?<=[.!?:;])|(?<=[.!?]\*\*))\s+(?=[A-Z*\[(§\"])|\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.) )|\s\|\s|\|\n"
)
_WORD: Final = re.compile(r"[^\W\d_][\w'-]*")


class ProseCounts(NamedTuple):
    """What a text has."""

    words: int
    odd: list[str]
    long: list[str]
    crowded: list[str]


def check_text(text: str) -> ProseCounts:
    """Count words, odd words, long sentences and crowded paragraphs."""
    plain = _CODE.sub("§", text)
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(plain) if sentence and sentence.strip()]
    long = [sentence for sentence in sentences if len(_WORD.findall(sentence)) > MAX_SENTENCE]
    paragraphs = [
        text for text in re.split(r"\n\s*\n", plain) if not text.lstrip().startswith(("|", "-", "#", "1.", "<"))
    ]
    crowded = [text for text in paragraphs if len(re.findall(r"[.!?](?:\s|$)", text)) > MAX_PARAGRAPH]
    return ProseCounts(len(_WORD.findall(plain)), [match[0].lower() for match in _ODD.finditer(plain)], long, crowded)


def find_pages() -> list[Path]:
    """Return the pages that people write and read."""
    return [
        *(HERE / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
        *sorted((HERE / "docs").rglob("*.md")),
    ]


def find_command_strings() -> Iterator[str]:
    """Yield the strings of the command line that have at least three words."""
    for path in sorted((HERE / "src" / "agent_memory" / "cli").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef) and node.body and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in docstrings:
                continue
            if node.value.count(" ") > 1:
                yield node.value


def main(arguments: list[str]) -> int:
    """Print what is found in these files, or in all pages; return 1 if anything is."""
    status = 0
    for path in [Path(name) for name in arguments] or find_pages():
        counts = check_text(path.read_text(encoding="utf-8"))
        for word in counts.odd:
            print(f"{path}: {word!r}: write {WORDS[word]}")
        for sentence in counts.long:
            print(f"{path}: {len(_WORD.findall(sentence))} words: {' '.join(sentence.split())[:100]}")
        for paragraph in counts.crowded:
            print(f"{path}: paragraph of more than {MAX_PARAGRAPH} sentences: {' '.join(paragraph.split())[:80]}")
        status |= bool(counts.odd or counts.long or counts.crowded)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
