"""`Stretches`: signatures of purged words, which only the key can match.

The words of each text are counted and signed: HMAC-SHA256 (RFC 2104) of them under the key, the first 16 bytes; those
of a long one in spans of 40. Another text has them where as many of its words in a row have the same signature. Without
the key, no words can be tried against the signatures.
"""

from __future__ import annotations

import hmac
import math
import re
from collections import defaultdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.journal.comparing import can_be_told, compared, is_most, placed
from agent_memory.journal.stretch_sums import SUM, StretchSums, WordNumbers, compute_sums
from agent_memory.journal.withholding import BAR

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_STRETCH: Final = 40
"""Words."""
_BYTES: Final = 16
_UNSPACED: Final = "\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts of which each character counts as a word."""
_WORD: Final = re.compile(rf"[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+")


class Stretches:
    """Finds signed spans in texts.

    Args:
        key: Under which they were signed; without one nothing is found.
        signed: Signatures, hexadecimal, by the number of words. As a mapping, with the moment of the purge in seconds
            since 1970: a text that was stored later keeps these words.
        texts: What was signed, where that is known: it is found at a fraction of the cost.
        sums: Of the words, by their number, as of `summed_stretches`; without any, words are looked for one by one.
    """

    def __init__(
        self,
        key: bytes = b"",
        signed: Mapping[int, Iterable[str]] | None = None,
        texts: Iterable[str] = (),
        sums: Mapping[int, Collection[int]] | None = None,
    ) -> None:
        self._key = key
        self._begin_with = {words[0] for text in texts for words in _stretches(text)}
        self._signed = {count: _with_moments(signatures) for count, signatures in (signed or {}).items()}
        self._sums = {count: frozenset(span_sums) for count, span_sums in (sums or {}).items()}
        self._numbers = WordNumbers(key)
        is_summed = bool(self._signed) and self._signed.keys() == self._sums.keys()
        self._finder = StretchSums(key, self._sums) if is_summed else None

    def __bool__(self) -> bool:
        """Tell whether anything can be found."""
        return bool(self._key and self._signed)

    def count(self, text: str, moment: float = 0.0) -> int:
        """Count the purged spans in a text.

        Args:
            text: Text to search.
            moment: When it was stored, in seconds since 1970; earlier purges do not count.
        """
        return sum(1 for _ in self._found(_WORD.findall(compared(text)), moment)) if self else 0

    def find(self, texts: Sequence[bytes]) -> Collection[int]:
        """Return the indexes of texts (JSON lines) that may have a span.

        Scans faster if the purges have sums.
        """
        if not self:
            return ()
        return range(len(texts)) if self._finder is None else self._finder.find(texts)

    def hidden(self, text: str, moment: float = 0.0) -> str:
        """Return a text with `BAR` for each character of purged spans."""
        if not self.count(text, moment):
            return text
        folded, places = placed(text)
        words = [match.span() for match in _WORD.finditer(folded)]
        barred = [
            (places[words[begin][0]][0], places[words[end - 1][1] - 1][1])
            for begin, end in self._found([folded[begin:end] for begin, end in words], moment)
        ]
        parts, position = list[str](), 0
        for begin, end in _joined(barred):
            parts += [text[position:begin], BAR * (end - begin)]
            position = end
        return "".join([*parts, text[position:]])

    def _found(self, words: Sequence[str], moment: float) -> Iterator[tuple[int, int]]:
        """Yield begin and end of each span, counted in words."""
        sums = list(accumulate(map(self._numbers.__getitem__, words), initial=0)) if self._sums else []
        for count, signed in self._signed.items():
            for begin in self._candidates(words, count, sums):
                signature = _signature(self._key, words[begin : begin + count])
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


def _with_moments(signatures: Iterable[str]) -> dict[bytes, float]:
    moments = signatures if isinstance(signatures, dict) else dict.fromkeys(signatures, math.inf)
    return {bytes.fromhex(signature): moment for signature, moment in moments.items()}


def summed_stretches(key: bytes, texts: Iterable[str]) -> dict[int, list[int]]:
    """Return sums of texts by number of words; see `StretchSums`."""
    return compute_sums(key, (words for text in texts for words in _stretches(text)))


def signed_stretches(key: bytes, texts: Iterable[str]) -> dict[int, list[str]]:
    """Return the signatures of texts, hexadecimal, by how many words each stands for; none of what is too short."""
    signed: defaultdict[int, set[str]] = defaultdict(set)
    for some in (some for text in texts for some in _stretches(text)):
        signed[len(some)].add(_signature(key, some).hex())
    return {count: sorted(some) for count, some in sorted(signed.items())}


def _stretches(text: str) -> Iterator[list[str]]:
    """Yield the words of a text, of a long one some at a time; the last has the rest. None where most of it is none."""
    folded = compared(text) if can_be_told(text) else ""
    words = _WORD.findall(folded)
    words = words if is_most(" ".join(words), folded.strip()) else []
    cuts = [*range(0, max(1, len(words) // _STRETCH) * _STRETCH, _STRETCH), len(words)]
    yield from (words[begin:end] for begin, end in pairwise(cuts if words else []))


def _signature(key: bytes, words: Sequence[str]) -> bytes:
    return hmac.digest(key, " ".join(words).encode("utf-8", "surrogatepass"), "sha256")[:_BYTES]


def _joined(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in their order, those that overlap as one."""
    begin, end = 0, 0
    for each in sorted(spans):
        if each[0] > end:
            if end > begin:
                yield begin, end
            begin = each[0]
        end = max(end, each[1])
    if end > begin:
        yield begin, end
