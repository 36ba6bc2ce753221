"""Pairs of records that a person has labelled as one or two, in the form of Ditto's copies of the Magellan sets."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.knowledge.entities import Described

if TYPE_CHECKING:
    from pathlib import Path

SETS: Final = {
    "Fodors-Zagats": ("Structured/Fodors-Zagats", "name"),
    "DBLP-ACM": ("Structured/DBLP-ACM", "title"),
    "Abt-Buy": ("Textual/Abt-Buy", "name"),
    "Amazon-Google": ("Structured/Amazon-Google", "title"),
}
"""Folder, and the column that names a record."""
_ANSWER: Final = "class"
"""A column of Fodors-Zagats: one number for both records of a pair that is one. It is the label, so nobody sees it."""
_COLUMN: Final = re.compile(r"(?:^|\s)COL (\S+) VAL")
_BROKEN_ENTITY: Final = re.compile(r"\s*(&#\d+;)\s*")
_POSSESSIVE: Final = re.compile(r"\s*\\?\s*'s\b")
_QUOTE: Final = re.compile(r"`|(?<!\S)'|'(?!\S)|\\")


class RecordPair(NamedTuple):
    """Two records, by their places in the lists of their sides, and whether they are one."""

    ours: int
    theirs: int
    is_one: bool


@dataclass(frozen=True)
class LabelledSet:
    """One set: the distinct records of both sides, and the pairs that were labelled."""

    name: str
    ours: list[Described]
    theirs: list[Described]
    pairs: list[RecordPair]


def load(folder: Path, name: str, split: str) -> LabelledSet:
    """Read one split of one set.

    Raises:
        OSError: It is not there.
        ValueError: A line is not of that form.
    """
    inside, column = SETS[name]
    sides: tuple[dict[str, int], dict[str, int]] = ({}, {})
    pairs = []
    for line in (folder / inside / f"{split}.txt").read_text(encoding="utf-8").splitlines():
        one, other, label = line.split("\t")
        places = [side.setdefault(text, len(side)) for side, text in zip(sides, (one, other), strict=True)]
        pairs.append(RecordPair(places[0], places[1], label.strip() == "1"))
    ours, theirs = ([_described(text, column) for text in side] for side in sides)
    return LabelledSet(name, ours, theirs, pairs)


def _described(text: str, column: str) -> Described:
    parts = _COLUMN.split(text)
    values = {key: _plain(value) for key, value in zip(parts[1::2], parts[2::2], strict=True)}
    return Described(values.pop(column), "", {key: value for key, value in values.items() if key != _ANSWER})


def _plain(value: str) -> str:
    r"""Undo how the sets were cut into words: `philippe \ 's`, quotes around values, letters as spaced entities."""
    value = _BROKEN_ENTITY.sub(lambda found: html.unescape(found[1]), value)
    return " ".join(_QUOTE.sub(" ", _POSSESSIVE.sub("s", value)).split())
