"""Acceptable text and metadata, cleaned text, and equality of texts. Pure functions."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from typing import TYPE_CHECKING, Any, Final

from agent_memory.language.characters import BREAKING, FLAG, MISPLACED, REORDERING, ROLE_MARKER, SPACES, UNSEEN
from agent_memory.language.words import fold
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_METADATA_BYTES: Final = 8 * 1024
MAX_METADATA_DEPTH: Final = 16
MAX_KEY_CHARS: Final = 256
MARK_CHARS: Final = 4

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings of formulas in spreadsheets (https://owasp.org/www-community/attacks/CSV_Injection)."""
STEERING: Final = BREAKING + UNSEEN
"""Control and invisible characters, as the inside of a `re` character class.

Invisible ones can hide instructions to a model. `MISPLACED` finds those that are legal in some contexts.
"""
_BLANK: Final = compile_late(f"[{BREAKING}{SPACES}]")
_INVISIBLE_TEXT: Final = compile_late(f"(?P<flag>{FLAG})|[{UNSEEN}]+|{MISPLACED}")
_REORDERING: Final = compile_late(f"[{REORDERING}]")
_ROLE_MARKER: Final = compile_late(ROLE_MARKER, re.IGNORECASE)


def as_cell(text: str) -> str:
    """Return a text for a spreadsheet's cell that is not a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def visible(text: str) -> str:
    r"""Return a text as people read it, for a model or screen.

    As `remove_invisible` does, but characters that reorder text are escaped. Markers of roles in chat formats get a
    backslash, so that no host or tokenizer takes them for its own: `<\|im_start|>`.
    """
    if not text.isascii():
        text = _REORDERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _ROLE_MARKER.sub(r"\g<0>\\", remove_invisible(text))


def visible_values(value: Any) -> Any:
    """Return a JSON value with `visible` applied to texts and keys."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(key): visible_values(item) for key, item in value.items()}
    return [visible_values(item) for item in value] if isinstance(value, list) else value


def flatten(text: str) -> str:
    """Return a visible text on one line."""
    return " ".join(visible(text).split())


def remove_invisible(text: str) -> str:
    """Return a text without control and invisible characters.

    Control characters and the many kinds of spaces become plain spaces.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _BLANK.sub(" ", text)
    return text if text.isascii() else _INVISIBLE_TEXT.sub(lambda match: match["flag"] or "", text)


def check_text(text: str, what: str = "content") -> str:
    """Return a text that files, indexes and events can hold.

    Raises:
        ValueError: A lone surrogate (not Unicode text) or a NUL character, named with its position.
    """
    position = text.find("\0")
    if position >= 0:
        raise ValueError(f"{what} has a NUL character at position {position}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} has half a surrogate pair at position {error.start}; it is not Unicode text"
        ) from None
    return text


def check_content(content: str) -> str:
    """Return a record's content that is acceptable and not only white space.

    Raises:
        ValueError: It is only white space, or `check_text` refuses it.
    """
    if not check_text(content).strip():
        raise ValueError("content is only white space")
    return content


def get_duplicate_key(text: str) -> str:
    """Return the form of a text by which duplicates are equal.

    Unicode composition (NFC) and white space are normalized, case and compatibility forms are not: "5 mW" is not
    "5 MW", and "10⁵" is not "105". Texts with equal keys have equal content hashes.
    """
    return " ".join(unicodedata.normalize("NFC", text).split())


def content_hash(text: str) -> str:
    """Return the hexadecimal SHA-256 of the folded text.

    Journals and segments store it. Equal hashes make texts candidates for a duplicate; `get_duplicate_key` decides.
    """
    return hashlib.sha256(folded_text(text)).hexdigest()


def folded_text(text: str) -> bytes:
    """Return a text folded for case, width and white space.

    For fingerprints on disk, and to recognize forgotten texts. Never to merge texts that a caller stores.
    """
    return fold(text).encode("utf-8", "surrogatepass")


def is_only_folded_equal(text: str, other_text: str) -> bool:
    """Return True if non-duplicate texts share a content hash."""
    return get_duplicate_key(text) != get_duplicate_key(other_text) and folded_text(text) == folded_text(other_text)


def content_mark(text: str) -> str:
    """Return a short hash that reveals changes but not the text."""
    return content_hash(text)[:MARK_CHARS]


def check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata that is plain JSON of bounded size.

    The limits are 8 KiB, depth 16, and 256 characters of a key.

    Raises:
        ValueError: It is not; names the limit or type.
    """
    _check_shape(metadata)
    try:
        encoded = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata is not plain JSON: {error}") from None
    if len(encoded.encode()) > MAX_METADATA_BYTES:
        raise ValueError(f"metadata takes more than {MAX_METADATA_BYTES} bytes as JSON")
    return metadata


