"""Secrets known by the words around them: `DB_PASS=…`, "Passwort ist …", パスワードは…, "backup code: …".

Assignments are believed readily, prose only when the value looks chosen or generated, so that "the password is stored
hashed" stays as it is. The words stand in `patterns/keywords.yaml`; no provider formats here.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.redaction.data import read_patterns
from agent_memory.redaction.protocol import Finding
from agent_memory.redaction.shapes import (
    is_known_harmless,
    is_placeholder,
    looks_like_password,
    looks_random,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_VALUE: Final = (
    r"""(?: "(?P<dq>[^"\n]{1,200})" | '(?P<sq>[^'\n]{1,200})' | `(?P<bq>[^`\n]{1,200})`"""
    r""" | [\u00ab\u201c\u201e\u300c](?P<gq>[^\u00bb\u201c\u201d\u300d\n]{1,200})"""
    r""" | (?P<bare>[^\s"'`\u00ab\u201c\u201e\u300c\uff0c\u3001\u3002]{1,300}+) )"""
)
_QUOTED_GROUPS: Final = ("dq", "sq", "bq", "gq")
_ADVERB: Final = (
    r"(?:now|still|always|just|jetzt|noch|immer|maintenant|toujours|ahora|agora|currently|actually|set[ ]to)"
)


class _Patterns(NamedTuple):
    """Compiled from `patterns/keywords.yaml`."""

    assigned: re.Pattern[str]
    told: re.Pattern[str]
    near: re.Pattern[str]
    code: re.Pattern[str]
    predicates: frozenset[str]
    predicate_ending: re.Pattern[str]


@functools.cache
def _patterns() -> _Patterns:
    data = read_patterns("keywords")

    def alternatives(name: str) -> str:
        return "|".join(word.replace(" ", r"\ ") for word in data[name])

    short = rf"(?<![A-Za-z])(?:{alternatives('password_short')})(?![A-Za-z])"
    token_short = rf"(?<![A-Za-z])(?:{alternatives('token_short')})(?![A-Za-z])"
    password = rf"(?P<password>{alternatives('password')}|{short})"
    token = rf"(?P<token>{alternatives('token')}|{token_short})"
    named_token = rf"(?P<token>{alternatives('token')})"
    code = rf"(?P<code>{alternatives('code')})"
    return _Patterns(
        assigned=re.compile(
            rf"""(?xi) (?: {password} | {token} | {code} ) (?:_?(?:{alternatives("suffix")}))?
            (?:[ ]?\([^()\n]{{0,40}}\))? ["'`*\]]{{0,3}} [ \t]{{0,3}} (?: :=|=>|->|==?|[:\uff1a\uff1d\u2192] )
            [*_]{{0,2}} [ \t]{{0,8}} [*_]{{0,2}} {_VALUE}"""
        ),
        told=re.compile(
            rf"""(?xi) (?<![\w])(?: {password} | {token} | {code} )
            (?: \b [^\n=?;]{{0,60}}? [\s,] (?:{alternatives("copula")}) \s{{1,3}} (?:{_ADVERB}\s)? :?\s{{0,2}} )
            {_VALUE}"""
        ),
        near=re.compile(
            rf"""(?xi) (?<![\w])(?: {password} | {named_token} | {code} )
            (?P<gap> [^\n\w]{{1,4}} (?:[^\n]{{0,40}}?[\s("'`:,\u00ab]{{1,3}})?? )
            (?P<bare>[^\s"'`(),;\u00ab\u00bb]{{6,300}}+)"""
        ),
        code=re.compile(rf"(?i)(?<![\w])(?:{alternatives('code')})(?![A-Za-z])"),
        predicates=frozenset(data["predicates"]),
        predicate_ending=re.compile(rf"(?i).*(?:{'|'.join(data['predicate_endings'])})"),
    )


