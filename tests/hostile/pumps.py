"""Texts that make a regular expression slow, derived from its parse tree, and the growth of CPU time on them."""

from __future__ import annotations

import math
import random
import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as codes  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
import signal
import time
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

LIMIT = 1.3
"""Highest slope of log CPU against log length that counts as linear."""
SIZES = (8_000, 16_000, 32_000, 64_000)
SMALL_SIZES = (1_000, 2_000, 4_000, 8_000)
FLOOR = 0.003
"""Seconds for the longest text below which no slope is computed."""
_SCREEN = (500, 2_000)
_SCREEN_FLOOR = 0.00012
_LONG = 16
"""Repeats with a lower maximum are not pumped on their own."""
_CLEAR, _CLEAR_SLOPE = 0.02, 1.6
"""Seconds, and a slope, from which on no longer text is measured."""
_CAP = 0.7
"""Seconds of CPU after which one call is ended."""

GENERIC = "aZ07 \n\t-_.,:;/\\'\"()[]{}<>#*@!?=+&|`~$%^\u00e9\u4e2d\u3042\ud55c"
_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_ONE = (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY)
_FAILS = ("", "\x00", "!\n", "a")

METHODS: dict[str, Callable[[re.Pattern[Any], Any], object]] = {
    "match": lambda pattern, text: pattern.match(text),
    "fullmatch": lambda pattern, text: pattern.fullmatch(text),
    "search": lambda pattern, text: pattern.search(text),
    "finditer": lambda pattern, text: sum(1 for _ in pattern.finditer(text)),
}


