"""Amounts in a text, in one unit a dimension, so that `30 s` is what `thirty seconds` and `0.5 min` are.

A number counts for what stands beside it: a unit of time, of size or of money, a percent sign, a clock time, a date,
else the word that it counts (`42 entries`) or that it tells apart (`Python 3.11`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SCALES: Final = {
    "time": {
        "ns nanosecond": 1e-9, "us µs microsecond": 1e-6, "ms msec millisecond": 1e-3, "s sec second": 1.0,
        "min minute": 60.0, "h hr hour": 3600.0, "d day": 86400.0, "w week": 604800.0,
    },
    "size": {
        "b byte": 1.0, "kb kib kilobyte kibibyte": 1024.0, "mb mib megabyte mebibyte": 1024.0**2,
        "gb gib gigabyte gibibyte": 1024.0**3, "tb tib terabyte tebibyte": 1024.0**4,
    },
    "share": {"% percent pct": 1.0},
    "euros": {"€ eur euro": 1.0}, "dollars": {"$ usd dollar": 1.0}, "pounds": {"£ gbp pound": 1.0},
    "length": {"mm millimetre millimeter": 1e-3, "cm centimetre centimeter": 1e-2, "km kilometre kilometer": 1e3},
    "weight": {"mg milligram": 1e-6, "g gram": 1e-3, "kg kilo kilogram": 1.0},
}  # fmt: skip
_UNITS: Final = {
    name: (dimension, scale)
    for dimension, scales in _SCALES.items()
    for names, scale in scales.items()
    for name in (*names.split(), *[f"{long}s" for long in names.split() if len(long) > 1])
}
_DECIMAL: Final = 1000 / 1024
_COUNTING: Final = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty"
)
NUMBER_WORDS: Final = {word: str(number) for number, word in enumerate(_COUNTING.split())} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "ninety": "90", "hundred": "100", "thousand": "1000",
}  # fmt: skip
_MOST_DIGITS: Final = 15
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


class Amount(NamedTuple):
    """A number in the base unit of its dimension; `text` is it as written."""

    dimension: str
    value: float | str
    text: str

    def equals(self, other: Amount) -> bool:
        """Whether both say the same; kilo may be 1,000 or 1,024."""
        if isinstance(self.value, str) or isinstance(other.value, str):
            return self.value == other.value
        near = [self.value * _DECIMAL**power for power in ((0,) if self.dimension != "size" else range(-4, 5))]
        return any(abs(one - other.value) <= 1e-9 * max(abs(one), abs(other.value)) for one in near)


def unit_of(word: str) -> tuple[str, float] | None:
    """Return the dimension and the scale of a unit, or None."""
    return _UNITS.get(word)


def number_of(text: str) -> float | str:
    """Return digits as a number; a version such as `3.11.2` stays a text."""
    if text.count(".") > 1 or len(text) > _MOST_DIGITS or not _NUMBER.fullmatch(text):
        return text
    plain = text.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", text) else text.replace(",", ".")
    try:
        return float(plain)
    except ValueError:
        return text
