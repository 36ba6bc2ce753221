"""Secrets known by their context: .pgpass, named values, login pairs, codes.

Also lists of one-time codes after a word that names them, and numbers of persons. Each rule is searched only where its
stem is. Single words are in `keywords.py`, forms with check digits in `providers.py`.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.language.languages import load_patterns
from agent_memory.redaction.findings import (
    LOWERED_LITERALS,
    SecretFinding,
    iter_digit_matches,
    iter_line_groups,
    iter_matches,
    lower_letters,
)
from agent_memory.redaction.keywords import is_chosen, is_surely_password, is_worth, value_in
from agent_memory.redaction.shapes import (
    has_all_classes,
    is_harmless_code,
    is_placeholder,
    looks_like_password,
    looks_random,
    names_a_secret,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_CJK: Final = re.compile(
    # password, PIN, passphrase, token, secret key, API key, access key in Japanese, Chinese (both scripts), Korean
    r"(?:パスワード|暗証番号|パスフレーズ|トークン|合言葉|秘密鍵|APIキー|アクセスキー|シークレット|密码|密碼|口令|令牌|密钥|密鑰|秘钥|비밀번호|암호|토큰)"
    # ... then "is" in one of them, and printable ASCII
    r"[^\n。\uff01\uff1f]{0,14}?(?:は|是|为|為|が|:|\uff1a|=|은|는|改成|设为|[ ])\s{0,3}"
    r"[「『“\"'`]?(?P<bare>[!-~]{4,200}+)"
)
_PAIR: Final = re.compile(
    r"(?i)\b(?:log[- ]?in(?:[ ](?:as|with))?|logged[ ]in[ ]as|sign[ -]?in|connect[ ]as|user(?:name)?|account|konto"
    r"|benutzer|wi-?fi|wlan|ssid|network|hotspot|router|creds|credentials?|zugangsdaten|zugang|identifiants?"
    r"|credenciales|acceso|acesso|root|admin)\b(?:[^\n]{0,40}?[ \t(:\"'`=][\w.@+-]{2,64})?[\"'`]?(?:"
    r"(?P<slash>[ \t]{1,2}[/|]{1,2}[ \t]{1,2})|[/|:])[\"'`]?(?P<bare>[^\s\"'`/]{6,100}+)"
)
_PHRASE: Final = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|secret|backup|wallet)(?:[ -]?(?:phrase|words|seed))?\b[^\n:]{0,40}?(?::|\bis\b"
    r"|=)\s{0,3}[\"'`]?(?P<bare>(?:\d{1,2}[.)]?[ ])?[a-z]{3,10}(?:[ ,\n]{1,2}(?:\d{1,2}[.)]?[ ])?[a-z]{3,10}){11,26})"
)
_DIGITS: Final = re.compile(
    r"(?i)\b(?:(?:back-?up|recovery|rescue|2fa|mfa|otp|totp|one[- ]time|verification|security|unlock|access|door|gate"
    r"|alarm|sms|login|entry|safe|keypad|authentication|confirmation|garage|lock|sicherheits|bestätigungs"
    r"|tür)[ -]?(?:2fa[ -])?(?:codes?|pin)|pin(?:コード|码)?|geheimzahl|cvv2?|cvc2?|t?otp|puk|tan|code d.accès"
    r"|voicemail[ ]pin|(?:safe|lock|vault|locker|bike|gate)(?:.s)?[ ]comb(?:o|ination))(?:[ ](?:for|to|of|für"
    r"|pour)(?:[ ]\w{1,16}){1,4}?)?[\s:#,(\"'`是はist=]{1,8}(?:\w{2,5}\s)?(?P<bare>\d{3,8}(?:[- ]\d{3,8}){0,5})(?![\w%]"
    r"|[.-]\w)"
)
_PGPASS: Final = re.compile(
    r"(?m)^(?!\S*(?:/|\.(?:py|js|ts|go|rs|c|h"
    r"|java)):)[^\s:]{1,100}:(?:\d{2,5}|\*):[^\s:]{1,64}:[^\s:]{1,64}:(?P<bare>\S{4,200}+)"
)
_NETRC: Final = re.compile(r"\blogin\s{1,8}\S{1,100}\s{1,8}password\s{1,8}(?P<bare>\S{3,200}+)")
_NAMED: Final = re.compile(
    r"""(?xi) [\"']?\b(?:name|key|field|variable|var|env|id|label|title|property|setting|param(?:eter)?)[\"']?
    \s{0,3}[:=]\s{0,3}[\"']?(?P<name>[\w.-]{2,64})[\"']?\s{0,3}[,;]?\s{1,12}(?:-\s)?[\"']?(?:value|val|content|secret|default|data)[\"']?\s{0,3}[:=]\s{0,3}
    (?:"(?P<dq>[^"\n]{3,300}+)"|'(?P<sq>[^'\n]{3,300}+)'|(?P<bare>[^\s"',;}{<>]{3,300}+))"""
)
_ELEMENT: Final = re.compile(
    r"<(?:[\w-]{1,16}:)?(?P<name>[\w.-]{2,64})(?:\s[^<>\n]{0,80})?>\s{0,8}(?P<bare>[^<>\n]{3,300}?)\s{0,8}</"
)
_PLIST: Final = re.compile(
    r"<key>(?P<name>[^<>\n]{2,64})</key>\s{0,16}<(?:string|data)>\s{0,8}(?P<bare>[^<>\n]{3,300}?)\s{0,8}</"
)
_LOCK: Final = re.compile(
    r"(?i)(?:\b(?:(?:front|back|side)[ ]door|door|gate|alarm|garage|safe|keypad|lobby|entry|entrance|(?:bike|suitcase"
    r"|pad)[ ]?lock|locker)[ ]?[:=][ ]?(?P<a>\d{4,8})(?![\w:.-])|\b(?:door|gate|alarm|garage|keypad|disarm|unlock|open"
    r"|enter|type|press)\w*\b[^\n\d]{0,30}(?P<b>\d{4,8}#)|\b(?:unlock|disarm|open)\w*\b[^\n\d]{0,24}\b(?:with|by|using"
    r"|type|press|enter|is|via)[ ](?P<c>\d{4,8})(?![\w%:.-])|\bcode[ ]for\b[^\n\d]{0,40}\b(?:door|gate|alarm|garage"
    r"|safe|lock|building|office|entrance|lift|elevator)\b[^\n\d]{0,12}(?P<e>\d{4,8})(?![\w%:.-])|\b(?:use|enter"
    r"|type)[ ](?P<f>\d{6})[ ](?:to|as)\b|(?<![\w.])(?P<d>(?:[A-Z]{1,2}-)?\d{4,8})[ ]is[ ](?:your|my"
    r"|our)\b[^\n.]{0,30}\bcode\b)"
)
_LOCK_STEMS: Final = (":", "=", "#", "lock", "disarm", "open", "code")
_ENTERED: Final = re.compile(r"(?:[Uu][Ss]|[Tt][Yy][Pp]|[Nn][Tt][Ee])[EeRr] \d{6}")
"""One of these is in each match of `_LOCK`, and a stem in each of `_CODE_IS`."""
_CODE_IS: Final = re.compile(
    r"(?i)(?P<word>[\w-]{1,24})?[ -]?\bcode(?:[ ](?:is|ist|est|es|lautet|è|é)|[ ]?[:=])[ ]?"
    r"(?P<bare>\d{4,8})(?![\w%:.-]\w|\w)"
)
_OTHER_CODE_WORDS: Final = """
    error status exit zip postal post area country dial dialing dialling http response return result reason bar qr
    source color colour product item order sku tax hs naics cost course class room flight airport currency language
    promo coupon discount bug op key char character unicode ascii swift sort bank region plan model part event message
    log failure fault stop trouble city state hts the
"""
_OTHER_CODES: Final = frozenset(_OTHER_CODE_WORDS.split())
"""Words before "code" that name a harmless one."""
_IDENTIFIED: Final = re.compile(
    r"(?i)\bidentified\s{1,4}(?:with\s{1,4}\S{1,40}\s{1,4})?by\s{1,4}(?:'(?P<sq>[^'\n]{1,200}+)'|\"(?P<dq>[^\"\n]{1,200}+)\"|(?P<bare>[^\s'\";]{3,200}+))"
)
_SAID_PASSWORD: Final = re.compile(
    r"(?i)\b(?:encrypted\s{1,4})?password\s{1,4}(?:'(?P<sq>[^'\s]{3,200}+)'|\"(?P<dq>[^\"\s]{3,200}+)\")"
)
_OTP: Final = re.compile(
    r"(?i)(?:\b(?:t?otp|2fa|mfa|authenticator|two[- ]factor|set-?up[ ]key|secret[ ]key|manual(?:[ ]entry)?[ ]key"
    r"|key[ ]in[ ]the[ ]app)\b[^\n]{0,40}?|otpauth://[^\s]{0,200}?[?&]secret=)(?<![\w])(?P<bare>(?-i:[A-Z2-7]{16,128}+)"
    r"|(?-i:[a-z2-7]{32})|(?:[A-Za-z2-7]{4}[ -]){3,15}[A-Za-z2-7]{4})(?![\w])"
)
_APP_PASSWORD: Final = re.compile(
    r"(?i)\bapp(?:lication)?[ -](?:specific[ -])?passwords?\b[^\n]{0,30}?"
    r"(?<![\w])(?P<bare>[a-z]{4}(?:[ -][a-z]{4}){3})(?![\w])"
)
_SET: Final = re.compile(
    r"(?i)(?:\b(?:set|with)_?|[.])(?:password|passwd|pwd|secret|token|api_?key"
    r"|passphrase)\s?\(\s{0,3}(?:\"(?P<dq>[^\"\n]{4,200}+)\"|'(?P<sq>[^'\n]{4,200}+)')\s{0,3}\)"
)
_ARGUMENTS: Final = re.compile(
    r"(?i)(?:credentials?|auth|login|connect|authenticate|sign_?in)\w{0,20}\s?=?\s?\(\s{0,3}[\"'][^\"'\n]{1,64}[\"']\s{"
    r"0,3},\s{0,3}(?:\"(?P<dq>[^\"\n]{4,200}+)\"|'(?P<sq>[^'\n]{4,200}+)')"
)
_DATABASE_CALL: Final = re.compile(
    r"\b(?:getConnection|createConnection|mysqli(?:_connect)?|PDO)\s?\(\s{0,3}"
    r"(?:\"[^\"\n]{0,200}+\"|'[^'\n]{0,200}+'|[^()\"'\n,]{1,80}+),\s{0,3}[\"'][\w.@-]{1,64}[\"']\s{0,3},\s{0,3}"
    r"(?:\"(?P<dq>[^\"\n]{3,200}+)\"|'(?P<sq>[^'\n]{3,200}+)')"
)
"""Address, login and password in this order."""
_DEFINE: Final = re.compile(
    r"\bdefine\s?\(\s{0,3}[\"'][A-Z0-9_]{2,64}[\"']\s{0,3},\s{0,3}(?:\"(?P<dq>[^\"\n]{32,300}+)\"|'(?P<sq>[^'\n]{32,300}+)')"
)
_TUPLE: Final = re.compile(
    r"[\"'](?P<name>[\w.-]{2,64})[\"']\s{0,3},\s{0,3}(?:\"(?P<dq>[^\"\n]{4,300}+)\"|'(?P<sq>[^'\n]{4,300}+)')"
)
_BLOCK: Final = re.compile(
    r"(?:variable|secret|param|setting)\s{1,3}\"(?P<name>[\w.-]{2,64})\"\s{0,3}\{[^{}]{0,300}?(?:default"
    r"|value)\s{0,8}=\s{0,8}\"(?P<dq>[^\"\n]{3,300}+)\""
)
_MAIL: Final = re.compile(r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{2,24}){1,4}[:|](?P<bare>[^\s/\"'`]{6,100}+)")
_WANTS: Final = re.compile(
    r"(?i)\b(?:type|enter|try|wants|takes|opens[ ]with|works[ ]with|(?:un)?locks?(?:[ ][\w-]{1,16}){0,3}[ ]with|(?:log"
    r"|sign|get)[ ](?:in|on)[ ](?:with|using)|key[ ]in|punch[ ]in)[ ][\"'`]?(?P<bare>[^\s\"'`/]{8,64}+)"
)
_AWS_PAIR: Final = re.compile(
    r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}\b[^\n]{0,40}?(?<![\w/+])(?P<bare>[A-Za-z0-9/+]{40})(?![\w/+=])"
)
_BARE: Final = re.compile(r"(?<![\w/.-])(?:[0-9a-f]{32,64}|[A-Za-z0-9]{20,64})(?![\w/.-])")
_NEAR: Final = 60
_CELLS: Final = 64
_ADJACENT_DIGITS: Final = re.compile(r"\d\d")  # codes and personal numbers have some; most sentences have none
_FOUR_DIGITS: Final = re.compile(r"\d{4}")
_CODES: Final = ("code", "geheimzahl", "pin", "cvv", "cvc", "otp", "puk", "tan", "comb")
"""One of these is in each match of `_DIGITS`, in lower case; in each of `_PHRASE`, one of the next."""
_PHRASE_STEMS: Final = ("seed", "recovery", "mnemonic", "secret", "backup", "wallet")
_HEAD: Final = 32
_HEADING: Final = re.compile(r"[^\W\d][^\W\d .-]*(?:[ .-][^\W\d][^\W\d.-]*){0,3}")
_IN_SENTENCES: Final = frozenset(("the", "and", "for", "was", "were", "are", "has", "not", "but", "its"))
"""Words that no list of words for seed phrases has (BIP 39)."""
_LETTERS: Final = 8
_HASHES: Final = frozenset(
    ("plaintext", "scryptsy", "argonaut", "password", "required", "optional", "keychain", "keystore")
)
_VENDOR: Final = re.compile(rf"(?i)\b(?:{'|'.join(load_patterns('agent_memory.redaction', 'vendors')['vendors'])})")
_VENDOR_SAYS: Final = re.compile(r"(?i)\b(?:key|token|secret|api|pat|credential|dsn|auth)")