def _check_shape(root: object) -> None:
    """Check types, keys and depth, without recursion on hostile depth."""
    pending: list[tuple[object, int]] = [(root, 1)]
    visited = 0
    while pending:
        value, depth = pending.pop()
        visited += 1
        if visited > MAX_METADATA_BYTES:  # every element takes at least one byte; also ends cycles
            raise ValueError(f"metadata takes more than {MAX_METADATA_BYTES} bytes as JSON")
        if isinstance(value, str):
            check_text(value, "metadata")
        elif isinstance(value, dict | list):
            if depth > MAX_METADATA_DEPTH:
                raise ValueError(f"metadata is nested deeper than {MAX_METADATA_DEPTH} levels")
            if isinstance(value, dict):
                for key in value:
                    if not isinstance(key, str) or len(key) > MAX_KEY_CHARS:
                        raise ValueError(f"metadata keys must be strings of at most {MAX_KEY_CHARS} characters")
                    check_text(key, "a metadata key")
                pending.extend((item, depth + 1) for item in value.values())
            else:
                pending.extend((item, depth + 1) for item in value)
        elif value is not None and not isinstance(value, bool | int | float):
            raise ValueError(f"metadata holds a {type(value).__name__}; only JSON values can be kept")


def iter_strings(value: object) -> Iterator[str]:
    """Yield every text in a value of JSON, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from iter_strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from iter_strings(item)


# Characters that steer or are invisible, and lone surrogates, which a terminal's encoding cannot carry.
_STEERING: Final = compile_late(f"[{STEERING}\\ud800-\\udfff]|{MISPLACED}")
# The same in JSON or YAML, where the rest is escaped already or, as a line break, part of the document.
_STEERING_IN_JSON: Final = compile_late(f"(?![\\x00-\\x1f])[{STEERING}\\ufffe\\uffff\\ud800-\\udfff]|{MISPLACED}")
_BRIEF: Final = 160
"""Characters of a memory in a sentence about it."""


def plain(text: str) -> str:
    """Return `text` with control characters shown as escape codes."""
    if text.isascii() and text.isprintable():  # most texts; compiling the pattern takes 2 ms
        return text
    return _STEERING.sub(lambda match: _escape(match[0]), text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """Return `text` as `plain` does, on one line."""
    return " ".join(plain(text).split())


def brief(text: str) -> str:
    """Return the beginning of `text` on one line."""
    line = one_line(text)
    return line if len(line) <= _BRIEF else f"{line[: _BRIEF - 1].rstrip()}\u2026"


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return `value` as JSON that says the same and steers no terminal."""
    document = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _STEERING_IN_JSON.sub(lambda match: json.dumps(match[0])[1:-1], document)


def has_steering(text: str) -> bool:
    """Return True if `to_json` would escape a character of `text`."""
    return _STEERING_IN_JSON.search(text) is not None


def escape_in_quotes(document: str) -> str:
    r"""Return a YAML `document` with control characters as \\uXXXX."""
    return _STEERING_IN_JSON.sub(lambda match: _escape(match[0], (("u", 4), ("U", 8))), document)


def _escape(character: str, forms: Iterable[tuple[str, int]] = (("x", 2), ("u", 4), ("U", 8))) -> str:
    code = ord(character)
    letter, digits = next(form for form in forms if code < 16 ** form[1])
    return f"\\{letter}{code:0{digits}x}"
