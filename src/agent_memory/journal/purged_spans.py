"""`PurgedSpans`: signatures of purged words, which only the key can match.

The words of each text are counted and signed: the first 16 bytes of their HMAC-SHA256 (RFC 2104) under the key, in
spans of 40 words for a long text. Another text has them where as many of its words in a row have the same signature.
Without the key, no words can be tested against the signatures.

Texts are compared in one form: Unicode's NFKD and case folding, without combining marks, quotation marks and invisible
characters, with single spaces, and with the escapes of JSON, YAML and Markdown resolved.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import math
import struct
import sys
import unicodedata
from collections import defaultdict
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, Final

from agent_memory.late import compile_late
from agent_memory.models import CHOSEN_NAMES

if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

BAR: Final = "\u2588"
"""Replaces each unreadable character, so that offsets in a text stay."""
_BARS: Final = compile_late(f"{BAR}+")
_NAME: Final = compile_late(r"[a-z][a-z0-9_]*")
"""Form of declared values, such as an entity's type: another value would not validate."""
_WORDS: Final = frozenset({"content", "body", "name", "title", "tags", "aliases", "metadata", "attributes", "blob"})
"""Fields in which a name is an ordinary word."""
_SIZED: Final = frozenset({"metadata", "attributes"})
"""Fields whose size in bytes is limited."""
_SPAN_WORDS: Final = 40
"""Words per span."""
_BYTES: Final = 16
_UNSPACED: Final = "\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts in which each character counts as a word."""
_WORD: Final = compile_late(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+")
_LEAST: Final = 12
"""Columns of a text; wide letters, such as Chinese, take two. A shorter text matches by chance."""
_LEFT_OUT: Final = frozenset("\\'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u2032\u2033")
"""Characters that JSON, YAML and Markdown add or double in a text, with typographic variants."""
_ESCAPE: Final = compile_late(
    r"(?<!\\)\\++(?:u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\+u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"  # JSON, two halves
    r"|u(?P<four>[0-9a-fA-F]{4})|x(?P<two>[0-9a-fA-F]{2})|U(?P<eight>[0-9a-fA-F]{8})"  # JSON, YAML
    r"|(?P<space>[nrtNLP_]))"  # white space in JSON and YAML
    r"|(?P<reference>&(?:#[xX][0-9a-fA-F]{1,6}|#\d{1,7}|amp|lt|gt|quot|apos|nbsp);)"  # HTML, Markdown
    r"|(?P<line>\n[ \t]*(?:[>|][-+]?[ \t]*)+)"  # a quotation of Markdown, a block of YAML
)
_SPACES: Final = compile_late(" {2,}")
_UNSEEN: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Cs"})
"""Unicode categories of combining marks, control characters and surrogates."""
SUM: Final = (1 << 24) - 1
_MOST_WORDS: Final = 1 << 18
_PLACES: Final = 16
"""Places in a word; the numbers repeat after them."""
_LOW: Final = 1 << 16
_AT_ONCE: Final = 1_000
"""Texts per batch, so that the arrays fit the processor's cache."""
_LOWER: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b"abcdefghijklmnopqrstuvwxyz")
_DROPPED_BYTES: Final = b"'\"`\\"
"""ASCII characters that comparison ignores."""
_IN_WORDS: Final = b"abcdefghijklmnopqrstuvwxyz0123456789_"
_BEYOND: Final = compile_late(rb"[^\n -~]|\\[^nrt\"\\]|\\\\[uxULNP_]|&(?:#|amp;|lt;|gt;|quot;|apos;|nbsp;)")
"""Finds content that cannot be compared as ASCII words."""
_ESCAPED_SPACES: Final = (b"\\n", b"\\r", b"\\t")


