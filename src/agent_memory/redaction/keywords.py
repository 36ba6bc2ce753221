"""Secrets known by the words around them: `DB_PASS=…`, "Passwort ist …", パスワードは…, "backup code: …".

Assignments are believed readily, prose only when the value looks chosen or generated, so that "the password is stored
hashed" stays as it is. No provider formats here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.redaction.protocol import Finding
from agent_memory.redaction.shapes import (
    is_known_harmless,
    is_placeholder,
    looks_like_password,
    looks_random,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

# Words that name a password in the languages we were asked about and their neighbours.
_PASSWORD: Final = (
    r"passwords?|passwd|passwort|passwörter|kennwort|kennwörter|losungswort|passphrase|passcode|pass[ -]?word|wachtwoord|wifi[ -]?key"
    r"|mots?\ de\ passe|contraseñas?|contrasena|contrasenya|palabra\ clave|senhas?|palavra-passe|parola\ d'ordine"
    r"|lösenord|adgangskode|salasana|hasł[oa]|heslo|şifre|пароль|пароля|κωδικός"
)
_PASSWORD_SHORT: Final = r"(?<![A-Za-z])(?:pwd|pw|pass|mdp|pin|pin\ code|puk|clave|parola|psw|pswd|passw)(?![A-Za-z])"
_TOKEN: Final = (
    r"(?:api|access|secret|private|signing|encryption|encrypt|master|shared|service|license|licence|account|storage|auth|session|deploy|app|client)"
    r"[ _-]?(?:keys?|tokens?|secrets?|credentials?|cookie)|tokens?|secrets?|credentials?|creds|apikey|schlüssel|jetons?|clé\ (?:api|secrète|d'accès|privée)"
    r"|chave\ (?:de\ )?(?:api|acesso|secreta)|clave\ (?:de\ )?(?:api|acceso|secreta)|ключ|токен|bearer"
)
_TOKEN_SHORT: Final = r"(?<![A-Za-z])(?:[a-z0-9]{1,12}_)?(?:key|auth|sig|signature|salt|pepper|nonce|seed)(?![A-Za-z])"
_CODE: Final = (
    r"(?:back-?up|recovery|rescue|2fa|mfa|otp|totp|one[- ]time|verification|security|unlock|access|door|gate|alarm|sms|sicherheits|wiederherstellungs|bestätigungs)"
    r"[ -]?(?:2fa[ -])?(?:codes?|pin|passcode|schlüssel)|(?<![a-z])(?:otp|totp|cvv|cvc|pin|puk|tan)(?![a-z])|türcode|code\ (?:de\ )?(?:secours|récupération|vérification)|código\ de\ (?:verificaci[oó]n|recuperaci[oó]n|respaldo|backup)"
)
_SUFFIX: Final = r"(?:_?(?:prod|production|staging|stage|dev|live|test|old|new|main|value|default|primary|secondary|base64|b64|id|\d{1,3}))?"

_ASSIGN: Final = re.compile(
    rf"""(?xi)
    (?: (?P<password>(?:{_PASSWORD})|{_PASSWORD_SHORT}) | (?P<token>(?:{_TOKEN})|{_TOKEN_SHORT}) | (?P<code>{_CODE}) )
    {_SUFFIX} (?:[ ]?\([^()\n]{{0,40}}\))? ["'`*\]]{{0,3}} [ \t]{{0,3}} (?: :=|=>|->|==?|[:：＝→] ) [ \t]{{0,8}} [*_]{{0,2}}
    (?: "(?P<dq>[^"\n]{{1,200}})" | '(?P<sq>[^'\n]{{1,200}})' | `(?P<bq>[^`\n]{{1,200}})` | (?P<bare>[^\s"'`,，。、]{{1,300}}+) )
    """
)
_COPULA: Final = r"(?:is|was|are|be|ist|lautet|war|wäre|sind|est|était|sera|es|era|é|são|será|is\ now|to|auf|à|zu|hei(?:ß|ss)t|=|→|->|называется)"
_PROSE: Final = re.compile(
    rf"""(?xi)
    (?<![\w])(?: (?P<password>(?:{_PASSWORD})|{_PASSWORD_SHORT}) | (?P<token>(?:{_TOKEN})|{_TOKEN_SHORT}) | (?P<code>{_CODE}) )
    (?P<gap> \b [^\n=?;]{{0,60}}? [\s,] {_COPULA} \s{{1,3}} (?:(?:now|still|always|just|jetzt|noch|immer|maintenant|toujours|ahora|agora|currently|actually|set\ to)\s)? :?\s{{0,2}} )
    (?: "(?P<dq>[^"\n]{{3,200}})" | '(?P<sq>[^'\n]{{3,200}})' | `(?P<bq>[^`\n]{{3,200}})` | [«“„「](?P<gq>[^»”“」\n]{{3,200}}) | (?P<bare>[^\s"'`«“„「]{{4,300}}+) )
    """
)
_NEAR: Final = re.compile(
    rf"""(?xi)
    (?<![\w])(?: (?P<password>(?:{_PASSWORD})|{_PASSWORD_SHORT}) | (?P<token>(?:{_TOKEN})) | (?P<code>{_CODE}) )
    (?P<gap> [^\n\w]{{1,4}} (?:[^\n]{{0,40}}?[\s("'`:,«]{{1,3}})?? )
    (?P<bare>[^\s"'`(),;«»]{{6,300}}+)
    """
)
_CJK: Final = re.compile(
    r"(?:パスワード|暗証番号|パスフレーズ|トークン|秘密鍵|APIキー|アクセスキー|シークレット|密码|密碼|口令|令牌|密钥|密鑰|秘钥|비밀번호|암호|토큰)"
    r"[^\n。！？]{0,14}?(?:は|是|为|為|が|:|：|=|은|는)\s{0,3}[「『“\"'`]?(?P<bare>[!-~]{4,200}+)"
)
_PAIR: Final = re.compile(
    r"(?i)\b(?:log-?in|user(?:name)?|account|konto|benutzer|creds|credentials?|zugangsdaten|zugang|identifiants?|credenciales|acceso|acesso|root|admin)\b"
    r"(?:[^\n]{0,40}?[ \t(:\"'`=][\w.@+-]{2,64})?[\"'`]?(?:(?P<slash>[ \t]{1,2}[/|][ \t]{1,2})|[/|:])[\"'`]?(?P<bare>[^\s\"'`/]{6,100}+)"
)
_PHRASE: Final = re.compile(
    r"(?i)\b(?:seed|recovery|mnemonic|secret|backup|wallet)[ -]?(?:phrase|words|seed)\b[^\n:]{0,40}?(?::|\bis\b|=)\s{0,3}[\"'`]?(?P<bare>[a-z]{3,10}(?:[ ,]{1,2}[a-z]{3,10}){7,26})"
)
_CODE_VALUE: Final = re.compile(r"#?(?=[A-Za-z-]{0,8}\d)[A-Za-z0-9]{2,12}(?:[- ][A-Za-z0-9]{2,12}){0,7}")
_DIGITS: Final = re.compile(r"[\s:#,(\"'`是はist=]{1,8}(?:\w{2,5}\s)?(?P<bare>\d{3,8}(?:[- ]\d{3,8}){0,5})(?![\w.%])")
_CODE_WORD: Final = re.compile(rf"(?i)(?<![\w])(?:{_CODE})(?![A-Za-z])")

# What is said about passwords, not what they are.
_PREDICATES: Final = frozenset(
    """not a an the in on at by for from with too very only also just now still never always being been required optional
    wrong incorrect correct invalid valid empty missing secret safe unsafe weak strong long short fine good bad ok okay right
    different same case-sensitive sensitive plaintext plain text public private broken gone old new known unknown there here
    nicht falsch richtig leer lang kurz geheim gut alt neu ein eine der die das im in zu noch schon bei
    pas incorrect vide long un une le la dans trop obligatoire requis no incorrecta correcta vacía una el en muy obligatoria
    não errada vazia uma o a em muito obrigatória what that this yours mine theirs something anything nothing null none default
    read write readonly admin unset set kept part one up out off over under about per via due because
    leave keep change reset stay become make use be do get see allow let have enter type choose pick send""".split()
)
_PREDICATE_ENDING: Final = re.compile(
    r"(?i).*(?:ed|ing|able|ible|less|ive|ory|ent|ant|ly|ous|iert|lich|bar|isch|ado|ada|ido|ida|é|ée|ées)"
)
_TRAILING: Final = ".,;:)]}>\"'`、。，；：）」』”»*_"


def find_keyword_secrets(text: str) -> Iterator[Finding]:
    """Yield every secret in `text` that a word before it gives away."""
    for match in _ASSIGN.finditer(text):
        yield from _judged(text, match, assigned=True)
    for match in _PROSE.finditer(text):
        yield from _judged(text, match, assigned=False)
    for match in _NEAR.finditer(text):
        yield from _near(match)
    for match in _CJK.finditer(text):
        value = match["bare"].rstrip(_TRAILING)
        if not is_placeholder(value) and not value.isalpha():
            yield Finding(match.start("bare"), match.start("bare") + len(value), "password")
    for match in _PAIR.finditer(text):
        value = match["bare"].rstrip(_TRAILING)
        if looks_like_password(value) if match["slash"] else _is_surely_password(value):
            yield Finding(match.start("bare"), match.start("bare") + len(value), "password")
    for match in _PHRASE.finditer(text):
        yield Finding(*match.span("bare"), "seed-phrase")
    for word in _CODE_WORD.finditer(text):
        if match := _DIGITS.match(text, word.end()):
            yield Finding(*match.span("bare"), "code")


def _kind(match: re.Match[str]) -> str:
    return "password" if match["password"] else "token" if match["token"] else "code"


def _judged(text: str, match: re.Match[str], *, assigned: bool) -> Iterator[Finding]:
    """Decide on `keyword = value` (`assigned`) or `keyword … is value`."""
    kind = _kind(match)
    for group in ("dq", "sq", "bq", "gq", "bare"):
        if group in match.re.groupindex and match[group]:
            break
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
    prose = value.isalpha() and (
        value.lower() in _PREDICATES
        or _PREDICATE_ENDING.fullmatch(value) is not None
        or re.match(r"[ \t]+[a-zà-ÿ]{2,}", rest) is not None
    )
    reference = "." in value and re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?", value) and value.islower()
    return not prose and not (reference and re.match(r"\s*$|[),;]", rest) and value.split(".")[0] in _OBJECTS)


# Words that mean much besides: "la clave es simplificar", "the pin is removed".
_AMBIGUOUS: Final = frozenset(("clave", "pass", "pin", "parola"))
_OBJECTS: Final = frozenset(
    "self this req request user config settings env os args form data body params options ctx props state".split()
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
    if not value.isalpha() or value.lower() in _PREDICATES or _PREDICATE_ENDING.fullmatch(value):
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
