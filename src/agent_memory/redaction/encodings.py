"""Decoding of invisible letters, lookalikes, escapes, base64 and hex.

Detectors read plain text; a token with a zero-width space in it, `p\u0430ssword` with a Cyrillic letter, `%70%61…` or
base64 would pass them. One level of each is undone here. Finds no secret itself.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import html
import re
import sys
import unicodedata
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.language.characters import PLACED, UNSEEN
from agent_memory.redaction.findings import iter_digit_matches, iter_line_groups, iter_matches, merge_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Letters that look like Latin ones, most common first; after Unicode's confusables (UTS 39).
_LOOKALIKES: Final = dict(
    zip(
        "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051d\u051b\u04bbвкмт"
        "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"
        "\u03b1\u03bf\u03c1\u03bd\u03b9κτ\u03c5ωε\u03c3\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
        "\u0131\u0251\u0261\u1d0fᴛ\u0585\u057d\u04cf",
        "aeopcyxijsdwqhbkmtABEKMHOPCTYXIJSaopviktuweoABEZHIKMNOPTYXiagotosl",
        strict=True,
    )
)
_LOOKALIKE: Final = f"[{''.join(_LOOKALIKES)}]"
_MIXED_WORD: Final = re.compile(rf"(?:[A-Za-z0-9_]{{0,64}}{_LOOKALIKE}){{1,64}}[A-Za-z0-9_]{{0,64}}")
_ODD: Final = re.compile(f"[{UNSEEN}{PLACED}]")
_ESCAPE: Final = re.compile(
    r"(?:%[0-9A-Fa-f]{2})+|(?:\\u[0-9A-Fa-f]{4})+|\\u\{[0-9A-Fa-f]{1,6}\}|(?:\\x[0-9A-Fa-f]{2})+|\\[0-7]{3}|\\[nrt\"'/\\]"
    r"|&(?:#\d{1,6}|#x[0-9A-Fa-f]{1,5}|quot|amp|apos|lt|gt|colon|equals|nbsp);|=3D"
)
_COMPATIBLE: Final = re.compile(r"[^\x00-\x7f][\u0300-\u036f\u3099\u309a]*|[A-Za-z][\u0300-\u036f]+")
_JOINED: Final = re.compile(
    r"""(?x) (?<=[\w/+=-]) (?P<quote>["']) [ \t]{0,4}[+.&]{1,2}[ \t\\]{0,4} \n?[ \t]{0,8} (?P=quote) (?=[\w/+=-])"""
)
_SPACED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?=[\d ._-]{0,40}[A-Za-z])[!-~](?:([ ._-])[!-~])(?:\1[!-~]){2,80}(?![!-~])"
)
_GROUPED: Final = re.compile(r"(?<![\w-])(?:[A-Za-z0-9_]{4}[ ]){4,20}[A-Za-z0-9_]{2,4}(?![\w-])")
_ORDINALS: Final = re.compile(r"(?<![\d.,])(?:\d{2,3},[ ]?){7,511}+\d{2,3}(?![\d.,])")
_BASE32: Final = re.compile(r"(?<![\w+/=])[A-Z2-7]{24,1024}+={0,6}(?![\w+/=])")
_BASE64: Final = re.compile(
    r"(?<![\w+/-])[A-Za-z0-9+/_-]{16,8192}+(?:[ \t]?\r?\n[ \t]{0,8}[A-Za-z0-9+/_-]{16,128}+)*={0,2}(?![\w+/])"
)
_HEX: Final = re.compile(r"(?<![\w])(?:0x)?((?:[0-9A-Fa-f]{2}[ :]?){10,8192})(?![\w])")
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t"}
NEAR: Final = 4_000
"""Characters next to an encoded letter that are read decoded: a private key is shorter."""
_SHORT: Final = 3
_LOOK: Final = 24
_GZIP: Final = "H4sI"
_MAX_UNZIPPED: Final = 65_536
_MIN_DECODED: Final = 8