class _ContextRule(NamedTuple):
    """Rule for one form of a secret, such as a password argument.

    Attributes:
        stems: Literals; the text in lower case has one of them.
        pattern: Regular expression to search.
        kind: Kind of the secrets that it finds.
        is_secret: Returns True if a match counts.
        line_breaks: Most line breaks of a match if each match has a stem; None if only the text has one.
    """

    stems: tuple[str, ...]
    pattern: re.Pattern[str]
    kind: str
    is_secret: Callable[[re.Match[str]], bool] = lambda _: True
    line_breaks: int | None = None


def _is_named(match: re.Match[str]) -> bool:
    return names_a_secret(match["name"])


def _is_argument(match: re.Match[str]) -> bool:
    value, _ = value_in(match)
    return is_chosen(value) or looks_random(value)


FIRST_RULES: Final = (
    _ContextRule(("akia", "asia"), _AWS_PAIR, "aws-key", line_breaks=0),
    _ContextRule(("login",), _NETRC, "password"),
    _ContextRule(("identified",), _IDENTIFIED, "password", line_breaks=16),
    _ContextRule(("password",), _SAID_PASSWORD, "password", line_breaks=8),
    _ContextRule(("otp", "key", "2fa", "mfa", "authenticator", "factor"), _OTP, "totp-seed", line_breaks=0),
    _ContextRule(("app",), _APP_PASSWORD, "password", line_breaks=0),
    _ContextRule((":",), _PGPASS, "password", lambda match: looks_like_password(match["bare"])),
)
LAST_RULES: Final = (
    # An entry of name and value in JSON or YAML, and an element of XML.
    _ContextRule(("val", "content", "data"), _NAMED, "named-secret", _is_named),
    _ContextRule(("<key>",), _PLIST, "named-secret", _is_named),
    _ContextRule(("</",), _ELEMENT, "named-secret", _is_named),
    # Calls and pairs of code, such as setPassword with a text, or a login and a password as two arguments.
    _ContextRule(("word", "wd", "secret", "token", "key", "phrase"), _SET, "password", _is_argument, 7),
    _ContextRule(("credential", "auth", "login", "connect", "sign"), _ARGUMENTS, "password", _is_argument, 11),
    _ContextRule(("getconnection", "createconnection", "mysqli", "pdo"), _DATABASE_CALL, "password", line_breaks=13),
    _ContextRule(("define",), _DEFINE, "named-secret", lambda match: has_all_classes(value_in(match)[0]), 10),
    _ContextRule(("(", ","), _TUPLE, "named-secret", lambda match: _is_named(match) and is_chosen(value_in(match)[0])),
    _ContextRule(("{",), _BLOCK, "named-secret", _is_named),
)


