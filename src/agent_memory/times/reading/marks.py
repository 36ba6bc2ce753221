"""The tags of marks, and of what has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Tags = Mapping[str, Any]
NONE: Final[Tags] = {}
MARKS: Final[Mapping[str, Tags]] = {
    ",": {"COMMA": 0}, "-": {"DASH": 0, "SEP": 0}, "\u2013": {"DASH": 0}, "\u2014": {"DASH": 0}, "~": {"DASH": 0},
    "\uff5e": {"DASH": 0}, "\u301c": {"DASH": 0}, "/": {"SEP": 0}, ".": {"DOT": 0}, "(": {"OPEN": 0}, ")": {"CLOSE": 0},
    "'": {"APOSTROPHE": 0}, "\u2019": {"APOSTROPHE": 0}, "\uff0c": {"COMMA": 0}, "\u3001": {"COMMA": 0},
}  # fmt: skip
