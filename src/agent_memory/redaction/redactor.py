"""`SecretRedactor`: all detectors, one pass after another until nothing is left to find. Holds no pattern itself."""

from __future__ import annotations

import bisect
import functools
import itertools
from typing import TYPE_CHECKING, Final

from agent_memory.redaction.findings import MARKER, MARKER_PREFIX, Finding, Redaction, merge_spans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agent_memory.redaction.findings import Redactor

_MAX_PASSES: Final = 8
# Below this no detector can find anything: the shortest secret we look for has three characters after a keyword.
_MIN_CHARS: Final = 6


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
        kinds: dict[str, None] = {}
        spans = _merge(text, _find(text))
        for _ in range(_MAX_PASSES):
            if not spans:
                break
            kinds.update(dict.fromkeys(finding.kind for finding in spans))
            text, markers = _replace(text, spans)
            spans = _merge(text, _find_around(text, markers))
        return Redaction(text, tuple(kinds))


def _find(text: str) -> list[Finding]:
    """Return what is found in `text` as it stands and in its decoded form."""
    if len(text) < _MIN_CHARS:
        return []
    from agent_memory.redaction.decoding import iter_decoded_regions

    found = _with_encoded(text)
    for begin, first, last, view in iter_decoded_regions(text):
        for finding in _with_encoded(view.text):
            start, end = view.span(finding.start, finding.end)
            if begin + end > first and begin + start < last:
                found.append(Finding(begin + start, begin + end, finding.kind))
    return found


def _find_around(text: str, markers: list[tuple[int, int]]) -> list[Finding]:
    """Return findings around markers.

    The rest of the text was searched before. A part reaches from one empty line to another, so that a table in it is
    whole.
    """
    from agent_memory.redaction.decoding import NEAR

    if len(text) <= 4 * NEAR:
        return _find(text)
    findings: list[Finding] = []
    regions = merge_spans((start - NEAR, end + NEAR) for start, end in markers)
    for first, last in merge_spans(_find_part(text, start, end) for start, end in regions):
        begin = max(0, first - NEAR)
        for start, end, kind in _find(text[begin : last + NEAR]):
            if begin + end > first and begin + start < last:
                findings.append(Finding(begin + start, begin + end, kind))
    return findings


def _find_part(text: str, first: int, last: int) -> tuple[int, int]:
    """Return a span widened to empty lines."""
    start = text.rfind("\n\n", 0, max(0, first))
    end = text.find("\n\n", last)
    return max(0, start), len(text) if end < 0 else end


def _with_encoded(text: str) -> list[Finding]:
    """Return findings in `text`, and its encoded parts that hold one.

    Known forms and secrets in encoded parts always count. What is only guessed does not count inside a public value.
    """
    from agent_memory.redaction.contexts import is_pair
    from agent_memory.redaction.decoding import encoded_parts
    from agent_memory.redaction.exemptions import read_embedded_files

    findings = _find_known(text)
    for start, end, data in read_embedded_files(text):
        findings += [Finding(start, end, finding.kind) for finding in _find_known(data)[:1]]
    for start, end, plain in encoded_parts(text):
        if is_pair(plain):
            findings.append(Finding(start, end, "password"))
            continue
        inner = _find_known(plain) or _find_guessed(plain)
        findings += [Finding(start, end, finding.kind) for finding in inner[:1]]
    return findings + _find_guessed(text)


def has_known_form(text: str) -> bool:
    """Return True if a text has a secret of a known form."""
    return bool(_find_known(text))


def _find_known(text: str) -> list[Finding]:
    return [finding for detect in _known_detectors() for finding in detect(text)]


def _find_guessed(text: str) -> list[Finding]:
    """Find secrets by label and form, except in public values."""
    findings = [finding for detect in _guessing_detectors() for finding in detect(text)]
    if not findings:
        return findings
    from agent_memory.redaction.exemptions import find_public_spans

    public = sorted(find_public_spans(text))
    starts = [start for start, _ in public]
    ends = [0, *itertools.accumulate((end for _, end in public), max)]
    return [finding for finding in findings if ends[bisect.bisect_right(starts, finding.start)] < finding.end]


@functools.cache
def _known_detectors() -> tuple[Callable[[str], Iterable[Finding]], ...]:
    """Load the forms of providers at the first text (30 ms)."""
    from agent_memory.redaction.providers import find_provider_secrets, find_published

    return find_provider_secrets, find_published


@functools.cache
def _guessing_detectors() -> tuple[Callable[[str], Iterable[Finding]], ...]:
    from agent_memory.redaction.contexts import find_by_context, find_numbers
    from agent_memory.redaction.keywords import find_keyword_secrets
    from agent_memory.redaction.providers import find_random_tokens
    from agent_memory.redaction.unlabelled import find_unlabelled

    return find_keyword_secrets, find_by_context, find_numbers, find_random_tokens, find_unlabelled


def _merge(text: str, findings: Iterable[Finding]) -> list[Finding]:
    """Join overlapping findings (the earliest, then longest, names the kind); drop those that lie in a marker."""
    markers = [match.span() for match in MARKER.finditer(text)] if MARKER_PREFIX in text else []
    ends = [end for _, end in markers]
    merged: list[Finding] = []
    for first, last, kind in sorted(findings, key=lambda f: (f.start, -f.end)):
        start, end = first, last
        for marker_start, marker_end in itertools.islice(markers, bisect.bisect_right(ends, start), None):
            if marker_start >= end:
                break
            if start < marker_end:
                start, end = _around(start, end, marker_start, marker_end)
        if start >= end:
            continue
        if merged and start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(end, merged[-1].end))
        else:
            merged.append(Finding(start, end, kind))
    return merged


def _around(start: int, end: int, marker_start: int, marker_end: int) -> tuple[int, int]:
    """Return the span without the marker it touches; empty when nothing but the marker (or its parts) is in it."""
    if start < marker_start and end > marker_end:
        return start, end
    if start < marker_start:
        return start, marker_start
    return (marker_end, end) if end > marker_end else (start, start)


def _replace(text: str, spans: list[Finding]) -> tuple[str, list[tuple[int, int]]]:
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
"""Characters of a text that is remembered; longer ones rarely come twice."""


class RepeatedRedactor:
    """A redactor that remembers the short texts of one change.

    Args:
        redactor: Reads each text the first time.

    Attributes:
        bare_words: Whether a word of a label is a secret, by word.
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