class PurgedSpans:
    """Matcher of signed spans in texts.

    Args:
        key: Key of the signatures; without one nothing matches.
        signed: Hexadecimal signatures by number of words. As a mapping, with the time of the purge in seconds since
            1970: a text stored later keeps these words.
        texts: Signed texts, if known, for a faster search.
        sums: Sums of the spans by number of words, see `sum_spans`; without them words are tested one by one.
    """

    def __init__(
        self,
        key: bytes = b"",
        signed: Mapping[int, Iterable[str]] | None = None,
        texts: Iterable[str] = (),
        sums: Mapping[int, Collection[int]] | None = None,
    ) -> None:
        self._key = key
        self._begin_with = {words[0] for text in texts for words in _split_spans(text)}
        self._signed = {count: _decode_signatures(signatures) for count, signatures in (signed or {}).items()}
        self._sums = {count: frozenset(span_sums) for count, span_sums in (sums or {}).items()}
        self._numbers = WordNumbers(key)
        is_summed = bool(self._signed) and self._signed.keys() == self._sums.keys()
        self._finder = SpanSums(key, self._sums) if is_summed else None

    def __bool__(self) -> bool:
        """Return True if anything can match."""
        return bool(self._key and self._signed)

    def count(self, text: str, moment: float = 0.0) -> int:
        """Count the purged spans in a text.

        Args:
            text: Text to search.
            moment: When it was stored, in seconds since 1970; earlier purges do not count.
        """
        return sum(1 for _ in self._found(_WORD.findall(normalize_text(text)), moment)) if self else 0

    def find(self, texts: Sequence[bytes]) -> Collection[int]:
        """Return the indexes of texts (JSON lines) that may have a span.

        Scans faster if the purges have sums.
        """
        if not self:
            return ()
        return range(len(texts)) if self._finder is None else self._finder.find(texts)

    def hide(self, text: str, moment: float = 0.0) -> str:
        """Return a text with `BAR` for each character of purged spans."""
        if not self.count(text, moment):
            return text
        folded, places = normalize_with_places(text)
        words = [match.span() for match in _WORD.finditer(folded)]
        barred = [
            (places[words[begin][0]][0], places[words[end - 1][1] - 1][1])
            for begin, end in self._found([folded[begin:end] for begin, end in words], moment)
        ]
        parts, position = list[str](), 0
        for begin, end in _join_spans(barred):
            parts += [text[position:begin], BAR * (end - begin)]
            position = end
        return "".join([*parts, text[position:]])

    def hide_in(self, fields: Mapping[str, Any], moment: float) -> dict[str, Any]:
        """Return a record's fields with purged spans made unreadable."""
        return hide_fields(fields, lambda text: self.hide(text, moment))

    def _found(self, words: Sequence[str], moment: float) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each span, counted in words."""
        sums = list(accumulate(map(self._numbers.__getitem__, words), initial=0)) if self._sums else []
        for count, signed in self._signed.items():
            for begin in self._candidates(words, count, sums):
                signature = _sign(self._key, words[begin : begin + count])
                if signed.get(signature, -1.0) >= moment:
                    yield begin, begin + count

    def _candidates(self, words: Sequence[str], count: int, sums: Sequence[int]) -> Iterable[int]:
        """Return possible begins of a span of `count` words."""
        if self._begin_with:
            return [begin for begin in range(len(words) - count + 1) if words[begin] in self._begin_with]
        if (span_sums := self._sums.get(count)) is None:
            return range(len(words) - count + 1)
        pairs = zip(sums, sums[count:], strict=False)
        return [begin for begin, (before, after) in enumerate(pairs) if (after - before) & SUM in span_sums]


def _decode_signatures(signatures: Iterable[str]) -> dict[bytes, float]:
    moments = signatures if isinstance(signatures, dict) else dict.fromkeys(signatures, math.inf)
    return {bytes.fromhex(signature): moment for signature, moment in moments.items()}


def sum_spans(key: bytes, texts: Iterable[str]) -> dict[int, list[int]]:
    """Return sums of texts by number of words; see `SpanSums`."""
    return compute_sums(key, (words for text in texts for words in _split_spans(text)))


def sign_spans(key: bytes, texts: Iterable[str]) -> dict[int, list[str]]:
    """Return hexadecimal signatures of texts by number of words.

    Short texts have none.
    """
    signed: defaultdict[int, set[str]] = defaultdict(set)
    for words in (words for text in texts for words in _split_spans(text)):
        signed[len(words)].add(_sign(key, words).hex())
    return {count: sorted(words) for count, words in sorted(signed.items())}


def _split_spans(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in spans.

    Yields nothing if words are less than half of the text.
    """
    folded = normalize_text(text) if is_distinctive(text) else ""
    words = _WORD.findall(folded)
    words = words if is_most(" ".join(words), folded.strip()) else []
    cuts = [*range(0, max(1, len(words) // _SPAN_WORDS) * _SPAN_WORDS, _SPAN_WORDS), len(words)]
    yield from (words[begin:end] for begin, end in pairwise(cuts if words else []))


def _sign(key: bytes, words: Sequence[str]) -> bytes:
    return hmac.digest(key, " ".join(words).encode("utf-8", "surrogatepass"), "sha256")[:_BYTES]


def _join_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in their order, those that overlap as one."""
    begin, end = 0, 0
    for span in sorted(spans):
        if span[0] > end:
            if end > begin:
                yield begin, end
            begin = span[0]
        end = max(end, span[1])
    if end > begin:
        yield begin, end


class _CharacterFolds(dict[int, str]):
    """Folded form of each character, computed on first use."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if character.isspace():
            folded = " "
        else:
            parts = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
            folded = "".join(" " if part.isspace() else part for part in parts if not _is_left_out(part))
        self[code] = folded
        return folded


_CHARACTER_FOLDS: Final = _CharacterFolds()


def is_distinctive(text: str) -> bool:
    """Return True if a text is long enough to be recognized anywhere."""
    body = normalize_text(text).strip()
    return len(body) + sum(unicodedata.east_asian_width(character) in {"W", "F"} for character in body) >= _LEAST


def is_most(part: str, text: str) -> bool:
    """Return True if a part is at least half of a text."""
    return 2 * len(part) >= len(text) > 0


def normalize_text(text: str) -> str:
    """Return a text in the form in which texts are compared."""
    return _SPACES.sub(" ", _ESCAPE.sub(_unescape, text).translate(_CHARACTER_FOLDS))


def normalize_with_places(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return `normalize_text` with each character's range in `text`."""
    signs: list[tuple[str, tuple[int, int]]] = []
    position = 0
    for escape in [*_ESCAPE.finditer(text), None]:
        end = len(text) if escape is None else escape.start()
        signs += [
            (sign, (index, index + 1)) for index in range(position, end) for sign in _CHARACTER_FOLDS[ord(text[index])]
        ]
        if escape is not None:
            signs += [
                (sign, escape.span()) for character in _unescape(escape) for sign in _CHARACTER_FOLDS[ord(character)]
            ]
            position = escape.end()
    placed: list[tuple[str, tuple[int, int]]] = []
    for sign, group in groupby(signs, key=lambda placed_sign: placed_sign[0]):
        run = list(group)
        placed += [(sign, (run[0][1][0], run[-1][1][1]))] if sign == " " else run
    return "".join(sign for sign, _ in placed), [place for _, place in placed]


def _unescape(escape: re.Match[str]) -> str:
    """Return the character for an escape."""
    if escape["space"] or escape["line"]:
        return " "
    if escape["reference"]:
        return html.unescape(escape["reference"])
    if escape["high"]:
        pair = int(escape["high"], 16) - 0xD800, int(escape["low"], 16) - 0xDC00
        return chr(0x10000 + (pair[0] << 10) + pair[1])
    code = int(escape["four"] or escape["two"] or escape["eight"], 16)
    return chr(code) if code <= sys.maxunicode else escape[0]


def _is_left_out(character: str) -> bool:
    return character in _LEFT_OUT or unicodedata.category(character) in _UNSEEN


class WordNumbers(dict[str, int]):
    """Keyed sum of character numbers per word."""

    def __init__(self, key: bytes) -> None:
        super().__init__()
        self._table = _build_table(key)

    def __missing__(self, word: str) -> int:
        if len(self) >= _MOST_WORDS:
            self.clear()
        content = word.encode("utf-8", "surrogatepass")
        self[word] = number = sum(self._table[index % _PLACES << 8 | byte] for index, byte in enumerate(content))
        return number


class SpanSums:
    """Search for texts that may have a span, by rolling sums.

    Each character has a number under the key, by its place in a word. 24 bits of the sum for a span are stored with its
    signature. All words of the span are needed to compute it, as for the signature, so it reveals no more.

    Args:
        key: Key of the character numbers.
        sums: Sums of all spans by number of words.
    """

    def __init__(self, key: bytes, sums: Mapping[int, Collection[int]]) -> None:
        self._key, self._sums = key, sums
        self._tables: list[tuple[int, Any, Any]] = []
        self._numbers: Any = None
        self._is_word: Any = None

    def find(self, texts: Sequence[bytes]) -> set[int]:
        """Return the indexes of texts that may have a span.

        Args:
            texts: JSON without line breaks.

        Returns:
            All indexes if numpy is not installed.
        """
        try:
            import numpy as np
        except ImportError:
            return set(range(len(texts)))
        if self._numbers is None:
            self._prepare(np)
        places = {place for place, text in enumerate(texts) if _is_beyond(text)}
        for first in range(0, len(texts), _AT_ONCE):
            places.update(first + place for place in self._find(np, texts[first : first + _AT_ONCE]))
        return places

    def _prepare(self, np: Any) -> None:
        self._is_word = np.zeros(256, bool)
        self._is_word[list(_IN_WORDS)] = True
        numbers = np.array(_build_table(self._key), np.uint32).reshape(_PLACES, 256)
        self._numbers = (numbers * self._is_word).ravel()
        for count, span_sums in self._sums.items():
            sums = np.fromiter(span_sums, np.uint32, len(span_sums))
            table = np.zeros(_LOW, bool)
            table[sums.astype(np.uint16)] = True
            self._tables.append((count, table, sums))

    def _find(self, np: Any, texts: Sequence[bytes]) -> list[int]:
        joined = b"\n".join(texts) + b"\n"
        for space in _ESCAPED_SPACES if b"\\" in joined else ():
            joined = joined.replace(space, b"  ")
        data = np.frombuffer(joined.translate(_LOWER, _DROPPED_BYTES), np.uint8)
        is_word, index = self._is_word[data], np.arange(len(data), dtype=np.int32)
        begins = np.maximum.accumulate(np.where(is_word, 0, index + 1))
        totals = np.cumsum(self._numbers[(index - begins) % _PLACES << 8 | data], dtype=np.uint32)
        ends = np.flatnonzero(is_word[:-1] & ~is_word[1:])
        totals = np.concatenate([np.zeros(1, np.uint32), totals[ends]])
        words = np.concatenate([self._begin(np, totals, *table) for table in self._tables])
        if not len(words):
            return []
        lines = np.flatnonzero(data == ord("\n"))
        indexes: list[int] = np.unique(lines.searchsorted(ends[words])).tolist()
        return indexes

    @staticmethod
    def _begin(np: Any, totals: Any, count: int, table: Any, sums: Any) -> Any:
        """Return with which words a span of so many may begin."""
        if count >= len(totals):
            return np.zeros(0, np.int64)
        differences = totals[count:] - totals[:-count]
        words = np.flatnonzero(table[differences.astype(np.uint16)])
        return words[np.isin(differences[words] & SUM, sums)]


def compute_sums(key: bytes, spans: Iterable[Sequence[str]]) -> dict[int, list[int]]:
    """Return the sums of spans by their number of words."""
    numbers, sums = WordNumbers(key), dict[int, set[int]]()
    for words in spans:
        sums.setdefault(len(words), set()).add(sum(map(numbers.__getitem__, words)) & SUM)
    return {count: sorted(span_sums) for count, span_sums in sorted(sums.items())}


def _build_table(key: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{_PLACES * 256}I", hashlib.shake_256(b"stretch sums" + key).digest(_PLACES * 256 * 4))


def _is_beyond(text: bytes) -> bool:
    if text.isascii() and b"\\" not in text and b"&" not in text and b"\x7f" not in text:
        return False
    return _BEYOND.search(text) is not None


def hide_fields(fields: Mapping[str, Any], hide: Callable[[str], str]) -> dict[str, Any]:
    """Return a record's fields with words unreadable, still valid."""
    hidden = {name: _hide_value(name, value, hide) for name, value in fields.items()}
    lost = {name for name in CHOSEN_NAMES & hidden.keys() if hide(str(hidden[name])) != str(hidden[name])}
    return {name: value for name, value in hidden.items() if name not in lost}


def _hide_value(name: str, value: Any, hide: Callable[[str], str]) -> Any:
    if name in _SIZED:
        return _map_texts(value, lambda text: _hide_shortened(text, hide), keys=True)
    if name in _WORDS:
        return _map_texts(value, hide)
    return _map_texts(value, lambda text: text if _NAME.fullmatch(text) else hide(text))


def _map_texts(value: Any, change: Callable[[str], str], *, keys: bool = False) -> Any:
    """Return a value with each text changed, and keys if asked."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        inner = {key: _map_texts(item, change, keys=keys) for key, item in value.items()}
        return _rename_keys(inner, change) if keys else inner
    return [_map_texts(item, change, keys=keys) for item in value] if isinstance(value, list) else value


def _rename_keys(values: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return values under changed keys; equal keys get a suffix."""
    renamed: dict[str, Any] = {}
    for key, value in values.items():
        new = change(key)
        while new in renamed:
            new += BAR
        renamed[new] = value
    return renamed


def _hide_shortened(text: str, hide: Callable[[str], str]) -> str:
    """Return a text with one sign for each unreadable run.

    The sign takes more bytes than most characters.
    """
    hidden = hide(text)
    return text if hidden == text else _BARS.sub(BAR, hidden)
