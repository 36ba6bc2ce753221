"""What a request to forget asks for: names, identifiers, words, a stretch of time, what is to be kept. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from agent_memory.forgetting.lexicon import (
    ASKS_PAST,
    ASKS_PRESENT,
    DENIALS,
    FIRST_PERSON,
    SMALL,
    VAGUE,
)
from agent_memory.forgetting.words import Identifier, Word, folded, identifiers_in, is_unspaced, stems, words_of
from agent_memory.times import read_periods

if TYPE_CHECKING:
    from datetime import datetime

    from agent_memory.times import Period

MAX_CHARS: Final = 2_000

_EVERYTHING: Final = re.compile(
    r"\b(?:everything|anything|whatever|all (?:that|i|you|we|about|of|the|my|memories|facts|notes|traces?|mentions?)"
    r"|every (?:memory|fact|note|mention|trace)|alles|tout|todo)\b",
    re.IGNORECASE,
)
_KEEP: Final = re.compile(
    r"(?:[,;]|(?<!\s))\s++(?:except(?: for)?|apart from|other than|excluding|but (?:not|keep|leave|remember)"
    r"|(?:and|then) (?:keep|leave)"
    r"|keeping|leaving|without (?:touching|forgetting|deleting|losing))\s+|,\s*(?:but\s+)?not\s+"
    r"|(?:[,;:.!\u2013\u2014-]\s|\n)\s{0,80}(?:please\s+)?(?:keep|leave)\s+",
    re.IGNORECASE,
)
_KEEP_UNMARKED: Final = re.compile(
    r"(?<!\s)\s++(?:keep|leave)\s+(?=(?:the|this|that|those|these|my|our|his|her|their|its|everything|all|what)\b|\S+['\u2019]s\b)",
    re.IGNORECASE,
)
_STATING: Final = re.compile(r"\b(?:that|where|when|how|what|why|who|which|if|to|i|we|you|they)\b", re.IGNORECASE)
"""Behind these "keep" and "leave" are verbs of what is to be forgotten: "that Ann and Bob keep the spare key"."""
_ORDER: Final = re.compile(
    r"^\W*(?:(?:please|can|could|would|you|i|want|need|would like|'d like|to|kindly|now|just)\s+)*"
    r"(?:forget|delete|remove|erase|purge|release|drop|unlearn|wipe|clear|discard|scrub|vergiss|l\u00f6sche|oublie|olvida)\b",
    re.IGNORECASE,
)
_DENIED_ORDER: Final = re.compile(
    r"^\W*(?:(?:please|you|i|we|kindly|just|and|but|so|also)\s+)*"
    r"(?:(?:do|can|could|should|must|shall|may|will|would)(?:\s+not|n['\u2019]?t)|cannot|never|not\s+to)"
    r"(?:\s+(?:you|i|we|ever|want\s+(?:you\s+)?to|please|just|even|to))*"
    r"\s+(?:forget|delete|remove|erase|purge|release|drop|unlearn|wipe|clear|discard|scrub)\b",
    re.IGNORECASE,
)
"""What asks that nothing be forgotten."""
_REFERRING: Final = re.compile(
    r"\b(?:and|plus|with|including)\s{1,20}(?:everything|anything|all|whatever|what|those|memories|notes|facts)?\s{0,20}(?:that\s+)?"
    r"(?:refers?|points?|links?|linked|relat\w+|depends?|connected|derived?|follows?|rests?)\b.{0,2000}$",
    re.IGNORECASE,
)
_AND: Final = re.compile(
    r"(?:(?<!\s)\s++)?,\s+(?:(?:and|as well as|plus|&|und|et|y)\s+)?|(?<!\s)\s++(?:and|as well as|plus|&|und|et|y)\s+",
    re.IGNORECASE,
)
_USED_TO: Final = re.compile(r"\b(?:used to|before\W*$|no longer|back then)", re.IGNORECASE)
_DIGITS_OF_A_DATE: Final = 8


@dataclass(frozen=True)
class Term:
    """A word of a request that says what is meant.

    Attributes:
        word: As it stands there.
        stems: Its stems.
        weight: How much it says.
        is_name: Whether a memory must have it, whole.
        owns: Whether it has a possessive ending.
    """

    word: str
    stems: frozenset[str]
    weight: float = 1.0
    is_name: bool = False
    owns: bool = False


@dataclass(frozen=True)
class Request:
    """A request, read.

    Attributes:
        text: As it was given.
        about: The words of it that say what is meant, as a phrase: what a search looks for.
        terms: These words, in order.
        identifiers: Each with its forms, of which a memory must have one, whole.
        wants_all: Whether it says "everything".
        is_denied: Whether what is meant is a denial ("that Lea does not eat nuts").
        is_own: Whether it is about what belongs to who asks.
        periods: The stretches of time it names.
        wants_past, wants_present: Whether it asks for the old one, or the new one.
        follows: Whether what refers to it is meant, too.
        kept: What it says is to stay, read in the same way.
        parts: Where it joins several ("Ann's phone and e-mail"), each by itself.
    """

    text: str
    about: str
    terms: tuple[Term, ...]
    identifiers: tuple[Identifier, ...]
    wants_all: bool
    is_denied: bool
    is_own: bool
    periods: tuple[Period, ...]
    wants_past: bool
    wants_present: bool
    follows: bool
    kept: Request | None = None
    parts: tuple[Request, ...] = ()

    @property
    def names(self) -> tuple[Term, ...]:
        """The terms that are names."""
        return tuple([term for term in self.terms if term.is_name])

    @property
    def soft(self) -> tuple[Term, ...]:
        """The terms that are none."""
        return tuple([term for term in self.terms if not term.is_name])

    @property
    def says_nothing(self) -> bool:
        """Whether nothing in it says what is meant."""
        return not (self.terms or self.identifiers or (self.periods and self.wants_all))


def read_request(text: str, now: datetime) -> Request:
    """Read a request.

    Args:
        text: In the user's words; only its first 2,000 characters count.
        now: What "last week" is counted from.

    Returns:
        What it asks for; nothing where it asks that something be not forgotten.
    """
    text = text[:MAX_CHARS].encode("utf-8", "replace").decode("utf-8").strip()
    if _DENIED_ORDER.match(text):
        return _read(text, "", "", now)
    said, kept = _split(text)
    whole = _read(text, said, kept, now)
    return replace(whole, parts=_parts(said, whole, now))


def _parts(said: str, whole: Request, now: datetime) -> tuple[Request, ...]:
    """Return what a request joins; each with the names, the time and the words that the others lend it."""
    pieces = [_of_one_name(_read(piece, piece, "", now)) for piece in _AND.split(_REFERRING.sub("", said))]
    if len(pieces) < 2 or not all(each.terms or each.identifiers for each in pieces):  # noqa: PLR2004
        return ()
    names = next((each.names for each in pieces if each.names), ())
    soft = next((each.soft for each in reversed(pieces) if each.soft), ())
    found = []
    for each in pieces:
        terms = each.terms if each.soft or each.identifiers else (*each.terms, *soft)
        terms = terms if each.names or each.identifiers else (*names, *terms)
        periods = each.periods or whole.periods
        found.append(replace(each, terms=terms, wants_all=whole.wants_all, is_own=whole.is_own, periods=periods))
    return tuple(found)


def _of_one_name(piece: Request) -> Request:
    """Take for a name what is all that a piece says, and has a capital."""
    if len(piece.terms) == 1 and piece.terms[0].word[:1].isupper():
        return replace(piece, terms=(replace(piece.terms[0], is_name=True),))
    return piece


def _read(text: str, said: str, kept: str, now: datetime) -> Request:
    follows = _REFERRING.search(said) is not None
    said = _REFERRING.sub("", said)
    periods, rest = _without_times(said, now)
    behind = match.end() if (match := _ORDER.match(rest)) else 0
    identifiers = tuple(identifiers_in(rest, SMALL))
    words = [word for word in words_of(rest) if not _within(word, identifiers)]
    terms = _terms(words, behind)
    lower = {folded(word.text) for word in words}
    pieces = [term.word for term in terms] + [rest[each.start : each.end] for each in identifiers]
    return Request(
        text,
        " ".join(pieces) or rest.strip(),
        terms,
        identifiers,
        _EVERYTHING.search(said) is not None,
        bool(lower & DENIALS) or re.search(r"n['\u2019]t\b", rest[behind:]) is not None,
        bool(lower & FIRST_PERSON) and _is_own(words),
        periods,
        bool(lower & ASKS_PAST) or _USED_TO.search(said) is not None,
        bool(lower & ASKS_PRESENT),
        follows,
        read_request(kept, now) if kept else None,
    )


def _without_times(text: str, now: datetime) -> tuple[tuple[Period, ...], str]:
    """Return the stretches of time that a text names, and the rest of it; no piece of an identifier is a year."""
    codes = [each for each in identifiers_in(text, SMALL) if _is_code(text[each.start : each.end])]
    masked, back = text, dict[str, str]()
    for at, code in reversed(list(enumerate(codes))):
        mask = f"xqz{chr(ord('a') + at % 26)}qzx"
        back[mask] = text[code.start : code.end]
        masked = masked[: code.start] + mask + masked[code.end :]
    time = read_periods(masked, now)
    rest = time.rest if time.periods else masked
    for mask, said in back.items():
        rest = rest.replace(mask, said)
    return time.periods, rest


def _is_code(said: str) -> bool:
    """Tell whether an identifier is no date: it has letters beside digits, or many digits."""
    letters = sum(each.isalpha() for each in said)
    digits = sum(each.isdigit() for each in said)
    return digits > _DIGITS_OF_A_DATE or (bool(letters) and bool(digits) and re.match(r"[QqHh]?[1-4]\b", said) is None)


def _split(text: str) -> tuple[str, str]:
    """Return what is to be forgotten, and what is to be kept of it."""
    match = _KEEP.search(text)
    if match is None and (unmarked := _KEEP_UNMARKED.search(text)) and not _STATING.search(text, 0, unmarked.start()):
        match = unmarked
    if match is None or not words_of(text[: match.start()]):
        return text, ""
    return text[: match.start()], text[match.end() :]


def _within(word: Word, identifiers: tuple[Identifier, ...]) -> bool:
    return any(each.start < word.end and word.start < each.end for each in identifiers)


def _is_own(words: list[Word]) -> bool:
    """Tell whether "my" or "I" says whose it is, not only who said it."""
    lower = [folded(word.text) for word in words]
    speaks = {"said", "told", "mentioned", "say", "tell", "want", "need", "asked", "gave", "wrote"}
    for at, word in enumerate(lower):
        if word in {"my", "our", "mine", "mein", "meine", "mi", "mis"}:
            return True
        if word in {"i", "we", "me"} and at and at + 1 < len(lower) and lower[at + 1] not in speaks:
            before = lower[at - 1]
            if before in {"where", "what", "how", "that", "which", "when", "whom", "about"} or word == "i":
                return True
    return False


def _terms(words: list[Word], behind: int) -> tuple[Term, ...]:
    found: dict[str, Term] = {}
    for word in words:
        plain = folded(word.text)
        if plain in DENIALS or plain in {"past", "ex", "recent", "newest", "outdated", "now"}:
            continue
        is_first = word.start <= behind and not behind
        is_name = word.owns or (word.is_capitalised and not is_first and plain != "i") or is_unspaced(word.text)
        is_letter = len(plain) == 1 and word.text.isupper() and plain != "i" and not is_first
        if plain in SMALL and not is_letter and not (is_name and word.owns and plain not in {"it", "user"}):
            continue
        if len(plain) == 1 and plain.isascii() and not word.text.isupper():
            continue
        weight = 0.4 if plain in VAGUE else 1.0
        found.setdefault(plain, Term(word.text, stems(word.text), weight, is_name, word.owns))
    return tuple(found.values())


def lookups(request: Request) -> list[str]:
    """Return what to search for, so that an index finds all that a request may mean."""
    found = [request.about, " ".join(term.word for term in request.names)]
    for identifier in request.identifiers:
        found.append(request.text[identifier.start : identifier.end])
        for form in identifier.forms:
            pieces = re.findall(r"[^\W\d_]+|\d+", form)
            found += [form, " ".join(pieces), "-".join(pieces)]
    found += [term.word for term in request.terms]
    return list(dict.fromkeys(each for each in found if each.strip()))
