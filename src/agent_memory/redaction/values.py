"""Redaction of JSON values, labels, paths and quoted input."""

from __future__ import annotations

import itertools
import re
from typing import Any, Final

from agent_memory.late import compile_late
from agent_memory.redaction.findings import MARKER, MARKER_PREFIX, Redaction, Redactor
from agent_memory.redaction.redactor import RepeatedRedactor, SecretRedactor
from agent_memory.redaction.shapes import MANY_WORDS, is_known_harmless, names_a_secret

_NAMES: Final = frozenset({"name", "key", "id", "field", "label", "variable", "env", "title", "property"})
_VALUES: Final = frozenset({"value", "val", "content", "data", "default", "secret"})
_CAMEL: Final = compile_late(r"(?<=[a-z0-9])(?=[A-Z])")
_MIN_DIGITS: Final = 12
"""Shorter numbers are known by a label alone."""
_MAX_LABEL: Final = 64
_MAX_DEPTH: Final = 64
"""Deeper values are cut: metadata is refused beyond 16 levels anyway, and the stack is finite."""


def redact_value(value: Any, redactor: Redactor) -> tuple[Any, tuple[str, ...]]:
    """Return a JSON value without secrets, and the kinds found.

    Everything textual or numeric under a key that names a secret is replaced whole, except numbers under plural
    `tokens`, which count. Values that are not JSON are returned as they are.
    """
    kinds: dict[str, None] = {}
    return _walk(value, redactor, kinds, "", is_secret=False, depth=0), tuple(kinds)


