"""Word differences of two texts, for two cards side by side."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final, TypedDict

_TOKEN: Final = re.compile(r"\w+|\s+|[^\w\s]")
_MAX_TOKENS: Final = 3_000
"""Words and signs of a text; more are compared as one, since the comparison takes their product."""


class TextSpan(TypedDict):
    """Part of a text; `differs` if the other text has another one."""

    text: str
    differs: bool


def compare_words(before: str, after: str) -> tuple[list[TextSpan], list[TextSpan]]:
    """Return the spans of both texts in their order."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    if max(len(old), len(new)) > _MAX_TOKENS:
        old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    spans: tuple[list[TextSpan], list[TextSpan]] = ([], [])
    for operation, *bounds in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        parts = "".join(old[bounds[0] : bounds[1]]), "".join(new[bounds[2] : bounds[3]])
        for side, text in zip(spans, parts, strict=True):
            if text:
                side.append(TextSpan(text=text, differs=operation != "equal"))
    return spans
