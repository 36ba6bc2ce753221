"""Answers that a model can take in: rows and texts up to a bound, and where to read on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_CHARS: Final = 40_000
"""Characters of one answer, as of the tools for memories: about 10,000 tokens."""
EXCERPT_CHARS: Final = 500
"""Characters of each text in a list of whole rows."""


def of_row(row: dict[str, Any], begin: int = 0) -> dict[str, Any]:
    """Return `row` with its long texts cut so that all of it has `MAX_CHARS` characters, and `cut`: where to read on.

    Args:
        row: Column → value. A list or an object that has to be cut becomes a text, its JSON.
        begin: Texts begin at this character.
    """
    texts = {name: text for name, value in row.items() if (text := _text(value)) is not None}
    shown, cut = dict(row), {}
    left = MAX_CHARS
    for number, name in enumerate(sorted(texts, key=lambda each: len(texts[each]))):
        text = texts[name]
        part = text[begin : begin + left // (len(texts) - number)]
        left -= len(part)
        if begin or len(part) < len(text):
            shown[name] = part
        if begin + len(part) < len(text):
            cut[name] = {"characters": len(text), "next": begin + len(part)}
    return {"row": shown, **({"cut": cut} if cut else {})}


def of_rows(rows: Sequence[dict[str, Any]], *, is_whole: bool) -> dict[str, Any]:
    """Return `count` and `rows`, as many from the beginning as have `MAX_CHARS` characters together, at least one.

    Args:
        rows: The rows.
        is_whole: No columns were chosen: of each text only the beginning is shown. `cut` names such columns.
    """
    shown: list[dict[str, Any]] = []
    cut: set[str] = set()
    used = 0
    for row in rows:
        short, now_cut = _excerpt(row) if is_whole else (row, set[str]())
        size = len(json.dumps(short, ensure_ascii=False))
        if shown and used + size > MAX_CHARS:
            break
        if size > MAX_CHARS:
            bounded = of_row(short)
            short, now_cut = bounded["row"], now_cut | set(bounded.get("cut", ()))
        shown.append(short)
        cut |= now_cut
        used += size
    return {"count": len(shown), "rows": shown, **({"cut": sorted(cut)} if cut else {})}


def _excerpt(row: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    long = {name: text for name, value in row.items() if len(text := _text(value) or "") > EXCERPT_CHARS}
    return {**row, **{name: f"{text[:EXCERPT_CHARS]}…" for name, text in long.items()}}, set(long)


def _text(value: Any) -> str | None:
    """Return the characters of a value that may be long."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else None