def _walk(value: Any, redactor: Redactor, kinds: dict[str, None], label: str, *, is_secret: bool, depth: int) -> Any:
    """Return a JSON value without secrets; `label` is its key."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        return _walk_dict(value, redactor, kinds, is_secret=is_secret, depth=depth)
    if isinstance(value, list | tuple):
        return [_walk(item, redactor, kinds, label, is_secret=is_secret, depth=depth + 1) for item in value]
    if is_secret and value not in (None, "", True, False) and isinstance(value, str | int | float):
        marked = MARKER.fullmatch(str(value)) is not None
        kinds.update({} if marked else {"named-secret": None})
        return value if marked else "[redacted:named-secret]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _redact_number(value, redactor, kinds, label)
    return _redact_text(value, redactor, kinds)


def _walk_dict(
    value: dict[Any, Any], redactor: Redactor, kinds: dict[str, None], *, is_secret: bool, depth: int
) -> dict[Any, Any]:
    cleaned: dict[Any, Any] = {}
    named = any(
        isinstance(name, str) and str(field).lower() in _NAMES and names_a_secret(name) for field, name in value.items()
    )
    for key, item in value.items():
        secret = isinstance(key, str) and (names_a_secret(key) or (named and key.lower() in _VALUES))
        if secret and key.lower().endswith("tokens") and isinstance(item, int | float):
            secret = False
        cleaned[_redact_text(key, redactor, kinds)] = _walk(
            item, redactor, kinds, str(key), is_secret=is_secret or secret, depth=depth + 1
        )
    return cleaned


def _redact_number(value: float, redactor: Redactor, kinds: dict[str, None], label: str) -> Any:
    """Return a number, or the marker if it is a secret.

    It is one if its digits are, also next to the words of its key.
    """
    digits = repr(value).removesuffix(".0")
    if len(digits) < _MIN_DIGITS:
        return value
    redaction = redactor.redact(digits)
    words = re.sub(r"[_.-]+", " ", _CAMEL.sub(" ", label[:_MAX_LABEL]))
    if not redaction.kinds or digits in redactor.redact(f"{words}: {digits}").text:
        return value
    kinds.update(dict.fromkeys(redaction.kinds))
    return redaction.text


def _redact_text(value: Any, redactor: Redactor, kinds: dict[str, None]) -> Any:
    if not isinstance(value, str):
        return value
    redaction = redactor.redact(value)
    kinds.update(dict.fromkeys(redaction.kinds))
    return redaction.text


_MAX_CHARS: Final = 64
"""Most characters of a tag or a relation. A label that is too long with markers becomes one marker."""
_KIND: Final = "high-entropy"
_PARTS: Final = compile_late(r"[-_./:,+@()\[\]=]+")
_HEX: Final = compile_late(r"(?i)(?:0x)?[0-9a-f]+|[0-9A-HJKMNP-TV-Z]{26}")
_WORDS: Final = compile_late(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_ADDRESS: Final = compile_late(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+")
_MARKED: Final = compile_late(r"(?=\S{0,60}[^\W\d_])(?=\S{0,60}\d)\S*[\w][!#$%&*^~?+=@|;][\w!#$%&*^~?+=@|;]\S*")
_LANGUAGE: Final = compile_late(r"(?i)[a-z]{1,8}(?:#|\+\+)[\d.]*")
_SEPARATORS: Final = compile_late(r"([/\\]+)")
_MIN_PART: Final = 10
_MIN_SWITCHES: Final = 3  # between letters and digits; letters of both cases count as one
_MIN_MARKED: Final = 6
"""Shorter than any password that a system accepts; "0;A" may be a tag."""
_FEW_DIFFERENT: Final = 3
"""Characters that are not the same, at most, in what repeats itself as no password does: "0000;A", "z0z0z0"."""


def redact_label(
    value: Any, redactor: Redactor, harmless: re.Pattern[str] | None = None
) -> tuple[Any, tuple[str, ...]]:
    """Return a label without secrets, and their kinds.

    JSON values whose strings are labels are walked.

    Args:
        value: Label, or JSON value with labels.
        redactor: Redactor for secrets that are known by form or words.
        harmless: Form of labels that are never secrets.
    """
    kinds: dict[str, None] = {}
    return _walk_labels(value, redactor, harmless, kinds), tuple(kinds)


def redact_path(path: str, redactor: Redactor) -> Redaction:
    """Return a path without the secrets in its names.

    A name that only looks random stays: temporary folders and checksums look like that.
    """
    from agent_memory.redaction.detection import has_known_form  # 30 ms for its patterns

    kinds: dict[str, None] = {}
    names: list[str] = []
    for name in _SEPARATORS.split(path):
        redaction = redactor.redact(name)
        is_secret = redaction.kinds and (redaction.kinds != (_KIND,) or has_known_form(name))
        kinds.update(dict.fromkeys(redaction.kinds if is_secret else ()))
        names.append(redaction.text if is_secret else name)
    return Redaction("".join(names), tuple(kinds))


def _walk_labels(value: Any, redactor: Redactor, harmless: re.Pattern[str] | None, kinds: dict[str, None]) -> Any:
    if isinstance(value, dict):
        return {
            _walk_labels(key, redactor, harmless, kinds): _walk_labels(item, redactor, harmless, kinds)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_walk_labels(item, redactor, harmless, kinds) for item in value]
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
    """Return True if a word of a label looks like a secret."""
    from agent_memory.redaction.unlabelled import SecretLevel, judge_token

    if len(set(token)) <= _FEW_DIFFERENT:
        return False
    if is_known_harmless(token) or _ADDRESS.fullmatch(token) or _LANGUAGE.fullmatch(token):
        return False
    if len(token) >= _MIN_MARKED and _MARKED.fullmatch(token):
        return True
    parts = [part for part in token.split(":") if len(set(part)) > _FEW_DIFFERENT and not is_known_harmless(part)]
    if any(judge_token(part) >= SecretLevel.PERHAPS for part in parts):  # a colon names what follows: "ticket:OPS-100"
        return True
    return any(_is_generated(part) for part in _PARTS.split(token) if len(part) >= _MIN_PART)


def _is_generated(part: str) -> bool:
    if _HEX.fullmatch(part):
        return False  # commits, checksums, ids
    switches = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(part))
    mixed = any(c.islower() for c in part) and any(c.isupper() for c in part) and switches > 0
    worded = sum(map(len, _WORDS.findall(part))) / len(part)
    return switches + mixed >= _MIN_SWITCHES and worded < MANY_WORDS


_LOOKED_AT: Final = 200
_SHOWN: Final = 40
_REDACTOR: Final = SecretRedactor()


def shortened(argument: object) -> str:
    """Return the first 40 characters of what a caller gave, without secrets."""
    try:
        text = str(argument)
    except ValueError:  # a number of more digits than Python writes, or one within
        text = f"a value of type {type(argument).__name__}"
    return str(redact_label(text[:_LOOKED_AT], _REDACTOR)[0])[:_SHOWN]


def quoted(argument: object) -> str:
    """Return the same in quotes, with what cannot be printed escaped."""
    return repr(shortened(argument))
