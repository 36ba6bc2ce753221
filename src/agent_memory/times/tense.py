"""Tense of the words around a date: past, future or unknown."""

from __future__ import annotations

import re
import sys
from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final

_AHEAD: Final = {
    "en": r"\b(?:will|won['\u2019]t|shall|can|can['\u2019]t|could\s+(?:you|we|i)|might|should|must|going\s+to|gonna"
    r"|let['\u2019]s|please|would|plans?\s+to|see\s+you|(?:scheduled|planned|expected)\s+(?:for|on|by)|arrange|remind|schedule|available|due|deadline|eod|cob"
    r"|end\s+of\s+day|close\s+of\s+business)\b|['\u2019]ll\b"
    r"|\bto\s+(?!(?:the|an?|my|our|his|her|their|its?|this|that|us|me|him|them|you)\b)(?-i:[a-z]{2,20})\b",
    "de": r"\b(?:werde|wirst|wird|werden|werdet)\b",
    "es": r"\b(?:voy|vas|va|vamos|van)\s+a\b",
    "fr": r"\b(?:vais|vas|va|allons|allez|vont)\s+\w{1,20}(?:er|ir|re)\b",
}
_PAST: Final = {
    "en": r"\b(?:was|were|wasn['\u2019]t|weren['\u2019]t|did|didn['\u2019]t|had|hadn['\u2019]t|been|has|ago|yesterday"
    r"|began|bought|broke|brought|built|came|chose|drank|drove|ate|fell|felt|flew|forgot|found|gave|got|grew|heard|held"
    r"|kept|knew|left|lost|made|met|paid|ran|said|sat|saw|sent|slept|sold|spent|spoke|stood|taught|thought|told|took"
    r"|went|won|wrote)\b"
    r"|(?<!\bbe )(?<!\bare )(?<!\bis )(?<!\bbeing )(?<!['\u2019]s )(?<!['\u2019]re )(?<!\bget )(?<!\bthe )"
    r"\b[a-z]{2,20}[^\We]ed\b",
    "de": r"\b(?:war|warst|waren|hatte|hatten|wurde|wurden|gestern)\b",
    "es": r"\b(?:fue|fui|fueron|era|eran|estaba|estuvo|hubo|había|ayer|\w{2,20}(?:ó|aron|ieron))\b",
    "fr": r"\b(?:était|étaient|étions|avait|avaient|fut|hier)\b",
}
"""Verbs of closed classes, infinitives, frequent irregular pasts, and endings of regular pasts."""
_CUES: Final = {
    language: re.compile(rf"(?P<ahead>{ahead})|(?P<past>{_PAST[language]})", re.IGNORECASE)
    for language, ahead in _AHEAD.items()
}
_SENTENCE_END: Final = re.compile(r"[.!?;](?=\s{1,9}[^\Wa-z\d_]|\s{0,9}$)|\n")
CLAUSE_END: Final = re.compile(
    r",|\b(?:and|but|because|that|which|who|when|while|und|aber|weil|dass|y|pero|que|et|mais)\b", re.IGNORECASE
)


class TenseReader:
    """Tense at each place of a text.

    The verbs of the sentence decide, on either side of the date. If they differ, those of the date's own clause do; if
    these differ as well, or no verb exists, the tense is unknown.

    Args:
        text: Text to read.
        language: Such as "en".
    """

    def __init__(self, text: str, language: str) -> None:
        cues = [*_CUES.get(language, _CUES["en"]).finditer(text)]
        self._places = [cue.start() for cue in cues]
        self._ahead = [0, *accumulate(cue["ahead"] is not None for cue in cues)]
        self._sentences = [match.end() for match in _SENTENCE_END.finditer(text)] if cues else []
        self._clauses = [match.end() for match in CLAUSE_END.finditer(text)] if cues else []

    def is_ahead(self, place: int) -> bool | None:
        """Return True for the future, False for the past, None if unknown."""
        if not self._places:
            return None
        start, end = _find_span(self._sentences, place)
        clause = _find_span(self._clauses, place)
        tense = self._find_tense(start, end)
        return self._find_tense(max(start, clause[0]), min(end, clause[1])) if tense is None else tense

    def _find_tense(self, start: int, end: int) -> bool | None:
        first, last = bisect_left(self._places, start), bisect_left(self._places, end)
        ahead = self._ahead[last] - self._ahead[first]
        return None if first == last or 0 < ahead < last - first else ahead > 0


def _find_span(ends: list[int], place: int) -> tuple[int, int]:
    """Return the span between two ends around a place."""
    number = bisect_right(ends, place)
    return ends[number - 1] if number else 0, ends[number] if number < len(ends) else sys.maxsize
