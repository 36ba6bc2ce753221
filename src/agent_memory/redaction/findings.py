"""Findings, redactors and markers, and line-wise search of patterns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from agent_memory.late import compile_late

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

MARKER_PREFIX: Final = "[redacted:"
_KIND_NAMES: Final = """
    age-key airtable-token anthropic-key api-key artifactory-token atlassian-token authorization aws-key azure-key
    basic-auth bearer-token code connection-password cookie credit-card databricks-token digitalocean-token
    discord-token docker-token dropbox-token facebook-token github-token gitlab-token google-key grafana-token
    hashicorp-token high-entropy huggingface-token iban jwt license-key mailchimp-key mailgun-key named-secret
    npm-token openai-key password password-hash personal-number private-key pypi-token seed-phrase sendgrid-key
    sentry-dsn sentry-token shopify-token signed-url slack-token slack-webhook square-token stripe-key telegram-token
    token totp-seed twilio-key url-token webhook webhook-secret
"""
KINDS: Final = frozenset(_KIND_NAMES.split())
"""Kinds of secrets that a marker names, older versions' too."""
MARKER: Final = compile_late(rf"\[redacted:(?:{'|'.join(sorted(KINDS))})\]")
"""What takes the place of a secret. Any other text in such brackets is searched like all text."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Text without its secrets, and their kinds in order of appearance."""

    text: str
    kinds: tuple[str, ...] = ()


class SecretFinding(NamedTuple):
    """One secret: `text[start:end]`, and its kind in kebab-case."""

    start: int
    end: int
    kind: str


@runtime_checkable
class Redactor(Protocol):
    """Object that removes secrets from text.

    It is idempotent and raises on no string.
    """

    def redact(self, text: str) -> Redaction:
        """Return `text` with each secret replaced by `[redacted:<kind>]`."""
        ...


_SIZE: Final = 250
"""Characters of a group at least: a shorter one saves less than it costs."""
_DIGIT: Final = compile_late(r"\d")
TWO_LETTERS: Final = "İ"


def iter_line_groups(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each group; together they are the text."""
    start = 0
    while start < len(text):
        stop = text.find("\n", start + _SIZE)
        stop = len(text) if stop < 0 else stop
        yield start, stop
        start = stop


def iter_digit_matches(pattern: re.Pattern[str], text: str, least: int = 1) -> Iterator[re.Match[str]]:
    """Yield the matches of a one-line pattern in lines with digits.

    Args:
        pattern: Pattern without an anchor at the end of the text.
        text: Text to search.
        least: Number of digits that each match holds at least.
    """
    for start, stop in _list_digit_groups(text, least):
        yield from pattern.finditer(text, start, stop)


@lru_cache(maxsize=8)  # one pattern after another is searched in the same text
def _list_digit_groups(text: str, least: int) -> tuple[tuple[int, int], ...]:
    """Return the groups of lines with so many digits."""
    groups = iter_line_groups(text)
    return tuple([(start, stop) for start, stop in groups if len(_DIGIT.findall(text, start, stop)) >= least])


def iter_matches(
    pattern: re.Pattern[str], literals: Iterable[str], text: str, lowered: str = "", line_breaks: int = 0
) -> Iterator[re.Match[str]]:
    """Yield the matches of a pattern, searched only in lines around literals.

    These are all its matches, if each holds a literal and no more line breaks than given.

    Args:
        pattern: Pattern without an anchor at the end of the text.
        literals: Texts without line breaks; each match holds one of them.
        text: Text to search.
        lowered: Text in lower case, letter by letter, if the literals are sought there.
        line_breaks: Most line breaks that a match and what it looks at hold.
    """
    for start, stop in merge_spans(_iter_lines(literals, lowered or text, line_breaks)):
        yield from pattern.finditer(text, start, stop)


def lower_letters(text: str) -> str:
    """Return `text` in lower case, letter by letter.

    The capital with two small letters stays.
    """
    return TWO_LETTERS.join(part.lower() for part in text.split(TWO_LETTERS))


def _iter_lines(literals: Iterable[str], text: str, line_breaks: int) -> Iterator[tuple[int, int]]:
    """Yield spans of the lines around each literal."""
    for literal in literals:
        place = text.find(literal)
        while place >= 0:
            line_end = stop = _find_break(text, place)
            start = text.rfind("\n", 0, place)
            for _ in range(line_breaks):
                start = text.rfind("\n", 0, max(0, start))
                stop = _find_break(text, stop + 1)
            yield start + 1, stop
            place = text.find(literal, line_end)


def _find_break(text: str, start: int) -> int:
    """Return the next line break, or the end of the text."""
    place = text.find("\n", start)
    return len(text) if place < 0 else place


def merge_spans(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in order, those that overlap as one."""
    first, last = 0, -1
    for start, stop in sorted(spans):
        if start > last:
            if last >= 0:
                yield first, last
            first, last = start, stop
        last = max(last, stop)
    if last >= 0:
        yield first, last


_MOST_WORDS: Final = 20_000
_PUNCTUATION: Final = ".,;:!?()'\""


class LiteralIndex:
    """Finds the literals of a text.

    Some hundred literals take longer to search for than all else. Texts repeat their words, so the literals of a word
    are remembered. Threads may share an index: each replaces what it remembers as a whole.
    """

    def __init__(self) -> None:
        self._spaced: frozenset[str] = frozenset()
        self._unspaced: frozenset[str] = frozenset()
        self._letterless: frozenset[str] = frozenset()
        self._words: dict[str, frozenset[str]] = {}
        self._last: tuple[str, frozenset[str]] = ("", frozenset())

    def add(self, literals: Iterable[str]) -> None:
        """Search for more literals from now on."""
        more = frozenset(literals)
        spaced = {literal for literal in more if literal.split() != [literal]}
        self._spaced |= spaced
        self._unspaced |= more - spaced
        self._letterless = frozenset(literal for literal in self._unspaced if literal.upper() == literal.lower())
        self._words, self._last = {}, ("", frozenset())

    def find(self, text: str) -> frozenset[str]:
        """Return the literals that a text holds."""
        last_text, present = self._last
        if last_text == text:  # one detector after another reads the same text
            return present
        words, read = set(text.split()), self._words  # a literal without white space is within a word
        new = {word: self._read(word) for word in words if word not in read}
        present = frozenset().union(*new.values(), *[read[word] for word in words if word not in new])
        present = present.union([literal for literal in self._spaced if literal in text])
        # A password has more than letters: it is not kept here.
        plain = {word: literals for word, literals in new.items() if word.strip(_PUNCTUATION).isalpha()}
        if plain:
            self._words = plain if len(read) > _MOST_WORDS else read
            self._words.update(plain)
        self._last = text, present
        return present

    def _read(self, word: str) -> frozenset[str]:
        literals = self._letterless if word.strip(_PUNCTUATION).isdigit() else self._unspaced
        return frozenset(filter(word.__contains__, literals))


LITERALS: Final = LiteralIndex()
"""Of texts as they are."""
LOWERED_LITERALS: Final = LiteralIndex()
"""Of texts in lower case, letter by letter."""


TRAILING: Final = ".,;:)]}>\"'`\\\u3001。\uff0c\uff1b\uff1a\uff09」』”»*_"


def value_in(match: re.Match[str]) -> tuple[str, int]:
    """Return the last group of a match and its place.

    A `bare` value loses the sign that ends a sentence.
    """
    group = match.lastgroup or 0
    value: str = match[group]
    return value.rstrip(TRAILING) if group == "bare" else value, match.start(group)