LOWERED_LITERALS.add(
    itertools.chain(_PHRASE_STEMS, _CODES, _LOCK_STEMS, *(rule.stems for rule in (*FIRST_RULES, *LAST_RULES)))
)


def find_by_context(text: str) -> Iterator[SecretFinding]:
    """Yield every secret in `text` that its surroundings give away."""
    if not text.isascii():
        yield from _find_asian(text)
    lowered = lower_letters(text)
    yield from _apply_rules(FIRST_RULES, text, lowered)
    yield from _find_pairs(text)
    yield from _apply_rules(LAST_RULES, text, lowered)
    yield from _find_cells(text)
    for match in () if LOWERED_LITERALS.find(lowered).isdisjoint(_PHRASE_STEMS) else _PHRASE.finditer(text):
        if not _IN_SENTENCES.isdisjoint(match["bare"].lower().split()):
            continue  # "recovery: give the key that …"
        yield SecretFinding(*match.span("bare"), "seed-phrase")
    if _ADJACENT_DIGITS.search(text):
        yield from _find_codes(text, lowered)
    yield from _find_vendor_keys(text)


def is_pair(text: str) -> bool:
    """Return True if a decoded text is a login and a password."""
    login, sign, password = text.strip().partition(":")
    return bool(sign) and login.replace(".", "").replace("-", "").isalnum() and looks_like_password(password)