_CJK: Final = re.compile(
    # password, PIN, passphrase, token, secret key, API key, access key in Japanese, Chinese (both scripts), Korean
    r"(?:\u30d1\u30b9\u30ef\u30fc\u30c9|\u6697\u8a3c\u756a\u53f7|\u30d1\u30b9\u30d5\u30ec\u30fc\u30ba"
    r"|\u30c8\u30fc\u30af\u30f3"
    r"|\u79d8\u5bc6\u9375|API\u30ad\u30fc|\u30a2\u30af\u30bb\u30b9\u30ad\u30fc"
    r"|\u30b7\u30fc\u30af\u30ec\u30c3\u30c8|\u5bc6\u7801|\u5bc6\u78bc"
    r"|\u53e3\u4ee4|\u4ee4\u724c|\u5bc6\u94a5|\u5bc6\u9470|\u79d8\u94a5|\ube44\ubc00\ubc88\ud638|\uc554\ud638|\ud1a0\ud070)"
    # ... then "is" in one of them, and printable ASCII
    r"[^\n\u3002\uff01\uff1f]{0,14}?(?:\u306f|\u662f|\u4e3a|\u70ba|\u304c|:|\uff1a|=|\uc740|\ub294)"
    r"\s{0,3}[\u300c\u300e\u201c\"'`]?"
    r"(?P<bare>[!-~]{4,200}+)"
)
_PAIR: Final = re.compile(
    r"(?i)\b(?:log-?in|user(?:name)?|account|konto|benutzer|creds|credentials?|zugangsdaten|zugang"
    r"|identifiants?|credenciales|acceso|acesso|root|admin)\b"
    r"(?:[^\n]{0,40}?[ \t(:\"'`=][\w.@+-]{2,64})?[\"'`]?(?:(?P<slash>[ \t]{1,2}[/|][ \t]{1,2})|[/|:])"
    r"[\"'`]?(?P<bare>[^\s\"'`/]{6,100}+)"
)
_PHRASE: Final = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|secret|backup|wallet)[ -]?(?:phrase|words|seed)\b[^\n:]{0,40}?"
    r"(?::|\bis\b|=)\s{0,3}[\"'`]?(?P<bare>[a-z]{3,10}(?:[ ,]{1,2}[a-z]{3,10}){7,26})"
)
_CODE_VALUE: Final = re.compile(r"#?(?=[A-Za-z-]{0,8}\d)[A-Za-z0-9]{2,12}(?:[- ][A-Za-z0-9]{2,12}){0,7}")
_DIGITS: Final = re.compile(
    r"[\s:#,(\"'`\u662f\u306fist=]{1,8}(?:\w{2,5}\s)?(?P<bare>\d{3,8}(?:[- ]\d{3,8}){0,5})(?![\w.%])"
)
_TRAILING: Final = ".,;:)]}>\"'`\u3001\u3002\uff0c\uff1b\uff1a\uff09\u300d\u300f\u201d\u00bb*_"


def find_keyword_secrets(text: str) -> Iterator[Finding]:
    """Yield every secret in `text` that a word before it gives away."""
    patterns = _patterns()
    for match in patterns.assigned.finditer(text):
        yield from _judged(text, match, assigned=True)
    for match in patterns.told.finditer(text):
        yield from _judged(text, match, assigned=False)
    for match in patterns.near.finditer(text):
        yield from _near(match)
    yield from _asian(text)
    for match in _PAIR.finditer(text):
        value = match["bare"].rstrip(_TRAILING)
        if looks_like_password(value) if match["slash"] else _is_surely_password(value):
            yield Finding(match.start("bare"), match.start("bare") + len(value), "password")
    for match in _PHRASE.finditer(text):
        yield Finding(*match.span("bare"), "seed-phrase")
    for word in patterns.code.finditer(text):
        if number := _DIGITS.match(text, word.end()):
            yield Finding(*number.span("bare"), "code")


def _asian(text: str) -> Iterator[Finding]:
    for match in _CJK.finditer(text):
        value = match["bare"].rstrip(_TRAILING)
        if not is_placeholder(value) and not value.isalpha():
            yield Finding(match.start("bare"), match.start("bare") + len(value), "password")


def _is_predicate(word: str) -> bool:
    patterns = _patterns()
    return word.lower() in patterns.predicates or patterns.predicate_ending.fullmatch(word) is not None


def _kind(match: re.Match[str]) -> str:
    return "password" if match["password"] else "token" if match["token"] else "code"


