"""Redaction of JSON values: metadata, tags, event payloads. Walks; the redactor decides about text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from agent_memory.redaction.protocol import Redactor

_SECRET_KEY: Final = re.compile(
    r"(?i)(?:^|[_\-. ])(?:password|passwd|passwort|kennwort|passphrase|passcode|pwd|pw|contrase\u00f1a|senha"
    r"|mot_de_passe|mdp|token|secret|credential|(?:api|access|secret|private|signing|encryption|auth|license|account|storage|master)"
    r"[_\-. ]?key|apikey|auth(?:orization)?|cookie|bearer|pin|otp|cvv|cvc|client_?secret|connection_?string|dsn"
    r"|\u30d1\u30b9\u30ef\u30fc\u30c9|\u5bc6\u7801)s?(?:[_\-. ]?(?:value|\d+))?$"
)
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_DEPTH: Final = 64
"""Deeper values are cut: metadata is refused beyond 16 levels anyway, and the stack is finite."""


def names_a_secret(key: str) -> bool:
    """Tell whether a key such as `clientSecret` or `DB_PASSWORD` (not `max_tokens`, `token_count`) names a secret."""
    folded = _CAMEL.sub("_", key[:256])
    return _SECRET_KEY.search(folded) is not None and not re.search(r"(?i)(?:max|min|num|total|n)_?tokens$", folded)


def redact_value(value: Any, redactor: Redactor) -> tuple[Any, tuple[str, ...]]:
    """Return `value` (any JSON) without secrets in its strings and keys, and the kinds found.

    Everything textual or numeric under a key that names a secret is replaced whole, numbers under plural `tokens`
    apart (they count). Values that are not JSON are handed back as they are.
    """
    kinds: dict[str, None] = {}
    return _walk(value, redactor, kinds, under_secret=False, depth=0), tuple(kinds)


def _walk(value: Any, redactor: Redactor, kinds: dict[str, None], *, under_secret: bool, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, dict):
        cleaned: dict[Any, Any] = {}
        for key, item in value.items():
            secret = isinstance(key, str) and names_a_secret(key)
            if secret and key.lower().endswith("tokens") and isinstance(item, int | float):
                secret = False
            cleaned[_text(key, redactor, kinds)] = _walk(
                item, redactor, kinds, under_secret=under_secret or secret, depth=depth + 1
            )
        return cleaned
    if isinstance(value, list | tuple):
        return [_walk(item, redactor, kinds, under_secret=under_secret, depth=depth + 1) for item in value]
    if under_secret and value not in (None, "", True, False) and isinstance(value, str | int | float):
        if isinstance(value, str) and value.startswith("[redacted:") and value.endswith("]"):
            return value
        kinds.setdefault("named-secret")
        return "[redacted:named-secret]"
    return _text(value, redactor, kinds)


def _text(value: Any, redactor: Redactor, kinds: dict[str, None]) -> Any:
    if not isinstance(value, str):
        return value
    redaction = redactor.redact(value)
    for kind in redaction.kinds:
        kinds.setdefault(kind)
    return redaction.text
