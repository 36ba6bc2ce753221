"""Names of those who write, and what they say of a failure: as the history keeps them."""

from __future__ import annotations

import math
import unicodedata
from typing import TYPE_CHECKING, Final

from agent_memory.errors import ValidationError
from agent_memory.redaction import quoted

if TYPE_CHECKING:
    from agent_memory.redaction import Redactor

MAX_NAME_CHARS: Final = 200
MAX_SAID_CHARS: Final = 10_000
"""Characters of what was wrong with an attempt: it is handed to whoever tries next."""
_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and symbols that show nothing."""
_TAGS: Final = ("\U000e0020", "\U000e007f")
"""First and last of the invisible characters that end the flags of some countries."""
MAX_SECONDS: Final = 86_400
"""A claim lasts a day at most, as the declared `lease_seconds`."""


def cleaned_name(redactor: Redactor, what: str, name: object) -> str:
    """Return the name of an owner, agent or session without secrets.

    Raises:
        ValidationError: It is no text, empty, longer than 200 characters, or holds what no database keeps.
    """
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS or _without_odd(name) != name:
        raise ValidationError(
            f"{what} is a text of 1 to {MAX_NAME_CHARS} characters, without NUL or halves of surrogate pairs, "
            f"not {quoted(name)}. Nothing was written.",
            code="wrong_name",
        )
    return redactor.redact(name).text


def cleaned_saying(redactor: Redactor, said: str) -> str:
    """Return what was said of a failure, so that it can be kept whatever it holds: a failure is always told."""
    if len(said) > MAX_SAID_CHARS:
        said = f"{said[:MAX_SAID_CHARS]}…"
    return redactor.redact(_without_odd(said)).text


def check_seconds(seconds: float) -> None:
    """Check how long a claim is to last.

    Raises:
        ValidationError: It is not more than 0 and at most a day.
    """
    if isinstance(seconds, bool) or not math.isfinite(seconds) or not 0 < seconds <= MAX_SECONDS:
        raise ValidationError(
            f"A claim lasts more than 0 and at most {MAX_SECONDS:,} seconds, not {seconds!r}.", code="wrong_seconds"
        )


def unique_form(value: str) -> str:
    """Return a unique text as it is kept and compared.

    In NFC, without white space and invisible characters at its ends.
    """
    seen = [index for index, character in enumerate(value) if not _is_unseen(character)]
    return unicodedata.normalize("NFC", value[seen[0] : seen[-1] + 1]) if seen else ""


def _is_unseen(character: str) -> bool:
    if character.isspace() or character in _BLANK:
        return True
    return unicodedata.category(character) in {"Cc", "Cf"} and not _TAGS[0] <= character <= _TAGS[1]


def is_text(value: str) -> bool:
    """Tell whether both databases keep a text: no NUL, no half of a surrogate pair."""
    return "\0" not in value and (value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value))


def _without_odd(text: str) -> str:
    if is_text(text):
        return text
    return "".join("\ufffd" if each == "\0" or "\ud800" <= each <= "\udfff" else each for each in text)