def _apply_rules(rules: Iterable[_ContextRule], text: str, lowered: str) -> Iterator[SecretFinding]:
    present = LOWERED_LITERALS.find(lowered)
    for stems, pattern, kind, is_secret, line_breaks in rules:
        if present.isdisjoint(stems):
            continue
        if line_breaks is None:
            matches = pattern.finditer(text)
        else:
            matches = iter_matches(pattern, stems, text, lowered, line_breaks)
        for match in matches:
            if is_secret(match):
                yield from _find_value(match, kind)


def _find_codes(text: str, lowered: str) -> Iterator[SecretFinding]:
    may_open = not text.isascii() or _ENTERED.search(text)  # other letters may stand for "k" and "s"
    if may_open or not LOWERED_LITERALS.find(lowered).isdisjoint(_LOCK_STEMS):
        for start, stop in iter_line_groups(text):
            if _FOUR_DIGITS.search(text, start, stop):
                yield from _find_long_codes(text, start, stop)
    for match in () if LOWERED_LITERALS.find(lowered).isdisjoint(_CODES) else _DIGITS.finditer(text):
        yield SecretFinding(*match.span("bare"), "code")


def _find_long_codes(text: str, start: int, stop: int) -> Iterator[SecretFinding]:
    """Yield codes of four and more digits in some lines."""
    for match in _LOCK.finditer(text, start, stop):
        yield SecretFinding(*match.span(match.lastgroup or 0), "code")
    for match in _CODE_IS.finditer(text, start, stop) if "code" in text[start:stop].casefold() else ():
        if (match["word"] or "").lower() not in _OTHER_CODES:
            yield SecretFinding(*match.span("bare"), "code")


