"""Redactors: all detectors, one pass after another until none finds anything."""

from __future__ import annotations

import bisect
import hashlib
import itertools
from typing import TYPE_CHECKING, Final

from agent_memory.redaction.findings import MARKER, MARKER_PREFIX, Redaction, Redactor, SecretFinding

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_PASSES: Final = 8


class SecretRedactor:
    """Takes secrets out of text.

    Stateless, safe to share between threads. Linear in the length of the text; about 1 ms of CPU per 1,000 characters.
    The first call compiles the patterns (30 ms); nothing is verified over a network.
    """

    def redact(self, text: str) -> Redaction:
        """Return `text` with each secret replaced by `[redacted:<kind>]`, and the kinds found.

        Idempotent: passes are repeated until one finds nothing, since a replacement can bring a keyword next to a
        second secret.
        """
        from agent_memory.redaction.detection import find_secrets, find_secrets_around  # 30 ms for its patterns

        kinds: dict[str, None] = {}
        spans = _drop_exempt(text, _merge_findings(text, find_secrets(text)))
        for _ in range(_MAX_PASSES):
            if not spans:
                break
            kinds.update(dict.fromkeys(finding.kind for finding in spans))
            text, markers = _replace_spans(text, spans)
            spans = _drop_exempt(text, _merge_findings(text, find_secrets_around(text, markers)))
        return Redaction(text, tuple(kinds))


def list_guesses(text: str) -> list[str]:
    """Return the parts of a text that are only guessed secrets."""
    from agent_memory.redaction.detection import find_known_forms, find_secrets

    forms = find_known_forms(text)
    spans = _drop_exempt(text, _merge_findings(text, find_secrets(text)))
    return [
        text[start:end] for start, end, _ in spans if not any(item.start < end and start < item.end for item in forms)
    ]


def _drop_exempt(text: str, spans: list[SecretFinding]) -> list[SecretFinding]:
    return [finding for finding in spans if not is_exempt(text[finding.start : finding.end])]


def _merge_findings(text: str, findings: Iterable[SecretFinding]) -> list[SecretFinding]:
    """Join overlapping findings, and drop those inside markers.

    The earliest, then the longest finding names the kind.
    """
    markers = [match.span() for match in MARKER.finditer(text)] if MARKER_PREFIX in text else []
    ends = [end for _, end in markers]
    merged: list[SecretFinding] = []
    for first, last, kind in sorted(findings, key=lambda f: (f.start, -f.end)):
        start, end = first, last
        for marker_start, marker_end in itertools.islice(markers, bisect.bisect_right(ends, start), None):
            if marker_start >= end:
                break
            if start < marker_end:
                start, end = _cut_marker(start, end, marker_start, marker_end)
        if start >= end:
            continue
        if merged and start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(end, merged[-1].end))
        else:
            merged.append(SecretFinding(start, end, kind))
    return merged


def _cut_marker(start: int, end: int, marker_start: int, marker_end: int) -> tuple[int, int]:
    """Return a span without the marker that it touches.

    It is empty if nothing else is in it.
    """
    if start < marker_start and end > marker_end:
        return start, end
    if start < marker_start:
        return start, marker_start
    return (marker_end, end) if end > marker_end else (start, start)


def _replace_spans(text: str, spans: list[SecretFinding]) -> tuple[str, list[tuple[int, int]]]:
    """Return the text with markers for spans, and their places."""
    parts: list[str] = []
    markers: list[tuple[int, int]] = []
    position = length = 0
    for start, end, kind in spans:
        marker = f"{MARKER_PREFIX}{kind}]"
        parts += [text[position:start], marker]
        length += start - position + len(marker)
        markers.append((length - len(marker), length))
        position = end
    return "".join([*parts, text[position:]]), markers


_SHORT: Final = 80
"""Characters of a text that is cached, since longer ones rarely occur twice."""


class RepeatedRedactor:
    """Redactor that caches the short texts of one change.

    Args:
        redactor: Reads each text the first time.

    Attributes:
        bare_words: True by word of a label if it is a secret.
    """

    def __init__(self, redactor: Redactor) -> None:
        self._redactor, self._known = redactor, dict[str, "Redaction"]()
        self.bare_words = dict[str, bool]()

    def redact(self, text: str) -> Redaction:
        """See `Redactor.redact`."""
        if len(text) > _SHORT:
            return self._redactor.redact(text)
        redacted = self._known.get(text)
        if redacted is None:
            redacted = self._known[text] = self._redactor.redact(text)
        return redacted


_exempt_hashes: set[str] = set()


def exempt(hashes: Iterable[str]) -> None:
    """Leave texts with these hashes as they are, in this process."""
    _exempt_hashes.update(hashes)


def is_exempt(text: str) -> bool:
    """Return True if a person exempted a text."""
    return bool(_exempt_hashes) and hash_guess(text) in _exempt_hashes


def hash_guess(text: str) -> str:
    """Return the hexadecimal SHA-256 of a text.

    Not keyed: each reader of the hash can read the text, which was stored as no secret.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
