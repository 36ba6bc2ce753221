"""Shapes of secrets: randomness, check digits, placeholders, names of keys."""

from __future__ import annotations

import base64
import binascii
import itertools
import math
import re
from collections import Counter
from typing import Final

from agent_memory.late import compile_late
from agent_memory.redaction.findings import MARKER

MIN_RANDOM_CHARS: Final = 12
_MIN_ENTROPY: Final = 2.5
_MIN_STANDALONE_CHARS: Final = 32
_MIN_STANDALONE_DIGITS: Final = 3
_MIN_STANDALONE_ENTROPY: Final = 4.2  # bits per character; English and identifiers stay below 4.0 at this length
_MIN_PASSWORD: Final = 6
_MIN_MIXED, _MIN_SHUFFLED = 6, 8  # characters of a part with all three classes, of one in no order
_MIN_JUMBLED: Final = 16
HALF_WORDS, MANY_WORDS, MOST_WORDS = 0.5, 0.6, 0.75
"""The share of letters in words from which on a token is a name: alone, with digits in it, with both cases too."""

_PLACEHOLDER: Final = compile_late(
    r"""(?xi)
    [*x•.\-_#?]+ | <[^>]*>? | \$\{[^}]*\}? | (?-i:\$[A-Z_][A-Z0-9_]*) | \$\(.*
    | \{\{.* | \{[\w.]*\} | %\w+% | \[redacted.*
    | (?:your|my|the|some|a|an)[-_ ]?\w*[-_ ](?:here|password|token|secret|key)\w* | change[-_]?me | replace[-_]?me
    | none | null | nil | undefined | true | false | str(?:ing)? | int | bool | bytes | any | text | varchar(?:\(\d+\))?
    | optional(?:\[\w+\])? | required | hidden | empty | masked | redacted | omitted | unset
    | (?:process\.)?env(?:iron)?[.\[(].* | os\.(?:getenv|environ).* | (?-i:secrets\.[A-Z_]+) | vault:.* | op://.*
    | self\.\w+ | this\.\w+ | [A-Za-z_][\w.]*\([^)]*(?:\).*)? | !\w+
    | (?-i:(?:Read|Get|New|Import|ConvertTo)-[A-Z]\w+) | \#(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})
    | (?-i:[A-Z][A-Za-z]+\[[\w\[\], .|]*) | 1password | keepass\w{0,3} | bitwarden | lastpass
    | .{0,40}redacted.{0,40} | [\^(\\]{0,3}\[(?:\^?\w-\w|\\).* | raise | return | throw
    | await | yield | lambda | pass | break
    """
)
_WRAPPED: Final = compile_late(r"\A(?:[<{%!]|\$\{|\$\(|vault:|op://)|(?i:redacted)")
"""Signs that make any text in them a placeholder."""
_HIDDEN: Final = compile_late(rf"{MARKER.pattern}|(?i:redacted)")
_TECH_WORD: Final = compile_late(
    r"""(?xi)
    md5 | sha-?\d+ | oauth-?[12](?:\.0)? | utf-?\d+ | base-?\d+
    | bcrypt | argon2\w* | http/?[123] | v?\d+(?:\.\d+)*[a-z]?
    | p\d\d | \dfa | x509 | ed25519 | [rhep]s\d{3} | s3 | ec2 | k8s
    | i18n | l10n | e2e | ipv[46]
    | \d+(?:ms|s|m|h|d|k|kb|mb|gb|px|x|%)
    | [a-z]{2,4}-[0-9a-f]{12} | 0x[0-9a-f]{1,40} | (?:ctrl|alt|shift|cmd|meta|super|option)(?:[+-]\w{1,12}){1,4}
    | aes-?\d\w* | tls-?\d[\d.]* | fido2 | pbkdf2 | web3 | log4j
    """
)
_SSH_HEAD: Final = 24
"""Characters of base64 that hold the length and the beginning of the name."""
_SSH_NAME: Final = compile_late(rb"(?:ssh|ecdsa|sk)-\w")
UUID: Final = compile_late(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEX: Final = compile_late(r"(?i)(?:0x)?[0-9a-f]+")
_DATE: Final = compile_late(r"\d{4}-\d\d(?:-\d\d(?:[T_ -][\d:.,Z+-]{0,40})?)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
_VERSION: Final = compile_late(r"v?\d+\.\d+(?:[-+.]\w+)*")
_ADDRESS: Final = compile_late(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://")
_WORDS: Final = compile_late(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_FILE: Final = compile_late(r"\.[a-z]{2,6}\d?(?::\d+)?$")
_SEPARATORS: Final = compile_late(r"[^A-Za-z0-9]+")
_NUMBERED: Final = compile_late(r"\d+-\w+|\w+-\d+")
_CAPITALISED: Final = compile_late(r"[A-Z]?[a-z]{3,}")
_SYMBOLS: Final = frozenset("!#$%&*@^~+?=§€£|;")
_JOINTS: Final = frozenset(".-_")
_SECRET_KEY: Final = compile_late(
    r"(?i)(?:^|[_\-. ])(?:[a-z]{0,12}(?:pass|password|passwd|passwort|passphrase|passcode|pwd)|kennwort|pw|psw"
    r"|contraseña|contrasena|senha|wachtwoord|lösenord|losenord|hasło|haslo|heslo|şifre|sifre|salasana|adgangskode"
    r"|passord|mot_de_passe|mdp|token|secret|credential|creds|(?:api|access|secret|private|signing|encryption|auth"
    r"|license|account|storage|master|ssh|session|service|shared|deploy|app|client|admin|webhook|subscription|hmac|aes"
    r"|pgp|gpg|ssl|tls)[_\-. ]?key|apikey|auth(?:orization)?|cookie|bearer|jwt|pat|pin|otp|t?otp[_\-. ]?(?:seed|secret)"
    r"|cvv|cvc|ssn|psk|client_?secret|(?:recovery|backup)[_\-. ]?(?:code|phrase|key)|(?:pin|access"
    r"|security)[_\-. ]?code|seed[_\-. ]?phrase|mnemonic|connection_?string|dsn|п\u0430\u0440\u043eль|т\u043eк\u0435н"
    r"|パスワード|密码|密碼|비밀번호)s?(?:[_\-. ]?(?:value|base64|b64|hex|\d+))?$"
)
_CODE_SYMBOLS: Final = frozenset("(){}[]<>,\"'`\\")
_LUHN_MIN, _LUHN_MAX = 13, 19  # ISO/IEC 7812


def is_placeholder(value: str) -> bool:
    """Return True if a value only represents a secret: `${TOKEN}`, `***`."""
    return not value or (_PLACEHOLDER.fullmatch(value) is not None and not _wraps_generated(value))


def _wraps_generated(value: str) -> bool:
    """Return True if a placeholder wraps something generated: `<hunter29Xy>`."""
    if not _WRAPPED.search(value):
        return False
    return any(
        looks_random(part) or (len(part) >= _MIN_MIXED and has_all_classes(part) and sum(map(str.isdigit, part)) > 1)
        for part in _SEPARATORS.split(_HIDDEN.sub(" ", value))
    )


def entropy(text: str) -> float:
    """Return Shannon entropy in bits per character."""
    total = len(text)
    return -sum(count / total * math.log2(count / total) for count in Counter(text).values()) if total else 0.0


def passes_luhn(digits: str) -> bool:
    """Return True if digits are the number of a payment card.

    It has 13 to 19 digits, begins with 3 to 6 and has a valid check digit.
    """
    if not _LUHN_MIN <= len(digits) <= _LUHN_MAX or digits[0] not in "3456" or len(set(digits)) == 1:
        return False
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(sum(divmod(value, 10)) for value in doubled) % 10 == 0


def is_known_harmless(token: str) -> bool:
    """Return True for a UUID, date, version, path, address or term."""
    return _NUMBERED.fullmatch(token) is not None or _is_known(token)


def _is_known(token: str) -> bool:
    return UUID.fullmatch(token) is not None or _TECH_WORD.fullmatch(token) is not None or _is_written_out(token)


def is_harmless_code(token: str) -> bool:
    """Return True if a code is a date, version, path or address."""
    return _is_written_out(token) or UUID.fullmatch(token) is not None


def is_harmless_password(token: str) -> bool:
    """Return True if an assigned password is the path of a file."""
    return token.startswith(("/", "~/", "./", "../")) and token.count("/") > 1 and _is_worded(token)


def _is_written_out(token: str) -> bool:
    """Return True for a date, version, address or worded path."""
    if _DATE.fullmatch(token) is not None or _is_version(token) or _ADDRESS.match(token):
        return True
    if token.startswith(("./", "../", "~/", "--")):
        return not _is_generated_part(token)
    formed = token.startswith(("/", "~", "#", "@")) or token.count("/") > 1 or _FILE.search(token) is not None
    return formed and _is_worded(token)


def _is_version(token: str) -> bool:
    return _VERSION.fullmatch(token) is not None and not _is_generated_part(token)


def _is_worded(token: str) -> bool:
    """Return True if the parts of a token are words and numbers.

    Base64 has slashes, too.
    """
    letters = len(_SEPARATORS.sub("", token))
    return letters > 0 and not _is_generated_part(token) and sum(map(len, _WORDS.findall(token))) >= 0.4 * letters


def _is_generated_part(token: str) -> bool:
    """Return True if a part of a token looks generated.

    A path has parts such as v2, x86 and S3.
    """
    return any(
        (len(part) >= _MIN_MIXED and has_all_classes(part)) or (len(part) >= _MIN_SHUFFLED and _is_shuffled(part))
        for part in _SEPARATORS.split(token)
    )


def _is_shuffled(part: str) -> bool:
    """Return True if capitals are inside words."""
    turns = sum(a.islower() and b.isupper() for a, b in itertools.pairwise(part))
    return turns > 1 and sum(map(len, _CAPITALISED.findall(part))) < HALF_WORDS * len(part)


def has_all_classes(part: str) -> bool:
    """Return True if `part` has digit, capital and small letter."""
    return any(map(str.isdigit, part)) and any(map(str.isupper, part)) and any(map(str.islower, part))


def worded_share(token: str) -> float:
    """Return the share of letters in words of three or more."""
    return sum(map(len, _WORDS.findall(token))) / len(token)


def looks_random(token: str) -> bool:
    """Return True if a token of 12 or more characters looks generated."""
    if len(token) < MIN_RANDOM_CHARS or token.isalpha() or is_known_harmless(token) or is_placeholder(token):
        return False
    if _HEX.fullmatch(token):
        return any(map(str.isdigit, token)) and any(map(str.isalpha, token))
    switches = sum(a.isdigit() != b.isdigit() for a, b in itertools.pairwise(token))
    mixed = any(c.islower() for c in token) and any(c.isupper() for c in token)
    worded = worded_share(token)
    return switches > 1 and worded < (MOST_WORDS if mixed else MANY_WORDS) and entropy(token) > _MIN_ENTROPY


def is_jumbled(token: str) -> bool:
    """Return True for 16 or more letters with capitals anywhere.

    Such a key happens to have no digit.
    """
    return len(token) >= _MIN_JUMBLED and token.isalnum() and token.isascii() and _is_shuffled(token)


def looks_random_alone(token: str) -> bool:
    """Return True if a token is a secret without any context.

    It has 32 or more characters of all three classes.
    """
    if len(token) < _MIN_STANDALONE_CHARS or is_known_harmless(token) or _HEX.fullmatch(token):
        return False
    if sum(map(str.isdigit, token)) < _MIN_STANDALONE_DIGITS or not has_all_classes(token):
        return False
    return worded_share(token) < HALF_WORDS and entropy(token) >= _MIN_STANDALONE_ENTROPY


def is_ssh_public_key(token: str) -> bool:
    """Return True if `token` begins as a public key of ssh.

    That is the length and the name of an algorithm.
    """
    data = decode_base64(token[:_SSH_HEAD]) if token.startswith("AAAA") else None
    return data is not None and _SSH_NAME.match(data[4 : 4 + int.from_bytes(data[:4], "big")]) is not None


def decode_base64(text: str) -> bytes | None:
    """Return the bytes of base64 (padding optional), or None."""
    letters = text.rstrip("=")
    try:
        return base64.b64decode(letters + "=" * (-len(letters) % 4), validate=True)
    except binascii.Error:
        return None


def looks_like_password(token: str) -> bool:
    """Return True if a token looks like a chosen password.

    It has six or more characters: letters with digits or symbols inside.
    """
    if len(token) < _MIN_PASSWORD or token.isalpha() or is_placeholder(token):
        return False
    letters, digits = any(map(str.isalpha, token)), any(map(str.isdigit, token))
    marked = token[0] in "#@~" and "/" not in token and letters and digits
    if not marked and (_is_known(token) or not _CODE_SYMBOLS.isdisjoint(token)):
        return False
    symbols = not _SYMBOLS.isdisjoint(token.rstrip("!?.;:"))
    if digits:
        return letters or symbols
    inner_capital = any(a.islower() and b.isupper() for a, b in itertools.pairwise(token))
    return letters and (symbols or (inner_capital and not _JOINTS.isdisjoint(token)))


def names_a_secret(key: str) -> bool:
    """Return True if a key such as `clientSecret` names a secret.

    `max_tokens` and `token_count` do not.
    """
    folded = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key[:256])
    return _SECRET_KEY.search(folded) is not None and not re.search(r"(?i)(?:max|min|num|total|n)_?tokens$", folded)
