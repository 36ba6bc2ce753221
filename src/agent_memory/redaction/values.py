"""Redaction of JSON values: metadata, tags, event payloads. Walks; the redactor decides about text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from agent_memory.redaction.protocol import MARKER

if TYPE_CHECKING:
    from agent_memory.redaction.protocol import Redactor

_SECRET_KEY: Final = re.compile(
    r"(?i)(?:^|[_\-. ])(?:[a-z]{0,12}(?:pass|password|passwd|passwort|passphrase|passcode|pwd)|kennwort|pw|psw"
    r"|contrase\u00f1a|contrasena|senha|wachtwoord|l\u00f6senord|losenord|has\u0142o|haslo|heslo|\u015fifre"
    r"|sifre|salasana|adgangskode|passord"
    r"|mot_de_passe|mdp|token|secret|credential|creds|(?:api|access|secret|private|signing|encryption|auth"
    r"|license|account"
    r"|storage|master|ssh|session|service|shared|deploy|app|client|admin|webhook|subscription|hmac|aes|pgp|gpg|ssl|tls)"
    r"[_\-. ]?key|apikey|auth(?:orization)?|cookie|bearer|jwt|pat|pin|otp|t?otp[_\-. ]?(?:seed|secret)|cvv"
    r"|cvc|ssn|psk|client_?secret"
    r"|(?:recovery|backup)[_\-. ]?(?:code|phrase|key)|(?:pin|access|security)[_\-. ]?code|seed[_\-. ]?phrase|mnemonic"
    r"|connection_?string|dsn|\u043f\u0430\u0440\u043e\u043b\u044c|\u0442\u043e\u043a\u0435\u043d"
    r"|\u30d1\u30b9\u30ef\u30fc\u30c9|\u5bc6\u7801|\u5bc6\u78bc"
    r"|\ube44\ubc00\ubc88\ud638)s?(?:[_\-. ]?(?:value|base64|b64|hex|\d+))?$"
)
_NAMES: Final = frozenset({"name", "key", "id", "field", "label", "variable", "env", "title", "property"})
_VALUES: Final = frozenset({"value", "val", "content", "data", "default", "secret"})
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MIN_DIGITS: Final = 12
"""Shorter numbers are known by a label alone."""
_MAX_LABEL: Final = 64
_MAX_DEPTH: Final = 64
"""Deeper values are cut: metadata is refused beyond 16 levels anyway, and the stack is finite."""


def names_a_secret(key: str) -> bool:
    """Tell whether a key such as `clientSecret` or `DB_PASSWORD` (not `max_tokens`, `token_count`) names a secret."""
    folded = _CAMEL.sub("_", key[:256])
    return _SECRET_KEY.search(folded) is not None and not re.search(r"(?i)(?:max|min|num|total|n)_?tokens$", folded)


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
    return _text(value, redactor, kinds)


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
        cleaned[_text(key, redactor, kinds)] = _walk(
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


def _text(value: Any, redactor: Redactor, kinds: dict[str, None]) -> Any:
    if not isinstance(value, str):
        return value
    redaction = redactor.redact(value)
    kinds.update(dict.fromkeys(redaction.kinds))
    return redaction.text
