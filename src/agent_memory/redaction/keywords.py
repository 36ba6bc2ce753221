"""Secrets known by the words around them, such as `DB_PASS=…`.

An assignment counts nearly always, prose only when the value looks chosen or generated, so that "the password is stored
hashed" stays as it is. `patterns/keywords.yaml` has the words.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from agent_memory.language.languages import load_patterns
from agent_memory.redaction.findings import (
    LOWERED_LITERALS,
    MARKER,
    MARKER_PREFIX,
    TRAILING,
    SecretFinding,
    iter_matches,
    lower_letters,
    value_in,
)
from agent_memory.redaction.shapes import (
    UUID,
    is_harmless_code,
    is_harmless_password,
    is_jumbled,
    is_known_harmless,
    is_placeholder,
    looks_like_password,
    looks_random,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_VALUE: Final = (
    r"""(?: (?P<q>["'`])(?P<quoted>(?:(?!(?P=q))[^\\\n]|\\[^\n]){1,200}+)(?P=q)"""
    r""" | [«“„「『](?P<curly>[^»“”」』\n]{1,200}+)"""
    r""" | ["'`]?(?P<bare>[^\s"'`«“„「『\uff0c、。]"""
    r"""[^\s"`«“„「\uff0c、。]{0,300}+) )"""
)
_SIGN: Final = r"(?: :=|=>|->|==?|[:\uff1a\uff1d→] )"
_ADVERB: Final = (
    r"(?:now|still|always|just|jetzt|noch|immer|maintenant|toujours|ahora|agora|currently|actually|simply|set[ ]to)"
)
_GAP: Final = 70
_NEXT_TO: Final = 3
"""Most signs between a word and a value directly after it."""
# Words with many meanings: "la clave es simplificar", "the pin is removed".
_AMBIGUOUS: Final = frozenset(("clave", "claves", "pass", "pin", "parola", "parolă", "sandi"))
_TOKEN: Final = re.compile(r"[^\s\"'`(),;=«»]{6,300}+")
_WINDOW: Final = 120
_MARKER: Final = 50
_BEFORE: Final = 20
_OTHER_KEYS: Final = re.compile(
    r"(?i)(?:idempotency|cache|primary|foreign|public|partition|sort|object|row|kafka|message|routing|dedup\w{0,12}|correlation|lookup"
    r"|natural|composite|translation|s3|redis|map|hot)[ _-]?key$|(?:idempotency|dedup\w{0,12}|correlation)[ _-]?token$"
)
_LISTED: Final = 24
"""Secrets in one list; a text of nothing but secrets would else be walked to its end from each of them."""
_WITH: Final = re.compile(r"(?i)\b(?:with|mit|avec|con|met)\s{1,3}(?:the\s)?\w{1,20}\Z")
_NEAR_WORDS, _FAR_WORDS = 4, 6
"""Words from "is" to a word that names a token, to one that names a password: "X is our production API key"."""
_TRIES: Final = 4
"""Values checked after one word: a farther one rarely belongs to it, and hostile text has many."""


_DATA: Final = load_patterns("agent_memory.redaction", "keywords")


def _join_words(name: str) -> str:
    return "|".join(word.replace(" ", r"\ ") for word in _DATA[name])


WORDS: Final = tuple(
    (kind, str(stem), re.compile(pattern))
    for kind in ("password", "token", "token_short", "code")
    for stem, pattern in _DATA[kind].items()
)
"""Kind, stem and pattern of each word of the file; one is sought only in lines around its stem."""
LOWERED_LITERALS.add(stem for _, stem, _ in WORDS)
LINE_BREAKS: Final = 2
"""Most line breaks that a word looks at."""

_ASSIGNED: Final = re.compile(
    rf"""(?xi) (?:_?(?:{_join_words("suffix")}))? (?:[ ]?\([^()\n]{{0,40}}\))? ["'`*\]\\]{{0,4}} [ \t]{{0,3}}
    (?P<sign>{_SIGN}) [*_]{{0,2}} [ \t]{{0,8}} [*_\\]{{0,2}} {_VALUE}"""
)
_NEXT_LINE: Final = re.compile(
    rf"""(?xi) (?:[ ][^\n:=.;?]{{0,40}})? ["'*_]{{0,3}} [ \t]?
    (?:{_SIGN}|[ ]is|[ ]ist|[ ]est|[ ]es)? ["'*_]{{0,3}} [ \t]{{0,4}} \r?\n
    (?:[ \t]{{0,16}}\r?\n)? (?:[ \t>|*\#;]|//){{0,16}} (?:```\w{{0,8}}\n)?
    (?:(?:[-*•]|\d{{1,2}}[.):])[ \t]{{1,4}})? {_VALUE}[ \t.]{{0,4}} (?:\r?\n|\Z)"""
)
_HEADING_ROW: Final = re.compile(
    r"(?P<lead>[ \t>|]{0,8})[^\W\d][\w .-]{0,31}(?P<sign>[|;])"
    r"(?:[^\W\d][\w .-]{0,31}(?P=sign)){0,15}[^\W\d][\w .-]{0,31}"
)
"""Headings of a table without spaces around its signs, up to the label of a secret."""
_COPULA: Final = re.compile(
    rf"""(?xi) (?: [\s,](?P<copula>{_join_words("copula")})\s{{1,3}}(?:{_ADVERB}\s)?:?\s{{0,2}}
    | ['\u2019]s[ ]{{1,2}} | [ ]?[:\uff1a][ ]{{1,3}} | \uff1a )"""
)
_MORE: Final = re.compile(
    rf"""(?xi) [*_!?)\]]{{0,3}} ["'`]? [ \t.]{{0,3}} (?: (?:,|;|/|\||&|、|\uff0c|\r?\n) [ \t]{{0,8}}
    (?:(?:and|or|und|oder|et|ou|y|e|o)\b)? | (?:and|or|und|oder|et|ou|y|e|o)\b )
    [ \t]{{0,8}} (?P<bullet>[-*•]|\d{{1,2}}[.):])? [ \t]{{0,4}} {_VALUE}"""
)
_DIRECT: Final = re.compile(r"[ ](?P<bare>(?=\w{0,24}[A-Z])[A-Z][a-z]{2,12}(?:[A-Z][a-z]{2,12})?)[ \t.!]{0,3}(?:\n|\Z)")
"""A word in capitals right after "pwd", or after a word of other letters, with which the line ends."""
_SHORT_WORD: Final = 5
_SETS: Final = re.compile(r"(?i)\b(?:set|chang|reset|switch|updat)\w{0,4}\b[^\n]{0,40}\Z")
_IS: Final[dict[str, tuple[str, ...]]] = {
    "to": ("has",),
    "on": ("salasan",),
    "je": ("hesl", "geslo", "lozink"),
    "er": ("adgang", "kodeord", "passord"),
}
"""Links that mean "is" after words that begin so: Polish, Finnish, Czech and its neighbors, Danish and Norwegian."""
_HEADING: Final = 24
"""Characters of a label that the text begins with."""
_FOLDED: Final = re.compile(
    r"[\"']?[ \t]{0,3}[\\+]?[ \t]{0,3}\r?\n[ \t]{1,16}[\"']?(?P<bare>[A-Za-z0-9+/_=-]{8,200}+)(?![^\s\"'\\])"
)
"""The rest of a key on the next line, further in."""
_ALONE: Final = re.compile(rf"(?x) {_VALUE}")
_COMPOUND: Final = re.compile(rf"(?i)[ -](?:{'|'.join(_DATA['compounds'])})(?![a-z])")
_LOOSE: Final = frozenset(_DATA["loose"])
_LINKS: Final = frozenset(_DATA["links"])
_VERBS: Final = frozenset(_DATA["verbs"])


def find_keyword_secrets(text: str) -> Iterator[SecretFinding]:
    """Yield every secret next to a word such as "password"."""
    lowered = lower_letters(text)
    present = LOWERED_LITERALS.find(lowered)
    for kind, stem, pattern in WORDS:
        if stem in present:
            for match in iter_matches(pattern, (stem,), lowered, line_breaks=LINE_BREAKS):
                yield from _find_next_to(text, lowered, kind, match.start(), match.end())


def remove_labels(text: str) -> str:
    """Return `text` in lower case without labels such as "API key"."""
    lowered = lower_letters(text)
    for _, stem, pattern in WORDS:
        if stem in lowered:
            lowered = pattern.sub(" ", lowered)
    return lowered


def _find_next_to(text: str, lowered: str, name: str, start: int, end: int) -> Iterator[SecretFinding]:
    """Yield the values after a word, or before it."""
    begin = text.rfind(MARKER_PREFIX, max(0, start - _MARKER), start)
    if begin >= 0 and (marker := MARKER.match(text, begin)) and marker.end() >= end:
        return  # the name of what was taken out
    kind, short = name.removesuffix("_short"), name.endswith("_short")
    if _OTHER_KEYS.search(text, max(0, start - _BEFORE), end) and (short or kind == "token"):
        return
    queried = start > 0 and text[start - 1] in "?&"
    if short and queried:
        return  # a pattern of `providers` looks at the parts of an address
    findings = _find_assigned(text, kind, end, queried=queried, vague=short or lowered[start:end] in _AMBIGUOUS)
    if findings is None and not short:
        findings = _find_on_next_line(text, kind, end)
    if findings is not None:
        yield from findings
        return
    is_part = (start and text[start - 1].isalnum()) or re.match(r"\w", text[end : end + 1])
    if short or is_part or _COMPOUND.match(lowered, end):
        return
    yield from _find_stated(text, lowered[start:end], kind, end)
    yield from _find_before(text, lowered, kind, start)


def _find_assigned(text: str, kind: str, end: int, *, queried: bool, vague: bool) -> Iterator[SecretFinding] | None:
    """Return the secrets of `keyword = value`, or None."""
    match = _ASSIGNED.match(text, end)
    if match is None:
        return None
    value, first = value_in(match)
    if queried:
        value = value.partition("&")[0]
    rest = text[first + len(value) : first + len(value) + _GAP]
    compared = vague and text.startswith("==", match.start("sign"))
    if compared or (vague and not is_vaguely_assigned(value, rest)):
        return None
    if is_worth(value) and is_assigned_secret(kind, value, rest, quoted=not match["bare"]):
        return _with_more(text, kind, first, value)
    if kind != "code" and (length := passphrase_length(kind, value, rest)):
        return iter([SecretFinding(first, first + length, "password")])
    if kind == "password" and not vague and (several := _list_after(text, first)):
        return iter(several)
    return None


def _list_after(text: str, first: int) -> list[SecretFinding]:
    """Return the passwords of a line: "passwords: db …, web …"."""
    stop = text.find("\n", first, first + _WINDOW)
    tokens = _TOKEN.finditer(text, first, min(len(text), first + _WINDOW) if stop < 0 else stop)
    chosen = ((token.start(), token[0].rstrip(TRAILING)) for token in itertools.islice(tokens, _LISTED))
    return [SecretFinding(start, start + len(value), "password") for start, value in chosen if is_chosen(value)]


def _find_on_next_line(text: str, kind: str, end: int) -> Iterator[SecretFinding] | None:
    match = _NEXT_LINE.match(text, end)
    if match is None:
        return None
    value, first = value_in(match)
    row = _HEADING_ROW.fullmatch(text, text.rfind("\n", 0, end) + 1, end)
    if row and row[0].count(row["sign"], len(row["lead"])) == value.count(row["sign"]):  # the cell below the heading
        cell = value.rpartition(row["sign"])[2]
        value, first = cell, first + len(value) - len(cell)
    return _with_more(text, kind, first, value) if is_worth(value) and is_lone_secret(kind, value) else None


def _find_stated(text: str, word: str, kind: str, end: int) -> Iterator[SecretFinding]:
    """Yield values that prose states, and tokens a few words away."""
    stop = text.find("\n", end, end + _GAP)
    stop = min(len(text), end + _GAP) if stop < 0 else stop + 1
    for match, loose in _iter_candidates(text, word, kind, end, stop):
        value, first = value_in(match)
        rest = text[first + len(value) : first + len(value) + _GAP]
        if is_worth(value) and is_stated_secret(kind, value, rest, quoted=not match["bare"], loose=loose):
            yield from _with_more(text, kind, first, value)
            return
        if kind == "password" and (length := passphrase_length(kind, value, rest)):
            yield SecretFinding(first, first + length, "password")
            return
    if (
        kind == "password"
        and (word_in_capitals := _DIRECT.match(text, end))
        and (len(word) < _SHORT_WORD or not word.isascii())
    ):
        yield SecretFinding(*word_in_capitals.span("bare"), kind)
        return
    for token in itertools.islice(_TOKEN.finditer(text, end, stop + _GAP), _TRIES):
        if token.start() >= stop:
            break
        value = token[0].rstrip(TRAILING)
        direct = token.start() - end <= _NEXT_TO and not text[end : token.start()].strip(" :\t-—\"'`(")
        if value and is_near_secret(kind, value, direct=direct):
            yield from _with_more(text, kind, token.start(), value)
            return


def _iter_candidates(text: str, word: str, kind: str, end: int, stop: int) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield values of a word, and True after a vague link."""
    for copula in itertools.islice(_COPULA.finditer(text, end, stop), _TRIES):
        if match := _ALONE.match(text, copula.end()):
            yield match, word in _AMBIGUOUS or _is_loose(text, word, copula)
    with_it = kind == "password" and _WITH.search(text, max(0, end - _WINDOW), end)  # "log in with password …"
    if with_it and (match := _ALONE.match(text, end + 1)):
        yield match, False


def _is_loose(text: str, word: str, copula: re.Match[str]) -> bool:
    """Return True if a link is vague.

    "to" is not, in "set the password to …" and in Polish.
    """
    link = (copula["copula"] or "").lower()
    if link not in _LOOSE or word.startswith(_IS.get(link, "\0")):
        return False
    begin = max(0, copula.start() - _GAP)
    if link == "to":
        return _SETS.search(text, begin, copula.start()) is None
    return link not in "—\u2013-" or "\n" in text[begin : copula.start()].rstrip("\n") or copula.start() > _HEADING


def _with_more(text: str, kind: str, first: int, value: str) -> Iterator[SecretFinding]:
    """Yield a secret and those that are listed after it."""
    position = first + len(value)
    yield SecretFinding(first, position, kind)
    if kind == "token" and (match := _FOLDED.match(text, position)):
        yield SecretFinding(*match.span("bare"), kind)
    for _ in range(_LISTED):
        match = _MORE.match(text, position)
        if match is None:
            return
        before = value
        value, first = value_in(match)
        position = first + len(value)
        # Codes are listed line by line; below a password mostly the next setting follows.
        apart = kind != "code" and ("=" in value or ("\n" in text[match.start() : first] and not match["bullet"]))
        if (
            apart
            or text[position : position + 1] in {":", "="}
            or not is_worth(value)
            or not is_said_secret(kind, value, before, quoted=not match["bare"])
        ):
            return
        yield SecretFinding(first, position, kind)


def _find_before(text: str, lowered: str, kind: str, start: int) -> Iterator[SecretFinding]:
    """Yield X of "use X as the password", "X is the password"."""
    begin = max(0, start - _WINDOW)
    begin = max(begin, text.rfind("\n", begin, start) + 1)
    tokens = list(re.finditer(r"\S+", lowered[begin:start]))
    furthest = len(tokens) - (_NEAR_WORDS if kind == "token" else _FAR_WORDS)
    for place in range(len(tokens) - 1, max(0, furthest), -1):
        if tokens[place][0] not in _LINKS:
            continue
        token = tokens[place - 1]
        shown = text[begin + token.start() : begin + token.end()]
        value = shown.strip(TRAILING + "([{<")
        verb = place > 1 and tokens[place - 2][0].strip(",.:;") in _VERBS
        if is_worth(value) and is_said_first(kind, value, verb=verb):
            first = begin + token.start() + shown.index(value)
            yield SecretFinding(first, first + len(value), kind)
        return


MIN_SECRET: Final = 3
"""Characters; in fewer there is nothing to protect."""
_MIN_CODE: Final = 4
_MIN_WORD: Final = 5
"""Letters of a plain word that may be a password."""
_SHORT: Final = 5
"""Letters of a word, such as "olive", whose ending tells little."""
_MIN_TOKEN: Final = 8
_MIN_PHRASE, _LONG_PHRASE, _MAX_PHRASE = 2, 4, 10
"""Plain words of a pass phrase; from the second figure on few sentences about passwords look like one."""
_CODE_VALUE: Final = re.compile(r"#?(?=[A-Za-z-]{0,12}\d)[A-Za-z0-9]{2,12}(?:[- ][A-Za-z0-9]{2,12}){0,7}")
_BASE32: Final = re.compile(r"[A-Z2-7]{16,64}")
_IDENTIFIER: Final = re.compile(r"[a-z]{2,16}(?:[_-](?:[a-z]{2,16}|\d{1,4}|[a-z]\d{0,3})){1,8}")
_WORD: Final = re.compile(r"[ \t]{1,2}([A-Za-z\u00c0-\u00ff]{2,14})(?![\w'])")
_JOINED_WORDS: Final = re.compile(r"[A-Za-z]{3,12}(?:([-._ ])[A-Za-z]{3,12})(?:\1[A-Za-z]{3,12}){2,9}")
_METHOD: Final = re.compile(r"[A-Z][a-z]+[A-Z]\w*\.[a-z]\w*")
_ENDS: Final = re.compile(
    r"""(?x)["'`]?\s*(?:$|[.,;!)\n]|(?:and|und|et|y|e|en|och|now|today|again|please|btw|currently|everywhere|until|since
    |for|fuer|für|auf|on|pour|para|per|voor|but|aber|mais|pero|jetzt|bitte)\b)"""
)
_OBJECTS: Final = frozenset((
    "self", "this", "req", "request", "user", "config", "settings", "env", "os", "args", "form", "data", "body",
    "params", "options", "ctx", "props", "state", "var", "local", "module", "each", "secrets", "vault",
    "values", "inputs", "vars", "context", "app", "process",
))  # fmt: skip
_PRONOUNS: Final = frozenset(_DATA["pronouns"])
_SMALL: Final = frozenset(_DATA["small"])
"""Words that hold a sentence together; no pass phrase has one."""
_PREDICATES: Final = frozenset(_DATA["predicates"])
"""Words that are described about passwords."""
_PREDICATE_ENDINGS: Final = re.compile(rf"(?i).*(?:{'|'.join(_DATA['predicate_endings'])})")


def is_worth(value: str) -> bool:
    """Return True if a value is long enough and no placeholder."""
    return len(value) >= MIN_SECRET and not is_placeholder(value)


def is_predicate(word: str) -> bool:
    """Return True if a word describes passwords rather than being one."""
    if word.lower() in _PREDICATES:
        return True
    return (len(word) > _SHORT or word.endswith(("ed", "ing", "ly"))) and _PREDICATE_ENDINGS.fullmatch(word) is not None


def _is_code(value: str) -> bool:
    return _CODE_VALUE.fullmatch(value) is not None and not is_harmless_code(value)


def is_assigned_secret(kind: str, value: str, rest: str, *, quoted: bool) -> bool:
    """Return True for a secret in `keyword = value`; `rest` follows it."""
    if kind == "code":
        return _is_code(value)
    if kind == "token":
        return _is_assigned_token(value, quoted=quoted)
    if quoted:
        return not (" " in value and all(is_predicate(word) or word.islower() for word in value.split()[:2]))
    if is_harmless_password(value) or re.fullmatch(r"[(\[<{][a-z]{2,}", value):
        return False  # PWD=/home/ci/project, password_file: ./secrets/db
    # "password: at least eight characters" continues in prose; "password: hunter" ends there.
    prose = value.isalpha() and (_goes_on(rest) or is_predicate(value))
    if _METHOD.fullmatch(value):
        return False
    reference = "." in value and re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?", value) and value.islower()
    return not prose and not (reference and re.match(r"\s*$|[),;]", rest) and value.partition(".")[0] in _OBJECTS)


def is_vaguely_assigned(value: str, rest: str) -> bool:
    """Return True for a secret in `key = value`, `pass: value`.

    Such words have many meanings, so a plain word must end the line.
    """
    if _IDENTIFIER.fullmatch(value):
        return False
    return not value.isalpha() or is_jumbled(value) or re.match(r"[\"'`]?[ \t.!]*(?:\r?\n|$)", rest) is not None


def _goes_on(rest: str) -> bool:
    return re.match(r"[ \t]+[a-z\u00e0-\u00ff]{2,}", rest) is not None


def _is_assigned_token(value: str, *, quoted: bool) -> bool:
    if UUID.fullmatch(value):
        return True
    if " " in value or is_known_harmless(value):
        return False
    return (
        looks_random(value)
        or looks_like_password(value)
        or _BASE32.fullmatch(value) is not None
        or (quoted and len(value) >= _MIN_TOKEN and value.isalnum())
        or is_jumbled(value)
    )


def is_lone_secret(kind: str, value: str) -> bool:
    """Return True for a secret alone in the line after a word."""
    if value.startswith(("-", "|", "#", "<", "{", "[", "//")) or value.endswith((":", "{", "(", "=", ",")):
        return False
    if kind == "code":
        return _is_code(value)
    if kind == "token":
        return looks_random(value) or UUID.fullmatch(value) is not None
    if looks_like_password(value):
        return "=" not in value[1:-1] and ":" not in value[1:-1]
    return value.isalpha() and len(value) >= _MIN_WORD and not is_predicate(value)


def is_stated_secret(kind: str, value: str, rest: str, *, quoted: bool, loose: bool) -> bool:
    """Return True for a secret in `keyword … is value`.

    With `loose`, the link is a word such as "to".
    """
    if loose and not _is_sure_enough(kind, value):
        return False
    if kind == "code":
        return _is_code(value)
    if kind == "token":
        return looks_random(value) or (looks_like_password(value) and len(value) >= _MIN_TOKEN)
    if looks_like_password(value) or (quoted and not value.islower()) or re.fullmatch(r"\d{4,12}", value):
        return True
    if quoted:
        return " " not in value or len(value.split()) >= _LONG_PHRASE  # 'correct horse battery staple'
    return _is_plain_word(value, rest)


def _is_sure_enough(kind: str, value: str) -> bool:
    """Return True for a secret after a vague link."""
    if kind == "code":
        return value.isdigit()
    return looks_random(value) if kind == "token" else looks_like_password(value)


def _is_plain_word(value: str, rest: str) -> bool:
    """Return True if a plain word is a password.

    It describes no password, and the sentence ends.
    """
    value = value.rstrip("!?")
    if len(value) < _MIN_WORD or not value.isalpha() or is_predicate(value):
        return False
    inner = any(letter.isupper() for letter in value[1:]) and not value.isupper()
    return inner or _ENDS.match(rest) is not None


def passphrase_length(kind: str, value: str, rest: str) -> int:
    """Return the length of a passphrase of plain words, else 0.

    It has no function word, and ends where the sentence does. A short phrase has no word that describes passwords. In
    capitals or from four words on, endings such as "-ed" count only at the first word.
    """
    if kind == "password" and _JOINED_WORDS.fullmatch(value) and not rest[:1].isalnum():
        return len(value)
    words, position = [value], 0
    while match := _WORD.match(rest, position):
        words.append(match[1])
        position = match.end()
    least = _MIN_PHRASE if kind == "password" else _LONG_PHRASE
    if not least <= len(words) <= _MAX_PHRASE or not all(map(str.isalpha, words)) or len(value) < MIN_SECRET:
        return 0
    described = [word.lower() for word in words if word.lower() in _PREDICATES or is_placeholder(word)]
    if (
        len(described) > (len(words) >= _LONG_PHRASE)
        or not _SMALL.isdisjoint(described)
        or value.endswith(("ed", "ing"))
    ):
        return 0
    titled = all(word[0].isupper() and word[1:].islower() for word in words)
    if not titled and not all(map(str.islower, words)):
        return 0
    if not titled and len(words) < _LONG_PHRASE and any(map(is_predicate, words)):
        return 0
    ends = re.match(r"\s*(?:$|[.,;!](?:\s|$)|[)\n\"'`])", rest[position:]) is not None
    return len(value) + position if ends else 0


def is_near_secret(kind: str, value: str, *, direct: bool) -> bool:
    """Return True for a secret a few words from its label.

    With `direct`, nothing is between them.
    """
    if looks_random(value) or (direct and UUID.fullmatch(value) and kind == "token"):
        return True
    return kind == "password" and direct and is_chosen(value)


def is_said_secret(kind: str, value: str, before: str, *, quoted: bool) -> bool:
    """Return True for a secret that is listed after `before`."""
    if kind == "code":
        return _is_code(value) or (_describe_form(value) == _describe_form(before) and len(value) >= _MIN_CODE)
    if kind == "token":
        return looks_random(value)
    return is_chosen(value) or (quoted and looks_like_password(value)) or looks_random(value)


def is_said_first(kind: str, value: str, *, verb: bool) -> bool:
    """Return True for X in "X is the password".

    With `verb`, the text is "use X as the password".
    """
    if kind == "code":
        return re.fullmatch(r"(?:[A-Z]{1,3}-)?\d{4,8}", value) is not None
    if kind == "token":
        return looks_random(value) or UUID.fullmatch(value) is not None
    plain = verb and value.isalpha() and len(value) >= _MIN_WORD and value.lower() not in _PRONOUNS | _PREDICATES
    return plain or looks_like_password(value)


def is_chosen(value: str) -> bool:
    """Return True for a password even without a label.

    It has a number, or symbols of two sorts.
    """
    return is_surely_password(value) or (looks_like_password(value) and sum(map(str.isdigit, value)) > 1)


def _describe_form(code: str) -> str:
    """Return the lengths of a code's parts, as a pattern."""
    return re.sub(r"[A-Za-z0-9]", "x", code)


def is_surely_password(value: str) -> bool:
    """Return True for a password right after its label.

    It has two of digit, symbol and inner capital.
    """
    if not looks_like_password(value) or re.fullmatch(r"[A-Za-z]+\d|\d+[A-Za-z]+", value):
        return False
    inner = value[1:]
    signs = (
        any(c.isdigit() for c in value),
        any(not c.isalnum() and c not in "/-_." for c in value.rstrip("!?")),
        any(c.isupper() for c in inner) and any(c.islower() for c in value),
    )
    return sum(signs) > 1