@dataclass(frozen=True)
class PumpedText:
    """A text of any length: `lead`, then `unit` repeated, then `tail`."""

    lead: str
    unit: str
    tail: str = ""

    def build(self, size: int) -> str:
        count = max(2, (size - len(self.lead) - len(self.tail)) // len(self.unit))
        return self.lead + self.unit * count + self.tail


@dataclass(frozen=True)
class SlowText:
    """A pumped text over which the CPU time grows faster than the limit."""

    text: PumpedText
    slope: float
    seconds: float

    def __str__(self) -> str:
        text = self.text
        grows = f"slope {self.slope:.2f}" if math.isfinite(self.slope) else f"more than {_CAP} s"
        return f"{grows}, {self.seconds:.3f} s: {text.lead[:60]!r} + {text.unit[:80]!r} * n + {text.tail!r}"


# -- texts -------------------------------------------------------------------------------------------------------------


class PatternPumps:
    """Pumped texts of one pattern: each repeat's body, and the way to it, as a unit."""

    def __init__(self, pattern: re.Pattern[Any], variants: int = 3, seed: int = 1) -> None:
        self._pattern = pattern
        self._flags = pattern.flags & ~re.DEBUG
        self._tree = parser.parse(pattern.pattern, self._flags)
        self._random = random.Random(seed)
        self._variants = variants
        self._accepted: dict[str, str] = {}
        literals = dict.fromkeys(_find_literals(self._tree))
        self._alphabet = "".join(dict.fromkeys((*list(literals)[:60], *GENERIC)))

    def __iter__(self) -> Iterator[PumpedText]:
        texts: dict[PumpedText, None] = {}
        for before, body, after in self._find_repeats(list(self._tree), "", 0):
            for sample in self._sample_bodies(body):
                self._add_texts(texts, before, sample, after)
        whole = {self._sample(list(self._tree)) for _ in range(self._variants)}
        for text, separator in product(sorted(whole), ("", " ", "\n")):
            for unit in {text, text[:-1]} - {""}:
                texts[PumpedText("", unit + separator)] = None
        return iter(texts)

    @staticmethod
    def _add_texts(texts: dict[PumpedText, None], before: str, sample: str, after: str) -> None:
        for lead, tail in product(dict.fromkeys((before, "")), _FAILS):
            texts[PumpedText(lead, sample, tail)] = None
        for separator in ("", " ", "\n"):
            if before:
                texts[PumpedText("", before + separator)] = None
            texts[PumpedText("", before + sample + separator)] = None
            if after:
                texts[PumpedText("", before + sample + after[:-1] + separator)] = None

    def _find_repeats(self, items: list[Any], before: str, depth: int) -> Iterator[tuple[str, list[Any], str]]:
        for position, (code, value) in enumerate(items):
            for body in _get_parts(code, value):
                yield from self._find_repeats(body, before, depth + 1)
            if code in _REPEATS and (value[1] is codes.MAXREPEAT or value[1] >= _LONG):
                yield before, list(value[2]), self._sample(items[position + 1 :])
            if len(before) < 200:
                before += self._sample([(code, value)])

    def _sample_bodies(self, body: list[Any]) -> list[str]:
        if len(body) == 1 and body[0][0] in _ONE:
            accepted = self._list_accepted(body[0])
            shared = sorted(accepted, key=lambda char: (char not in "a0 \n-", self._alphabet.index(char)))
            return shared[: 3 + self._variants]
        samples = [self._sample(body) for _ in range(2 * self._variants)]
        samples += [self._sample(body, longest=3) for _ in range(self._variants)]
        return [text for text in dict.fromkeys(samples) if text]

    def _sample(self, items: list[Any], longest: int = 1) -> str:
        return "".join(self._sample_item(code, value, longest) for code, value in items)

    def _sample_item(self, code: Any, value: Any, longest: int) -> str:
        if code is codes.LITERAL:
            return chr(value)
        if code in _ONE:
            accepted = self._list_accepted((code, value))
            return self._random.choice(accepted[:12]) if accepted else ""
        if code in _REPEATS:
            low, high, body = value
            count = max(low, min(int(high), self._random.randint(0 if self._random.random() < 0.3 else 1, longest)))
            return "".join(self._sample(list(body), longest) for _ in range(min(count, 40)))
        if code in (codes.BRANCH, codes.SUBPATTERN, codes.ATOMIC_GROUP):
            return self._sample(self._random.choice(list(_get_parts(code, value))), longest)
        return ""

    def _list_accepted(self, item: Any) -> str:
        key = repr(item)
        if key not in self._accepted:
            state = parser.State()
            state.flags = self._tree.state.flags
            compiled = compiler.compile(parser.SubPattern(state, [item]), self._flags)
            is_bytes = isinstance(self._pattern.pattern, bytes)
            chars = [c for c in self._alphabet if not is_bytes or ord(c) < 256]
            self._accepted[key] = "".join(
                c for c in chars if compiled.fullmatch(c.encode("latin-1") if is_bytes else c)
            )
        return self._accepted[key]


def _get_parts(code: Any, value: Any) -> Iterator[list[Any]]:
    """Return the sequences inside of an item of a parse tree."""
    if code in _REPEATS:
        yield list(value[2])
    elif code is codes.BRANCH:
        yield from map(list, value[1])
    elif code is codes.SUBPATTERN:
        yield list(value[3])
    elif code is codes.ATOMIC_GROUP:
        yield list(value)
    elif code in (codes.ASSERT, codes.ASSERT_NOT):
        yield list(value[1])
    elif code is codes.GROUPREF_EXISTS:
        yield from (list(part) for part in value[1:] if part)


def _find_literals(items: Iterable[Any]) -> Iterator[str]:
    for code, value in items:
        if code in (codes.LITERAL, codes.NOT_LITERAL):
            yield chr(value)
        elif code is codes.IN:
            for kind, content in value:
                if kind is codes.LITERAL:
                    yield chr(content)
                elif kind is codes.RANGE:
                    yield from map(chr, content)
        for part in _get_parts(code, value):
            yield from _find_literals(part)


# -- time --------------------------------------------------------------------------------------------------------------


class CallEndedError(Exception):
    """A call used more CPU than one call may."""


def measure_seconds(call: Callable[[Any], object], text: Any, cap: float = _CAP) -> float:
    """Return the CPU seconds of a call; infinity if it used more than the cap.

    A timer of real time looks at the CPU clock: timers of CPU time make that clock as coarse as the system's tick.
    """
    began = time.process_time()

    def end_call(_signal: int, _frame: object) -> None:
        if time.process_time() - began > cap:
            raise CallEndedError

    previous = signal.signal(signal.SIGALRM, end_call)
    signal.setitimer(signal.ITIMER_REAL, cap, cap / 4)
    try:
        began = time.process_time()
        call(text)
        seconds = time.process_time() - began
    except CallEndedError:
        seconds = math.inf
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return seconds


def measure_slope(
    call: Callable[[Any], object],
    build: Callable[[int], Any],
    sizes: tuple[int, ...] = SIZES,
    *,
    floor: float = FLOOR,
    cap: float = _CAP,
) -> tuple[float, float]:
    """Return the slope of log CPU against log length, and the seconds for the longest text.

    Where a text takes more than the cap, three shorter ones decide, if need be of `SMALL_SIZES`.
    """
    points: list[tuple[float, float]] = []
    seconds = 0.0
    for size in sizes:
        text = build(size)
        seconds = measure_seconds(call, text, cap)
        if math.isinf(seconds):
            if len(points) > 2:
                return _fit_slope(points), cap
            return (math.inf, cap) if sizes == SMALL_SIZES else measure_slope(call, build, SMALL_SIZES, cap=cap)
        if seconds < _CLEAR:
            again = (measure_seconds(call, build(size + more), cap) for more in (64, 128))  # no answer from a cache
            seconds = median((seconds, *again))
        points.append((math.log(len(text)), math.log(max(seconds, 1e-6))))
        if seconds > _CLEAR and len(points) > 2 and _fit_slope(points) > _CLEAR_SLOPE:
            break
    return (0.0 if seconds < floor else _fit_slope(points)), seconds


def _fit_slope(points: list[tuple[float, float]]) -> float:
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0  # a text that is cut


def is_suspicious(call: Callable[[Any], object], build: Callable[[int], Any]) -> bool:
    """Return True if short texts already show a growth that is worth a full measurement."""
    short, long = _SCREEN
    seconds = measure_seconds(call, build(long), cap=0.5)
    if seconds < _SCREEN_FLOOR:
        return False
    least = min(measure_seconds(call, build(short + more), cap=0.5) for more in range(3))  # the first one is cold
    return seconds == math.inf or seconds > (long / short) ** 1.2 * least


def find_slow_text(
    pattern: re.Pattern[Any],
    method: str = "finditer",
    variants: int = 3,
    seed: int = 1,
    prepare: Callable[[str], str] | None = None,
) -> SlowText | None:
    """Return the first derived text over which the pattern is not linear, or None.

    Args:
        pattern: The pattern.
        method: How the code applies it, a key of `METHODS`.
        variants: How many samples are drawn of each part of the pattern.
        seed: Of these samples.
        prepare: What the code makes of a text before it applies the pattern.
    """

    def call(text: Any) -> object:
        return METHODS[method](pattern, text)

    is_bytes = isinstance(pattern.pattern, bytes)
    for pumped in PatternPumps(pattern, variants, seed):

        def build(size: int, pumped: PumpedText = pumped) -> Any:
            text = pumped.build(size) if prepare is None else prepare(pumped.build(size))
            return text.encode("utf-8") if is_bytes else text

        if is_suspicious(call, build):
            slope, seconds = measure_slope(call, build)
            if slope > LIMIT and measure_slope(call, build)[0] > LIMIT:
                return SlowText(pumped, slope, seconds)
    return None
