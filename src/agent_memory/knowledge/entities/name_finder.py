"""Names in a text: identifiers, known names, capitalized words inside sentences. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from agent_memory.language.languages import guess_languages, load_patterns
from agent_memory.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from agent_memory.models.knowledge import EntityType

Kind: TypeAlias = "EntityType"
_FIRST_WORD: Final = re.compile(r"[^\W_]+")
KNOWN: Final = 1.0
"""Confidence of a name that the agent knows already."""
REPEATED: Final = 0.6
"""Confidence of a name that a text has twice."""
SEEN_ONCE: Final = 0.4
"""Confidence of a name that a text has once; it counts if another text has it."""
_LONG_RUN: Final = re.compile(r"\S{160,}")
"""Finds runs that are too long for an identifier, and cost time by their square."""
_HAN: Final = re.compile("[\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
"""Letters of scripts without spaces: they end an identifier."""
_ACCOUNT: Final = compile_late(r"(?<![\w.`/#])(?P<name>@[A-Za-z][\w-]{1,38})\b(?!/|\.\w|\s*=)")
_PRONOUN: Final = r"I(?:['\u2019]\w+|ve|ll|m|d)?(?![\w'\u2019])"
_CAPITALIZED: Final = rf"(?!{_PRONOUN})(?=[^\W\d_])(?![a-zß-öø-ÿ])[^\W_](?:[\w-]|['\u2019&](?=\w)|\.(?=[a-z0-9]))*"
_RUN: Final = re.compile(
    rf"(?<![\w@/#.$<=\-]){_CAPITALIZED}(?:[ ](?:(?:of the|of|and the|de la|de|del|van|von)[ ])?{_CAPITALIZED})*"
)
_QUOTED: Final = re.compile(r"[\"\u201c](?P<title>[^\"\u201c\u201d\n]{2,80}?)[.,!?]?[\"\u201d]")
_HEADING: Final = re.compile(r"(?m)^[ \t]*[#|].*$")
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_INSIDE: Final = re.compile(r"(?:[\w,;)%'\u2019][ ]|[\w][ ][\"\u201c'\u2018(])$")
_ADDRESSED: Final = re.compile(r"(?:^|[.!?\u2026\n:-])\W{0,4}[\w'\u2019]{1,20}(?: [A-Z][\w'\u2019]{0,20})?,[ ]$")
_CONTINUATION: Final = re.compile(r"['\u2019]| [a-z]")
"""Continuation of a word behind an interjection: the sentence proper begins there, as in "Yeah, Here it is"."""
_LOOK_BACK: Final = 48
_POSSESSIVE: Final = re.compile(r"['\u2019][sS]$")
_MODIFIER: Final = re.compile(r" [a-z]{4}")
_DATE: Final = re.compile(
    r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?|jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|"
    r"apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?",
    re.IGNORECASE,
)
_ACRONYM: Final = re.compile(r"[\W\dA-Z]+s?")
_PROGRAM_TEXT: Final = re.compile(r"[(_=]|::|\.\w")
_MOST_WORDS: Final = 8
LOWERCASE: Final = "small letters"
"""Rule of a mention of a capitalized name in lower case."""
BY_CAPITALS: Final = "capitals"
"""Detail of the source of an entity that was found by a capital letter alone."""
BY_NAME: Final = frozenset({LOWERCASE, "known name", BY_CAPITALS})
"""Rules that find a name by its words rather than its form."""
_IMAGE: Final = re.compile(r"(!\[[^\]\n]{0,200}\])(\([^)\n]{0,500}\))")
"""Image of a Markdown text, such as a badge, and its address."""
_WORD: Final = re.compile(r"[^\W_]+")
_LONGER_BEFORE: Final = re.compile(r"[\w/@\\#.-]")
_LONGER: Final = re.compile(r"[\w/\\@-]|[.:]\w")


class SpanSet:
    """Pairs of start and end, exclusive, without overlaps."""

    def __init__(self) -> None:
        self._pairs: list[tuple[int, int]] = []

    def add(self, start: int, end: int) -> bool:
        """Add a span unless it overlaps another; return True if added."""
        index = bisect_left(self._pairs, (end, end))
        if index and self._pairs[index - 1][1] > start:
            return False
        insort(self._pairs, (start, end))
        return True


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in a text.

    Attributes:
        name: Name as written, without a possessive ending or quotes.
        kind: Type that the form or a declaration gives, else `name`.
        start: First character of the name in the text.
        end: End of the name, exclusive: `text[start:end] == name`.
        confidence: Confidence that it is a name, 0 to 1.
        rule: Rule that found it, for explanations.
    """

    name: str
    kind: Kind
    start: int
    end: int
    confidence: float
    rule: str