class DecodedText(NamedTuple):
    """Decoded text with the original position of each character.

    `places` has one more entry than `text`, for the end.
    """

    text: str
    places: list[int]

    def get_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the original that `text[start:end]` came from."""
        return self.places[start], self.places[end]


def _apply_edits(text: str, edits: Iterable[tuple[int, int, str]]) -> DecodedText:
    """Return a text with parts replaced; of parts that overlap, the first."""
    parts: list[str] = []
    places: list[int] = []
    position = 0
    for start, end, plain in edits:
        if start < position:
            continue
        parts += [text[position:start], plain]
        places += range(position, start)
        places += [start] * len(plain)
        position = end
    parts.append(text[position:])
    places += range(position, len(text) + 1)
    return DecodedText("".join(parts), places)


def iter_decoded_regions(text: str) -> Iterator[tuple[int, int, int, DecodedText]]:
    """Yield the regions of a text around its encoded letters, decoded.

    Text far from any of them is the same decoded.

    Yields:
        Place of the region, first and last place in the text at which findings count, and its decoded form.
    """
    edits = sorted(_iter_edits(text))
    for first, last in merge_spans((start - NEAR, end + NEAR) for start, end, _ in edits):
        begin, stop = max(0, first - NEAR), min(len(text), last + NEAR)
        inside = edits[bisect.bisect_left(edits, (begin,)) : bisect.bisect_left(edits, (stop,))]
        moved = ((start - begin, end - begin, plain) for start, end, plain in inside if end <= stop)
        yield begin, first, last, _apply_edits(text[begin:stop], moved)


def iter_encoded_parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and decoded text of base64 and hex."""
    for match in _BASE64.finditer(text):
        if (plain := _decode_base64(match[0])) is not None:
            yield *match.span(), plain
    for match in iter_digit_matches(_HEX, text):
        if any(map(str.isdigit, match[1])):
            digits = re.sub(r"[ :]", "", match[1])[: len(match[1]) // 2 * 2]
            if (plain := _decode_printable(bytes.fromhex(digits))) is not None:
                yield *match.span(), plain
    yield from _iter_more_parts(text)


def _iter_more_parts(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield parts that are base32, or codes of characters in a row."""
    for match in _BASE32.finditer(text):
        letters = match[0].rstrip("=")
        try:
            plain = _decode_printable(base64.b32decode(letters + "=" * (-len(letters) % 8)))
        except binascii.Error:
            continue
        if plain is not None:
            yield *match.span(), plain
    for match in iter_digit_matches(_ORDINALS, text, least=16):
        plain = "".join(map(chr, map(int, match[0].split(","))))
        if plain.isascii() and plain.isprintable():
            yield *match.span(), plain


def _iter_edits(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield parts of a text, each with its decoded form."""
    for start, stop in () if text.isascii() else iter_line_groups(text):
        if not (group := text[start:stop]).isascii():
            yield from ((match.start(), match.end(), "") for match in _ODD.finditer(text, start, stop))
            yield from _iter_lookalikes(text, start, stop)
            if not unicodedata.is_normalized("NFKC", group):
                yield from _iter_compatible(text, start, stop)
    for match in iter_matches(_ESCAPE, ("%", "\\", "&", "=3D"), text):
        yield match.start(), match.end(), _unescape(match[0])
    yield from ((match.start(), match.end(), "") for match in _JOINED.finditer(text))
    for match in _SPACED.finditer(text):
        yield match.start(), match.end(), match[0].replace(match[1], "")
    for match in _GROUPED.finditer(text):
        groups = match[0].split(" ")
        if sum(not (group.isdigit() or group.islower() or group.istitle()) for group in groups) * 2 > len(groups):
            yield match.start(), match.end(), "".join(groups)


def _iter_lookalikes(text: str, first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """Yield lookalike letters in words that are Latin or only lookalikes.

    A whole word of another language has other letters, too.
    """
    for match in _MIXED_WORD.finditer(text, first, last):
        before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        mixed = re.search("[A-Za-z]", match[0]) is not None or len(match[0]) > _SHORT
        if mixed and not (before.isalpha() or after.isalpha()):
            for place in range(match.start(), match.end()):
                if text[place] in _LOOKALIKES:
                    yield place, place + 1, _LOOKALIKES[text[place]]


def _iter_compatible(text: str, first: int, last: int) -> Iterator[tuple[int, int, str]]:
    """Yield letters with another compatibility form, and their marks."""
    for match in _COMPATIBLE.finditer(text, first, last):
        plain = unicodedata.normalize("NFKC", match[0])
        if plain != match[0]:
            yield match.start(), match.end(), plain


def _unescape(escape: str) -> str:
    """Return the text of one run of escapes of the same sort."""
    if escape[0] in "&=":
        return html.unescape(escape) if escape[0] == "&" else "="
    if escape[0] == "%" or escape[1] == "x":
        try:
            return bytes.fromhex(re.sub(r"%|\\x", "", escape)).decode("utf-8")
        except UnicodeDecodeError:  # `%DB_PASS%`
            return escape
    if escape[1] == "u":
        codes = (int(code, 16) for code in re.findall(r"[0-9A-Fa-f]+", escape.replace("\\u", " ")))
        units = "".join(chr(code) for code in codes if code <= sys.maxunicode)
        return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return chr(int(escape[1:], 8)) if escape[1].isdigit() else _LETTERS.get(escape[1], escape[1])


def _decode_base64(text: str) -> str | None:
    if text.startswith(_GZIP):
        return _unzip(text)
    # Some bytes are checked first, since most long words are not base64 of text.
    if _read_base64(text[: _LOOK if len(text) >= _LOOK else 16]) is None:
        return None
    letters = re.sub(r"\s", "", text).rstrip("=")
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    return _read_base64(letters + "=" * (-len(letters) % 4))


def _unzip(text: str) -> str | None:
    try:
        data = base64.urlsafe_b64decode(re.sub(r"[\s=]", "", text) + "==")
        return _decode_printable(zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, _MAX_UNZIPPED))
    except (binascii.Error, zlib.error):
        return None


def _read_base64(text: str) -> str | None:
    try:
        return _decode_printable(base64.urlsafe_b64decode(text))  # reads the other alphabet as well
    except binascii.Error:
        return None


def _decode_printable(data: bytes) -> str | None:
    """Return bytes as UTF-8 or UTF-16 text, None for others."""
    if data[1::2] and data[1::2].count(0) == len(data[1::2]):
        data = data[::2]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    shown = sum(letter.isprintable() or letter in "\r\n\t" for letter in text)
    return text if len(text) >= _MIN_DECODED and shown >= 0.97 * len(text) else None
