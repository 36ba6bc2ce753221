"""Secrets of a text by all detectors, except public random-looking values.

Public values are ARNs, certificates, digests and the like. Each is parsed whole: a span is public only if every part of
it is allowed by its format. Forms of providers and embedded texts are searched before, and nothing exempts them.
"""

from __future__ import annotations

import bisect
import itertools
import re
from typing import TYPE_CHECKING, Final

from agent_memory.language.languages import load_patterns
from agent_memory.redaction.contexts import find_by_context, find_numbers, is_pair
from agent_memory.redaction.encodings import NEAR, iter_decoded_regions, iter_encoded_parts
from agent_memory.redaction.findings import SecretFinding, merge_spans
from agent_memory.redaction.keywords import find_keyword_secrets
from agent_memory.redaction.providers import find_provider_secrets, find_published, find_random_tokens
from agent_memory.redaction.shapes import UUID, decode_base64, is_ssh_public_key
from agent_memory.redaction.unlabelled import SecretLevel, find_unlabelled, judge_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MIN_CHARS: Final = 6
"""Characters of a text in which a detector can find anything: a secret has three after a keyword."""
_RESOURCE_ID: Final = re.compile(r"[0-9a-f]{8,64}|[A-Z0-9]{10,21}")
_SUFFIX: Final = re.compile(r"-[A-Za-z0-9]{6}\Z")
"""What Secrets Manager appends to a name."""
_MAGIC: Final[dict[str, tuple[bytes, ...]]] = {
    "image": (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM", b"II*\0", b"MM\0*", b"\0\0\1\0"),
    "font": (b"wOFF", b"wOF2", b"\0\1\0\0", b"OTTO", b"true"),
    "audio": (b"ID3", b"\xff\xfb", b"\xff\xf3", b"OggS", b"RIFF", b"fLaC"),
    "video": (b"\x1aE\xdf\xa3", b"OggS", b"\0\0\1"),
    "application": (b"%PDF-", b"\0asm", b"wOFF", b"wOF2", b"\0\1\0\0"),
}
"""First bytes of files by type: many pictures carry the name of another format of pictures."""
_BOX: Final = b"ftyp"
"""After the size of the first box of MP4, AVIF and HEIC."""
_MIN_BODY: Final = 160
"""Characters of a certificate whose lines are even; a shorter block has to be DER."""
_SEQUENCE: Final = 0x30
_SIZED_SEQUENCE: Final = rb"\x30(?:[\x00-\x7f]|\x81.|\x82..)"
_PUBLIC_DER: Final = re.compile(
    rb"(?s)"
    + _SIZED_SEQUENCE * 2
    + rb"(?:\xa0\x03\x02\x01|\x06\x07\x2a\x86|\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01)"
)
"""The version of a certificate, or the algorithm of an elliptic or RSA public key."""
_SIZES: Final = {"sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}
"""Bytes of a digest; the `h1:` of a Go module is a SHA-256."""


def find_secrets(text: str) -> list[SecretFinding]:
    """Find secrets in a text and in its decoded form."""
    if len(text) < _MIN_CHARS:
        return []
    findings = _find_with_encoded(text)
    for begin, first, last, view in iter_decoded_regions(text):
        for finding in _find_with_encoded(view.text):
            start, end = view.get_span(finding.start, finding.end)
            if begin + end > first and begin + start < last:
                findings.append(SecretFinding(begin + start, begin + end, finding.kind))
    return findings


def find_secrets_around(text: str, markers: list[tuple[int, int]]) -> list[SecretFinding]:
    """Find secrets around markers, since the rest was searched before.

    A part reaches from one empty line to another, so that a table in it is whole.
    """
    if len(text) <= 4 * NEAR:
        return find_secrets(text)
    findings: list[SecretFinding] = []
    regions = merge_spans((start - NEAR, end + NEAR) for start, end in markers)
    for first, last in merge_spans(_widen_to_empty_lines(text, start, end) for start, end in regions):
        begin = max(0, first - NEAR)
        for start, end, kind in find_secrets(text[begin : last + NEAR]):
            if begin + end > first and begin + start < last:
                findings.append(SecretFinding(begin + start, begin + end, kind))
    return findings


def _widen_to_empty_lines(text: str, first: int, last: int) -> tuple[int, int]:
    start = text.rfind("\n\n", 0, max(0, first))
    end = text.find("\n\n", last)
    return max(0, start), len(text) if end < 0 else end


def _find_with_encoded(text: str) -> list[SecretFinding]:
    """Find secrets in a text, and its encoded parts that hold one.

    Known forms and secrets in encoded parts always count. A guess inside a public value does not count.
    """
    findings = find_known_forms(text)
    for start, end, data in read_embedded_files(text):
        findings += [SecretFinding(start, end, finding.kind) for finding in find_known_forms(data)[:1]]
    for start, end, plain in iter_encoded_parts(text):
        if is_pair(plain):
            findings.append(SecretFinding(start, end, "password"))
            continue
        inner = find_known_forms(plain) or _find_guessed(plain)
        findings += [SecretFinding(start, end, finding.kind) for finding in inner[:1]]
    return findings + _find_guessed(text)


def has_known_form(text: str) -> bool:
    """Return True if a text has a secret of a known form."""
    return bool(find_known_forms(text))


def find_known_forms(text: str) -> list[SecretFinding]:
    """Find secrets by the forms of providers."""
    return [*find_provider_secrets(text), *find_published(text)]


def _find_guessed(text: str) -> list[SecretFinding]:
    """Find secrets by label and form, except in public values."""
    detectors = find_keyword_secrets, find_by_context, find_numbers, find_random_tokens, find_unlabelled
    findings = [finding for detect in detectors for finding in detect(text)]
    if not findings:
        return findings
    public = sorted(find_public_spans(text))
    starts = [start for start, _ in public]
    ends = [0, *itertools.accumulate((end for _, end in public), max)]
    return [finding for finding in findings if ends[bisect.bisect_right(starts, finding.start)] < finding.end]


def find_public_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each public value in `text`."""
    for start, pattern, is_public in _PUBLIC:
        for match in pattern.finditer(text) if start in text else ():
            if is_public(match):
                yield match.span()


def read_embedded_files(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and bytes (as Latin-1) of each data URI."""
    for match in _EMBEDDED.finditer(text) if ";base64," in text else ():
        if (data := decode_base64(match["body"])) is not None:
            yield *match.span("body"), data.decode("latin-1")


def _is_resource(resource: str) -> bool:
    """Return True if all parts of a resource are names or IDs."""
    return all(
        UUID.fullmatch(part) or _RESOURCE_ID.fullmatch(part) or judge_token(_SUFFIX.sub("", part)) <= SecretLevel.NAMED
        for part in re.split("[:/]", resource.rstrip(".:"))
    )


def _is_file(media_type: str, body: str) -> bool:
    """Return True if a body is text, or begins as its type."""
    data = decode_base64(body)
    if data is None:
        return False
    kind, _, subtype = media_type.partition("/")
    if not media_type or kind == "text" or subtype.endswith(("json", "xml", "yaml", "javascript")):
        return _is_text(data)
    return (data.startswith(_MAGIC.get(kind, ())) or data[4:8] == _BOX) and not _is_text(data)


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return False
    return all(letter.isprintable() or letter in "\r\n\t\f" for letter in text)


def _is_published(body: str) -> bool:
    """Return True if a PEM body is DER or equal-length byte lines."""
    *lines, last = re.split(r"(?:\s|\\n)+", body.strip().removeprefix("\\n"))
    joined = "".join((*lines, last.rstrip("=")))
    data = decode_base64(joined)
    if data is None or _is_text(data) or any("=" in line or len(line) != len(lines[0]) for line in lines[1:]):
        return False
    return (data[0] == _SEQUENCE and len(lines) > 0) or _is_certificate(data) or len(joined) >= _MIN_BODY


def _is_certificate(data: bytes | None) -> bool:
    """Return True if DER begins as a certificate or public key.

    A private key begins with its version instead.
    """
    return data is not None and _PUBLIC_DER.match(data) is not None


def _is_digest(match: re.Match[str]) -> bool:
    data = decode_base64(match["digest"])
    return data is not None and len(data) == _SIZES.get((match["size"] or match["sized"] or "sha256").lower())


_CHECKS: Final[dict[str, Callable[[re.Match[str]], bool]]] = {
    "certificate": lambda match: _is_certificate(decode_base64(match[0])),
    "digest": _is_digest,
    "file": lambda match: _is_file(match["type"] or "", match["body"]),
    "published": lambda match: _is_published(match["body"]),
    "path": lambda match: _is_resource(match["path"]),
    "ssh": lambda match: is_ssh_public_key(match[0]),
}
_PUBLIC: Final = tuple(
    (value["start"], re.compile(value["pattern"]), _CHECKS[value["check"]] if "check" in value else lambda _: True)
    for value in load_patterns("agent_memory.redaction", "public")["public"]
)
_EMBEDDED: Final = next(pattern for start, pattern, _ in _PUBLIC if start == ";base64,")