def _find_vendor_keys(text: str) -> Iterator[SecretFinding]:
    for match in iter_digit_matches(_BARE, text):
        if not looks_random(match[0]):
            continue
        begin = max(0, match.start() - _NEAR)
        begin = max(begin, text.rfind("\n", begin, match.start()) + 1)
        if _VENDOR.search(text, begin, match.start()) and _VENDOR_SAYS.search(text, begin, match.start()):
            yield SecretFinding(*match.span(), "api-key")


def _find_value(match: re.Match[str], kind: str) -> Iterator[SecretFinding]:
    value, first = value_in(match)
    if is_worth(value):
        yield SecretFinding(first, first + len(value), kind)


def _find_pairs(text: str) -> Iterator[SecretFinding]:
    for match in iter_matches(_PAIR, "/|:", text):
        value, _ = value_in(match)
        if looks_like_password(value) and (match["slash"] or (is_chosen(value) and not {".", ":", "|"} & set(value))):
            yield from _find_value(match, "password")
    for match in itertools.chain(iter_matches(_MAIL, "@", text), iter_digit_matches(_WANTS, text)):
        value, _ = value_in(match)
        marked = not value.rstrip("!?").replace("-", "").replace(".", "").replace("_", "").isalnum()
        digits = sum(map(str.isdigit, value))
        if is_surely_password(value) and digits >= (2 if marked else 4):  # not "try PostgreSQL16"
            yield from _find_value(match, "password")


