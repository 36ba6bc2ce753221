"""Labelled sentences in many languages: a token and its `B-`, `I-` or `O` a line, as WikiNEuRal and UNER have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_TEXT: Final = "# text = "
_KINDS: Final = {"PER": "person", "LOC": "place", "ORG": "organisation"}


def sentences(path: Path, most: int) -> list[tuple[str, list[tuple[int, int, str]]]]:
    """Return the first sentences of a file and the names in each: start, end, kind.

    Args:
        path: Lines `number TAB token TAB label …`, an empty line behind each sentence; `# text = …` has its text, and
            without that the tokens are joined by spaces.
        most: How many are read.
    """
    found = []
    for text, rows in _blocks(path):
        if rows:
            found.append(_placed(text, rows))
        if len(found) == most:
            break
    return found


def _blocks(path: Path) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    text, rows = "", list[tuple[str, str]]()
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        parts = line.split("\t")
        if line.startswith(_TEXT):
            text = line.removeprefix(_TEXT)
        elif len(parts) > 2 and parts[0].isdigit():
            rows.append((parts[1], parts[2]))
        elif not line.strip():
            yield text, rows
            text, rows = "", []


def _placed(text: str, rows: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[int, int, str]]]:
    places, at = list[tuple[int, int]](), 0
    for token, _ in rows:
        start = text.find(token, at)
        if not text or start < 0:  # words that the text draws together, as `am` for `an dem`
            return _placed(" ".join(token for token, _ in rows), rows)
        at = start + len(token)
        places.append((start, at))
    names: list[tuple[int, int, str]] = []
    was = "O"
    for (start, end), (_, label) in zip(places, rows, strict=True):
        if label.startswith("I-") and was != "O" and names:
            names[-1] = (names[-1][0], end, names[-1][2])
        elif label[:2] in {"B-", "I-"}:
            names.append((start, end, _KINDS.get(label[2:], "other")))
        was = label
    return text, names
