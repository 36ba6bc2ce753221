"""How plausible it is that a value near a word such as "password" is one, by what stands between. Finds nothing."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.language.pattern_files import load_patterns
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
TRAILING: Final = ".,;:)]}>\"'`\\\u3001\u3002\uff0c\uff1b\uff1a\uff09\u300d\u300f\u201d\u00bb*_"
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
_DATA: Final = load_patterns("agent_memory.redaction", "keywords")
_PRONOUNS: Final = frozenset(_DATA["pronouns"])
_SMALL: Final = frozenset(_DATA["small"])
"""Words that hold a sentence together; no pass phrase has one."""
_PREDICATES: Final = frozenset(_DATA["predicates"])
"""Words that are said about passwords."""
_PREDICATE_ENDINGS: Final = re.compile(rf"(?i).*(?:{'|'.join(_DATA['predicate_endings'])})")


def value_in(match: re.Match[str]) -> tuple[str, int]:
    """Return what the last group of a match holds, and where; a `bare` value without the sign that ends a sentence."""
    group = match.lastgroup or 0
    value: str = match[group]
    return value.rstrip(TRAILING) if group == "bare" else value, match.start(group)


def is_worth(value: str) -> bool:
    """Tell whether `value` is long enough for a secret, and none that only stands for one."""
    return len(value) >= MIN_SECRET and not is_placeholder(value)


def is_predicate(word: str) -> bool:
    """Tell whether a word is said about passwords rather than being one."""
    if word.lower() in _PREDICATES:
        return True
    return (len(word) > _SHORT or word.endswith(("ed", "ing", "ly"))) and _PREDICATE_ENDINGS.fullmatch(word) is not None


def _is_code(value: str) -> bool:
    return _CODE_VALUE.fullmatch(value) is not None and not is_harmless_code(value)


def is_assigned_secret(kind: str, value: str, rest: str, *, quoted: bool) -> bool:
    """Decide on `keyword = value`; `rest` is what follows."""
    if kind == "code":
        return _is_code(value)
    if kind == "token":
        return _is_assigned_token(value, quoted=quoted)
    if quoted:
        return not (" " in value and all(is_predicate(word) or word.islower() for word in value.split()[:2]))
    if is_harmless_password(value) or re.fullmatch(r"[(\[<{][a-z]{2,}", value):
        return False  # PWD=/home/ci/project, password_file: ./secrets/db
    # "password: at least eight characters" goes on in prose; "password: hunter" ends there.
    prose = value.isalpha() and (_goes_on(rest) or is_predicate(value))
    if _METHOD.fullmatch(value):
        return False
    reference = "." in value and re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\(.*)?", value) and value.islower()
    return not prose and not (reference and re.match(r"\s*$|[),;]", rest) and value.partition(".")[0] in _OBJECTS)


def is_vaguely_assigned(value: str, rest: str) -> bool:
    """Decide on `key = value`, `pass: value`, where the word has many meanings: a plain word must end the line."""
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
    """Decide on a value that stands alone in the line after a word."""
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
    """Decide on `keyword … is value`; with `loose` on one after a word such as "to"."""
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
    """Tell whether a value is one after a link that says little."""
    if kind == "code":
        return value.isdigit()
    return looks_random(value) if kind == "token" else looks_like_password(value)


def _is_plain_word(value: str, rest: str) -> bool:
    """Tell whether a word given as a password is one: nothing that is said about passwords, and the sentence ends."""
    value = value.rstrip("!?")
    if len(value) < _MIN_WORD or not value.isalpha() or is_predicate(value):
        return False
    inner = any(letter.isupper() for letter in value[1:]) and not value.isupper()
    return inner or _ENDS.match(rest) is not None


def passphrase_length(kind: str, value: str, rest: str) -> int:
    """Return the length of a phrase of two to ten plain words that is a password, 0 if it is none.

    No word of it holds a sentence together, and it ends where the sentence does. A short one has no word that is said
    about passwords; in capitals or from four words on, endings such as "-ed" tell nothing but at the first.
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
    said = [word.lower() for word in words if word.lower() in _PREDICATES or is_placeholder(word)]
    if len(said) > (len(words) >= _LONG_PHRASE) or not _SMALL.isdisjoint(said) or value.endswith(("ed", "ing")):
        return 0
    titled = all(word[0].isupper() and word[1:].islower() for word in words)
    if not titled and not all(map(str.islower, words)):
        return 0
    if not titled and len(words) < _LONG_PHRASE and any(map(is_predicate, words)):
        return 0
    ends = re.match(r"\s*(?:$|[.,;!](?:\s|$)|[)\n\"'`])", rest[position:]) is not None
    return len(value) + position if ends else 0


def is_near_secret(kind: str, value: str, *, direct: bool) -> bool:
    """Decide on a value with nothing (`direct`), or a few words, between it and the word."""
    if looks_random(value) or (direct and UUID.fullmatch(value) and kind == "token"):
        return True
    return kind == "password" and direct and is_chosen(value)


def is_said_secret(kind: str, value: str, before: str, *, quoted: bool) -> bool:
    """Decide on what is listed after a secret, `before`."""
    if kind == "code":
        return _is_code(value) or (_form_of(value) == _form_of(before) and len(value) >= _MIN_CODE)
    if kind == "token":
        return looks_random(value)
    return is_chosen(value) or (quoted and looks_like_password(value)) or looks_random(value)


def is_said_first(kind: str, value: str, *, verb: bool) -> bool:
    """Decide on X in "X is the password"; with `verb` in "use X as the password"."""
    if kind == "code":
        return re.fullmatch(r"(?:[A-Z]{1,3}-)?\d{4,8}", value) is not None
    if kind == "token":
        return looks_random(value) or UUID.fullmatch(value) is not None
    plain = verb and value.isalpha() and len(value) >= _MIN_WORD and value.lower() not in _PRONOUNS | _PREDICATES
    return plain or looks_like_password(value)


def is_chosen(value: str) -> bool:
    """Tell whether `value` reads like a password even where one need not be: with a number, or signs of two sorts."""
    return is_surely_password(value) or (looks_like_password(value) and sum(map(str.isdigit, value)) > 1)


def _form_of(code: str) -> str:
    """Return what two codes of one list have in common: how long their parts are."""
    return re.sub(r"[A-Za-z0-9]", "x", code)


def is_surely_password(value: str) -> bool:
    """Tell whether `value`, right after the word password, is one: two of digit, symbol, inner capital."""
    if not looks_like_password(value) or re.fullmatch(r"[A-Za-z]+\d|\d+[A-Za-z]+", value):
        return False
    inner = value[1:]
    signs = (
        any(c.isdigit() for c in value),
        any(not c.isalnum() and c not in "/-_." for c in value.rstrip("!?")),
        any(c.isupper() for c in inner) and any(c.islower() for c in value),
    )
    return sum(signs) > 1
