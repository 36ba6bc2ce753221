"""Redaction of labels: tags, names of relations, files and sessions. Short texts in which a secret stands bare.

No word such as "password" is near, and letters may have been folded to lower case, so the label itself is judged.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

from agent_memory.redaction.memo import RepeatedRedactor
from agent_memory.redaction.protocol import MARKER, MARKER_PREFIX, Redaction
from agent_memory.redaction.redactor import has_known_form
from agent_memory.redaction.shapes import MANY_WORDS, is_known_harmless

if TYPE_CHECKING:
    from agent_memory.redaction.protocol import Redactor

_MAX_CHARS: Final = 64
"""Of a tag or a relation. With markers in it a label may not fit any more; then the marker alone stands for it."""
_KIND: Final = "high-entropy"
_PARTS: Final = re.compile(r"[-_./:,+@()\[\]=]+")
_HEX: Final = re.compile(r"(?i)(?:0x)?[0-9a-f]+|[0-9A-HJKMNP-TV-Z]{26}")
_WORDS: Final = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_ADDRESS: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_MARKED: Final = re.compile(r"(?=\S{0,60}[^\W\d_])(?=\S{0,60}\d)\S*[\w][!#$%&*^~?+=@|;][\w!#$%&*^~?+=@|;]\S*")
_LANGUAGE: Final = re.compile(r"(?i)[a-z]{1,8}(?:#|\+\+)[\d.]*")
_SEPARATORS: Final = re.compile(r"([/\\]+)")
_MIN_PART: Final = 10
_MIN_SWITCHES: Final = 3  # between letters and digits; letters of both cases count as one
_MIN_MARKED: Final = 6
"""Shorter than any password that a system accepts; "0;A" may be a tag."""
_FEW_DIFFERENT: Final = 3
"""Characters that are not the same, at most, in what repeats itself as no password does: "0000;A", "z0z0z0"."""


def redact_label(value: Any, redactor: Redactor, known: re.Pattern[str] | None = None) -> tuple[Any, tuple[str, ...]]:
    """Return `value` (a label, or JSON whose strings are labels) without secrets, and the kinds found.

    Args:
        value: What to look at.
        redactor: Finds what is known by its form or by words.
        known: Labels of this form are no secrets, whatever they look like.
    """
    kinds: dict[str, None] = {}
    return _walk(value, redactor, known, kinds), tuple(kinds)


def redact_path(path: str, redactor: Redactor) -> Redaction:
    """Return a path without the secrets in its names.

    A name that only looks random stays: temporary folders and checksums look like that.
    """
    kinds: dict[str, None] = {}
    names: list[str] = []
    for name in _SEPARATORS.split(path):
        redaction = redactor.redact(name)
        is_secret = redaction.kinds and (redaction.kinds != (_KIND,) or has_known_form(name))
        kinds.update(dict.fromkeys(redaction.kinds if is_secret else ()))
        names.append(redaction.text if is_secret else name)
    return Redaction("".join(names), tuple(kinds))


def _walk(value: Any, redactor: Redactor, harmless: re.Pattern[str] | None, kinds: dict[str, None]) -> Any:
    if isinstance(value, dict):
        return {
            _walk(key, redactor, harmless, kinds): _walk(item, redactor, harmless, kinds) for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walk(item, redactor, harmless, kinds) for item in value]
    if not isinstance(value, str) or (harmless is not None and harmless.fullmatch(value)):
        return value
    redaction = redactor.redact(value)
    if redaction.kinds:
        kinds.update(dict.fromkeys(redaction.kinds))
        fits = len(redaction.text) <= max(_MAX_CHARS, len(value))
        return redaction.text if fits else f"{MARKER_PREFIX}{redaction.kinds[0]}]"
    if any(_is_secret_word(token, redactor) for token in MARKER.sub(" ", value).split()):
        kinds.setdefault(_KIND)
        return f"{MARKER_PREFIX}{_KIND}]"
    return value


def _is_secret_word(token: str, redactor: Redactor) -> bool:
    """Return True if a word is a bare secret; cached per change."""
    if not isinstance(redactor, RepeatedRedactor):
        return _is_bare_secret(token)
    if token not in redactor.bare_words:
        redactor.bare_words[token] = _is_bare_secret(token)
    return redactor.bare_words[token]


def _is_bare_secret(token: str) -> bool:
    """Tell whether a word of a label reads like a password or a generated key, also in lower case."""
    from agent_memory.redaction.unlabelled import Looks, looks_like

    if len(set(token)) <= _FEW_DIFFERENT:
        return False
    if is_known_harmless(token) or _ADDRESS.fullmatch(token) or _LANGUAGE.fullmatch(token):
        return False
    if len(token) >= _MIN_MARKED and _MARKED.fullmatch(token):
        return True
    parts = [part for part in token.split(":") if len(set(part)) > _FEW_DIFFERENT and not is_known_harmless(part)]
    if any(looks_like(part) >= Looks.PERHAPS for part in parts):  # a colon names what follows: "ticket:OPS-100"
        return True
    return any(_is_generated(part) for part in _PARTS.split(token) if len(part) >= _MIN_PART)


def _is_generated(part: str) -> bool:
    if _HEX.fullmatch(part):
        return False  # commits, checksums, ids
    switches = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(part))
    mixed = any(c.islower() for c in part) and any(c.isupper() for c in part) and switches > 0
    worded = sum(map(len, _WORDS.findall(part))) / len(part)
    return switches + mixed >= _MIN_SWITCHES and worded < MANY_WORDS