def _is_heading(name: str) -> bool:
    """Return True if a heading names a secret.

    "500 tokens" and code do not.
    """
    return len(name) <= _HEAD and _HEADING.fullmatch(name) is not None and names_a_secret(name)


def _find_cells(text: str) -> Iterator[SecretFinding]:
    """Yield cells of CSV and Markdown below headings of secrets."""
    heads: dict[int, str] = {}
    cells, position = 0, 0
    for line in text.split("\n") if "\n" in text else ():
        sign = next((sign for sign in "|,;\t" if sign in line), None)
        parts = line.split(sign, _CELLS) if sign is not None else []
        if heads and len(parts) == cells:
            start = position
            for number, part in enumerate(parts):
                value = part.strip(" \"'`")
                if number in heads and looks_like_password(value):
                    first = start + part.index(value)
                    yield SecretFinding(first, first + len(value), "named-secret")
                start += len(part) + 1
        else:
            names = (part.strip(" \"'`*") for part in parts)
            heads = {number: name for number, name in enumerate(names) if _is_heading(name)}
            cells = len(parts)
        position += len(line) + 1


def _find_asian(text: str) -> Iterator[SecretFinding]:
    for match in _CJK.finditer(text):
        value, first = value_in(match)
        letters = value.isalpha() and not (len(value) >= _LETTERS and value.lower() not in _HASHES)
        if not is_placeholder(value) and not letters:
            yield SecretFinding(first, first + len(value), "password")


