"""Labelled sentences for training: two open corpora of social media, read and cut into words as texts are in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.entities.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_KINDS: Final = {"PER": "person", "LOC": "location", "ORG": "group"}
_PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text and where its names stand: start, end, kind as the corpus has it."""

    text: str
    names: tuple[tuple[int, int, str], ...]


def wnut(path: Path) -> list[Sentence]:
    """Return the sentences of a file of emerging_entities_17."""
    return [_joined(rows) for rows in _rows(path)]


def broad_twitter(folder: Path) -> list[Sentence]:
    """Return all sections of the Broad Twitter Corpus; whom a tweet is addressed to is no name, as in the other."""
    return [_joined(_handles(rows)) for name in "abefgh" for rows in _rows(folder / f"{name}.conll")]


def labelled(sentence: Sentence) -> tuple[list[str], list[str]]:
    """Return the words of a sentence and the label of each; a name counts where its first and last words are whole."""
    tokens = tokens_of(sentence.text)
    labels = ["O"] * len(tokens)
    for start, end, _ in sentence.names:
        inside = [at for at, token in enumerate(tokens) if token.start < end and token.end > start]
        if inside:
            labels[inside[0] : inside[-1] + 1] = ["B"] + ["I"] * (len(inside) - 1)
    return [token.word for token in tokens], labels


def _rows(path: Path) -> list[list[tuple[str, str]]]:
    sentences: list[list[tuple[str, str]]] = [[]]
    for line in path.read_text(encoding="utf-8").split("\n"):
        parts = line.strip().split("\t")
        if len(parts) < _PAIR:
            sentences.append([])
        elif parts[0].strip():
            sentences[-1].append((parts[0].strip(), parts[-1].strip()))
    return [rows for rows in sentences if rows]


def _handles(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Join `@` and `#` to the word behind them."""
    found: list[tuple[str, str]] = []
    after = ""
    for word, label in rows:
        if word in {"@", "#"}:
            after = word
        elif after:
            found.append((after + word, "O"))
            after = ""
        elif label.startswith("I-") and found and found[-1][1] == "O":
            found.append((word, "O"))
        else:
            found.append((word, label[:2] + _KINDS.get(label[2:], label[2:])))
    return found


def _joined(rows: Iterable[tuple[str, str]]) -> Sentence:
    text = ""
    names: list[tuple[int, int, str]] = []
    for word, label in rows:
        start = len(text) + bool(text)
        text = f"{text} {word}" if text else word
        if label.startswith("I-") and names and names[-1][1] == start - 1:
            names[-1] = (names[-1][0], len(text), names[-1][2])
        elif label != "O":
            names.append((start, len(text), label[2:]))
    return Sentence(text, tuple(names))