class KnownName(NamedTuple):
    """A name that an agent knows.

    Attributes:
        name: Name as written.
        kind: Type of its entity.
        is_candidate: True if it was seen once, by a capital letter alone.
        has_lowercase_use: True if a source has it in lower case; it then counts inside sentences alone.
    """

    name: str
    kind: Kind
    is_candidate: bool = False
    has_lowercase_use: bool = False


class Gazetteer:
    """Names that an agent knows, looked up by their first word.

    Args:
        kinds: Type by name, as the name is written.
        candidates: Names that were seen once, by a capital letter alone.
    """

    def __init__(self, kinds: Mapping[str, Kind] | None = None, candidates: Iterable[str] = ()) -> None:
        self._by_word: dict[str, dict[str, KnownName]] = {}
        for name, kind in (kinds or {}).items():
            self.add(KnownName(name, kind))
        for name in candidates:
            self.add(KnownName(name, "name", is_candidate=True))

    def add(self, new: KnownName) -> None:
        """Add a name, or change what is known of it."""
        if first := _FIRST_WORD.search(new.name):
            self._by_word.setdefault(first[0].casefold(), {})[new.name] = new

    def remove(self, name: str) -> None:
        """Remove a name, if it is known."""
        if first := _FIRST_WORD.search(name):
            self._by_word.get(first[0].casefold(), {}).pop(name, None)

    def find(self, word: str) -> list[KnownName]:
        """Return the names that begin with a word, longest first."""
        names = self._by_word.get(word.casefold(), {})
        return sorted(names.values(), key=lambda candidate: -len(candidate.name))


class IdentifierForm(NamedTuple):
    """Form of an identifier, with the kind of what it names."""

    rule: str
    kind: Kind
    confidence: float
    pattern: re.Pattern[str]


@cache
def _load_forms() -> tuple[IdentifierForm, ...]:
    """Return the forms of `patterns/identifiers.yaml`, with patterns compiled at the first use."""
    tables = _load_tables()
    forms = []
    for form in tables["forms"]:
        pattern = form["pattern"]
        for name, part in tables["parts"].items():
            pattern = pattern.replace(f"<{name}>", part if isinstance(part, str) else "|".join(part))
        forms.append(IdentifierForm(form["rule"], form["kind"], form["confidence"], re.compile(pattern)))
    return tuple(forms)


@cache
def _load_tables() -> dict[str, Any]:
    return load_patterns("agent_memory.knowledge.entities", "identifiers")


def find_identifiers(text: str) -> Iterator[Mention]:
    """Yield identifiers by their form, surest forms first; they may overlap."""
    short = _LONG_RUN.sub(lambda match: " " * len(match[0]), text if text.isascii() else _HAN.sub(" ", text))
    no_issues = _load_tables()["no_issue_words"].split()
    for form in _load_forms():
        for match in form.pattern.finditer(short):
            name = match["name"]
            if form.rule != "ticket key" or name.partition("-")[0] not in no_issues:
                yield Mention(name, form.kind, *match.span("name"), form.confidence, form.rule)


def find_accounts(text: str) -> Iterator[Mention]:
    """Yield accounts such as `@priya` in prose; code writes decorators so."""
    for match in _ACCOUNT.finditer(text):
        yield Mention(match["name"], "name", *match.span("name"), 0.8, "account")


def is_identifier(name: str) -> bool:
    """Return True if a whole name is an identifier by its form."""
    return any(mention.name == name for mention in find_identifiers(name))


@dataclass(frozen=True, slots=True)
class CapitalizedRun:
    """A run of capitalized words inside a sentence.

    Attributes:
        name: Words of the run, without a possessive ending.
        start: First character in the text.
        end: End in the text, exclusive.
        is_evidence: True if the place of the run shows that it is a name.
    """

    name: str
    start: int
    end: int
    is_evidence: bool


def hide_code(text: str) -> str:
    """Return a text of the same length with spaces instead of code."""
    return _CODE.sub(lambda match: " " * len(match[0]), text) if "`" in text else text


def find_runs(prose: str) -> Iterator[CapitalizedRun]:
    """Yield capitalized runs inside sentences, and quoted titles.

    A language that capitalizes all nouns has none.
    """
    if "de" in guess_languages(prose):
        return
    prose = _HEADING.sub(lambda match: " " * len(match[0]), prose)
    titles = SpanSet()
    for match in _QUOTED.finditer(prose):
        words = match["title"].split()
        if 1 < len(words) <= _MOST_WORDS and words[0][0].isupper() and words[-1][0].isupper():
            titles.add(*match.span("title"))
            yield CapitalizedRun(match["title"], *match.span("title"), is_evidence=True)
    for match in _RUN.finditer(prose):
        name, (start, end) = _POSSESSIVE.sub("", match[0]), match.span()
        end = start + len(name)
        if _is_inside(prose, start, end) and not _is_refused(prose, name, end) and titles.add(start, end):
            yield CapitalizedRun(name, start, end, is_evidence=not is_modifier(prose, name, end))