_DATA: Final = load_patterns("agent_memory.redaction", "numbers")
_ADJACENT: Final = re.compile(r"\d\d|[a-z]\d|\d[a-z]")
"""Codes and numbers of persons have it; most sentences have not."""
CODES: Final = re.compile(rf"(?xi){_DATA['codes']}")
_LEAD: Final = re.compile(
    r"""(?xi) [\"'*_]{0,3} (?: [^\n.!?:=]{0,60}? (?:[:\uff1a=→>(\[{]|->|\b(?:are|is|were|lauten|sind|ist|sont|son
    |sono|são|zijn|är|to|on)\b
    |は|是) | [ ]?\r?\n | [ ]{1,3}(?=[\w-]{0,12}\d) ) [\s\"'`*•\[({|>+-]{0,12}"""
)
_CODE: Final = re.compile(r"[A-Za-z0-9]{3,14}(?:-[A-Za-z0-9]{3,14}){0,5}")
_MARKER: Final = re.compile(r"\d{1,2}[.):][ \t]")
_BETWEEN: Final = re.compile(
    r"[\s,;/|&\"'`•*\[\](){}+、\uff0c-]{1,16}(?:(?:and|or|und|oder|et|ou|y|e|o|en|och)[ ])?|\.\s"
)
_MAX_CODES: Final = 32
_VALUE: Final = re.compile(r"(?<![\w-])(?=[A-Z0-9 ./-]{0,20}\d)[A-Z0-9]{1,14}(?:[ ./-][A-Z0-9]{1,6}){0,7}(?!\w)")
_PERSON: Final = re.compile(
    rf"""(?xi) (?:{_DATA["persons"]}) (?:'?s)? (?:[ ](?:number|no\.?|nr\.?|id|num[eé]ro|n[uú]mero|code))?
    \b[^\n\d]{{0,30}}\Z"""
)
STEMS: Final = tuple(_DATA["code_stems"])
_PERSON_STEMS: Final = tuple(_DATA["person_stems"])
LOWERED_LITERALS.add(_PERSON_STEMS)
_BEFORE: Final = 80
"""Characters before a number that may have its label."""
_FORMS: Final = re.compile(
    r"""(?x) (?<![\w.-]) (?: (?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4} | \d{3}\.\d{3}\.\d{3}-\d{2}
    | [A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ ]?\d{2}[ ]?\d{2}[ ]?\d{2}[ ]?[A-D]
    | [A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]
    | [12]\d{2}(?:0[1-9]|1[0-2])(?:2[AB]|\d{2})\d{6}[ ]?\d{2} | [A-Z]{4}\d{6}[HM][A-Z]{5}[A-Z0-9]\d )(?![\w.-])"""
)
"""US social security, Brazilian CPF, UK national insurance, Italian codice fiscale, French NIR, Mexican CURP."""
_RANGE: Final = re.compile(r"\d{1,4}-\d{1,4}")
_MIN_DIGITS: Final = 5


def find_numbers(text: str) -> Iterator[SecretFinding]:
    """Yield listed codes and numbers of persons."""
    if not _ADJACENT.search(text):
        return
    lowered = lower_letters(text)
    for match in iter_matches(CODES, STEMS, text, lowered):
        yield from _find_listed(text, match.end())
    is_labelled = not (text.isascii() and LOWERED_LITERALS.find(lowered).isdisjoint(_PERSON_STEMS))
    for match in iter_digit_matches(_VALUE, text, least=_MIN_DIGITS) if is_labelled else ():
        start, end = match.span()
        if sum(map(str.isdigit, match[0])) < _MIN_DIGITS or _is_harmless_number(match[0]):
            continue
        if _PERSON.search(text, max(0, start - _BEFORE), start):
            yield SecretFinding(start, end, "personal-number")
    for match in iter_digit_matches(_FORMS, text, least=6):
        yield SecretFinding(*match.span(), "personal-number")


def _is_harmless_number(value: str) -> bool:
    return is_harmless_code(value) or _RANGE.fullmatch(value) is not None


def _find_listed(text: str, end: int) -> Iterator[SecretFinding]:
    """Yield the codes of a list.

    They have digits, or the same form as the one before.
    """
    lead = _LEAD.match(text, end)
    position, form, findings = lead.end() if lead else end, "", list[SecretFinding]()
    for _ in range(_MAX_CODES if lead else 0):
        if marker := _MARKER.match(text, position):
            position = marker.end()
        match = _CODE.match(text, position)
        same = re.sub(r"\w", "x", match[0]) if match else ""
        coded = match and (any(map(str.isdigit, match[0])) or same == form or (not form and "-" in match[0]))
        if match is None or not coded or is_harmless_code(match[0]):
            break
        findings.append(SecretFinding(*match.span(), "code"))
        form, position = same, match.end()
        between = _BETWEEN.match(text, position)
        if between is None:
            break
        position = between.end()
    if any(character.isdigit() for finding in findings for character in text[finding.start : finding.end]):
        yield from findings