def _judged(text: str, match: re.Match[str], *, assigned: bool) -> Iterator[Finding]:
    """Decide on `keyword = value` (`assigned`) or `keyword … is value`."""
    kind = _kind(match)
    group = next((name for name in _QUOTED_GROUPS if match[name]), "bare")
    quoted = group != "bare"
    value = match[group] if quoted else match[group].rstrip(_TRAILING)
    if len(value) < 3 or is_placeholder(value):  # noqa: PLR2004 - nothing to protect in one or two letters
        return
    rest = text[match.start(group) + len(value) : match.start(group) + len(value) + 12]
    if assigned:
        secret = _is_assigned_secret(kind, value, rest, quoted=quoted)
    else:
        ambiguous = match[kind].lower() in _AMBIGUOUS and value.isalpha()
        secret = not ambiguous and _is_told_secret(kind, value, rest, quoted=quoted)
    if secret:
        yield Finding(match.start(group), match.start(group) + len(value), kind)


def _is_assigned_secret(kind: str, value: str, rest: str, *, quoted: bool) -> bool:
    if kind == "code":
        return _CODE_VALUE.fullmatch(value) is not None and not is_known_harmless(value)
    if kind == "token":
        if " " in value or is_known_harmless(value):
            return False
        return looks_random(value) or looks_like_password(value) or (quoted and len(value) >= 8 and value.isalnum())  # noqa: PLR2004
    if quoted:
        return True
    if value.startswith(("/", "~/", "./")) and value.count("/") > 1:
        return False  # PWD=/home/ci/project, password_file: ./secrets/db
    # "password: at least eight characters" goes on in prose; "password: hunter" ends there.
    prose = value.isalpha() and (_is_predicate(value) or re.match(r"[ \t]+[a-z\u00e0-\u00ff]{2,}", rest) is not None)
    reference = "." in value and re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?", value) and value.islower()
    return not prose and not (reference and re.match(r"\s*$|[),;]", rest) and value.partition(".")[0] in _OBJECTS)


# Words that mean much besides: "la clave es simplificar", "the pin is removed".
_AMBIGUOUS: Final = frozenset(("clave", "pass", "pin", "parola"))
_OBJECTS: Final = frozenset(
    (
        "self",
        "this",
        "req",
        "request",
        "user",
        "config",
        "settings",
        "env",
        "os",
        "args",
        "form",
        "data",
        "body",
        "params",
        "options",
        "ctx",
        "props",
        "state",
    )
)


def _is_told_secret(kind: str, value: str, rest: str, *, quoted: bool) -> bool:
    if kind == "code":
        return _CODE_VALUE.fullmatch(value) is not None and not is_known_harmless(value)
    if kind == "token":
        return looks_random(value) or (looks_like_password(value) and len(value) >= 8)  # noqa: PLR2004
    if looks_like_password(value) or (quoted and not value.islower()) or re.fullmatch(r"\d{4,12}", value):
        return True
    if quoted:
        return " " not in value or len(value.split()) >= 4  # noqa: PLR2004 - 'correct horse battery staple'
    if not value.isalpha() or _is_predicate(value):
        return False
    return len(value) >= 5 and re.match(r"\s*(?:$|[.,;!)\n]|and\b|und\b|et\b|y\b)", rest) is not None  # noqa: PLR2004


def _near(match: re.Match[str]) -> Iterator[Finding]:
    """Decide on `keyword value` with nothing, or a few words, between."""
    value = match["bare"].rstrip(_TRAILING)
    start = match.start("bare")
    direct = len(match["gap"].strip()) <= 1
    kind = _kind(match)
    if looks_random(value) or (kind == "password" and direct and _is_surely_password(value)):
        yield Finding(start, start + len(value), kind)


def _is_surely_password(value: str) -> bool:
    """Tell whether `value`, right after the word password, is one: two of digit, symbol, inner capital."""
    if not looks_like_password(value) or re.fullmatch(r"[A-Za-z]+\d|\d+[A-Za-z]+", value):
        return False
    inner = value[1:]
    signs = (
        any(c.isdigit() for c in value),
        any(not c.isalnum() and c not in "/-_." for c in value.rstrip("!?")),
        any(c.isupper() for c in inner) and any(c.islower() for c in value),
    )
    return sum(signs) >= 2  # noqa: PLR2004