def _is_inside(prose: str, start: int, end: int) -> bool:
    """Return True if words of the same sentence precede a word."""
    before = prose[max(0, start - _LOOK_BACK) : start]
    begins = _ADDRESSED.search(before) is not None and _CONTINUATION.match(prose, end) is not None
    return _INSIDE.search(before) is not None and not begins


def is_modifier(prose: str, name: str, end: int) -> bool:
    """Return True if a word may describe the next one."""
    return " " not in name and _MODIFIER.match(prose, end) is not None


def _is_refused(prose: str, name: str, end: int) -> bool:
    """Return True for days, months, acronyms and parts of programs."""
    words = name.split()
    is_acronym = _ACRONYM.fullmatch(name) is not None
    is_date = all(map(_DATE.fullmatch, words))
    return is_acronym or is_date or "_" in name or _PROGRAM_TEXT.match(prose, end) is not None


def find_mentions(text: str, *, gazetteer: Gazetteer | None = None, speaker: str = "") -> tuple[Mention, ...]:
    """Return the names in a text in order; none overlap.

    Args:
        text: Text of a person or an agent.
        gazetteer: Names that are known, and names that were seen once.
        speaker: Name of the speaker; not a mention as the label of the text (`Ann: I …`).
    """
    label = f"{speaker}: "
    offset = len(label) if speaker and text.startswith(label) else 0
    text = _IMAGE.sub(lambda match: match[1] + " " * len(match[2]), " " * offset + text[offset:])
    prose = hide_code(text)
    runs = list(find_runs(prose))
    known_names = _find_known(prose, gazetteer or Gazetteer(), speaker, runs)
    spans = SpanSet()
    mentions = chain(find_identifiers(text), known_names, find_accounts(prose), _find_unknown(prose, runs))
    return tuple(
        sorted(
            (candidate for candidate in mentions if spans.add(candidate.start, candidate.end)),
            key=lambda mention: mention.start,
        )
    )


def _find_known(prose: str, gazetteer: Gazetteer, speaker: str, runs: Sequence[CapitalizedRun]) -> Iterator[Mention]:
    """Yield known names outside longer runs."""
    spoken = Gazetteer({speaker: "person"} if speaker else {})
    run_at = {position: run for run in runs for position in range(run.start, run.end)}
    end = 0
    for word in _WORD.finditer(prose):
        start = word.start()
        for name, kind, is_candidate, has_lowercase_use in (*spoken.find(word[0]), *gazetteer.find(word[0])):
            end_of_name = start + len(name)
            written, run = prose[start:end_of_name], run_at.get(start)
            is_lowercase = written == name.casefold() != name and kind == "name"
            is_longer = run is not None and len(run.name) > len(name)
            if (
                start < end
                or (written != name and not is_lowercase)
                or is_longer
                or _is_part(prose, start, end_of_name)
            ):
                continue
            is_evident = run is not None and run.is_evidence
            is_refused = (is_candidate and is_modifier(prose, name, end_of_name)) or (
                has_lowercase_use and not is_evident
            )
            if is_lowercase or not is_refused:
                end = end_of_name
                confidence = SEEN_ONCE if is_candidate else KNOWN
                yield Mention(written, kind, start, end, confidence, LOWERCASE if is_lowercase else "known name")
            break


def _find_unknown(prose: str, runs: Sequence[CapitalizedRun]) -> Iterator[Mention]:
    """Yield every occurrence of likely names.

    A name that the text also has in lower case is not likely.
    """
    names = dict.fromkeys(run.name for run in runs if run.is_evidence)
    for name in sorted(names, key=len, reverse=True):
        if name.casefold() in prose and _find_words(prose, name.casefold()):
            continue
        places = [start for start in _find_words(prose, name) if not is_modifier(prose, name, start + len(name))]
        confidence = REPEATED if len(places) > 1 else SEEN_ONCE
        for start in places:
            yield Mention(name, "name", start, start + len(name), confidence, BY_CAPITALS)


def _find_words(prose: str, name: str) -> list[int]:
    """Return the starts of a name, as whole words."""
    starts = (match.start() for match in re.finditer(re.escape(name), prose))
    return [start for start in starts if not _is_part(prose, start, start + len(name))]


def _is_part(prose: str, start: int, end: int) -> bool:
    """Return True for a part of a path or a longer word."""
    return _LONGER_BEFORE.match(prose[start - 1 : start]) is not None or _LONGER.match(prose, end) is not None
