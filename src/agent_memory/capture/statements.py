"""Typed statements of the user that a text repeats, requests or quotes.

They are checked where a model needs the user's words: after untrusted text, and in the modes `ask` and `manual`. A
quote permits a model to replace what the user stated before. A false quote loses the user's words, a missed one costs a
question, so quotes are read strictly, by structure. `patterns/orders.yaml` has the words.
"""

from __future__ import annotations

import functools
import re
from datetime import date, timedelta
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.capture.rules import get_pattern, read_patterns
from agent_memory.capture.typed_text import SELF, get_typed_part, is_question, list_own_sentences
from agent_memory.language.sentences import split_sentences
from agent_memory.language.similarity import get_harmless_words, list_telling_terms, strip_cue
from agent_memory.language.words import query_terms, stem
from agent_memory.late import compile_late
from agent_memory.models import utc_now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from agent_memory.times import TimeMention

_any: Final = functools.partial(get_pattern, "orders")

_VERBATIM: Final = compile_late(r"(?<![^\s,;()\"'])[^\s,;()\"']*[\d@/\\][^\s,;()\"']*")
"""Numbers, addresses, paths: these have to be equal character by character, not by their stems."""
_HYPHEN: Final = compile_late(r"(?<=[^\W\d_])-(?=[^\W\d_])")
_MIN_STEM: Final = 4
_MIN_SHARED: Final = 2
_FEW_WORDS: Final = 3
UNSPACED: Final = "⺀"
"""From here on scripts have no spaces: what follows a word directly belongs to another as often as not."""

CLAUSE: Final = compile_late(
    r"[,;\uff0c\uff1b、](?!\s*(?:that|dass|daß|was|dat|wat|że|co|чт\u043e)\b)\s*"
    r"|\s(?:and|then|but|so|und|dann|aber|et|puis|mais|y|luego|pero|e|depois|mas|poi|ma|daarna|maar|potem|ale"
    r"|и|п\u043eт\u043eм|н\u043e)\s",
    re.IGNORECASE,
)
"""Where a clause ends; a comma before "that" does not end one."""

_VAGUE: Final = frozenset(
    query_terms(
        "forget unlearn delete remove erase update change correct replace fix edit pin promote scratchpad memory "
        "memories fact facts rule thing things entry old new first second third last one all everything anything "
        "never not no about what said told says wrong true actually now please page text"
    )
)
"""Words of ordering and pointing: they do not say which memory is meant."""


def names_memory(prompt: str, memory_id: str) -> bool:
    """Return True if a typed sentence affirms the ID of a memory.

    It neither asks nor denies.
    """
    sentences = [sentence for sentence in list_own_sentences(prompt) if memory_id in sentence.lower()]
    return any(
        not _any("denies").search(sentence) and (_any("request").search(sentence) or not is_question(sentence))
        for sentence in sentences
    )


def denies(sentence: str) -> bool:
    """Return True if a sentence holds a word of denial."""
    return _any("denies").search(sentence) is not None


def supposes(sentence: str) -> bool:
    """Return True if a sentence supposes or limits ("if", "only")."""
    return _any("supposes").search(sentence) is not None


def list_telling_words(text: str) -> frozenset[str]:
    """Return the content words of a text.

    Function words of all languages are not among them.
    """
    return frozenset(word for word in list_telling_terms(text) if len(word) > 1) - _VAGUE - _function_words()


def list_content_words(text: str) -> frozenset[str]:
    """Return all words of a text except function words of any language."""
    return frozenset(query_terms(text)) - (_function_words() - _small_words()[0])


@functools.cache
def _function_words() -> frozenset[str]:
    asking, languages = _small_words()
    return asking.union(query_terms(" ".join(read_patterns("orders")["beside"])), *languages)


def says(prompt: str, content: str) -> bool:
    """Return True if the user's own words say what `content` says.

    Each sentence of it has to be one of theirs, which neither asks nor supposes: every telling word, in whatever tense
    and person, in the user's order and with little between; each number, address and path to the letter; a denial
    before the same word on both sides. Free are words of asking, of the third person that a model puts a user's "I"
    into, and function words of a language that the user writes.
    """
    typed = [sentence for sentence in _list_typed_sentences(prompt) if not asks(sentence)]
    stated = [sentence.text for sentence in split_sentences(content)]
    return bool(stated) and all(any(_says(sentence, claim) for sentence in typed) for claim in stated)


def asks_to_keep(prompt: str, content: str) -> bool:
    """Return True if the user's own words ask to keep `content`.

    A sentence has to order it ("remember that …"), neither denied nor asked. It has to be about the content: they share
    two telling words, or one where one of them has no more; or it only points ("please remember that").
    """
    words = list_telling_words(content)
    for sentence in _list_typed_sentences(prompt):
        if asks(sentence) or not _is_ordered("keep", sentence):
            continue
        named = list_telling_words(_any("keep").sub(" ", sentence))
        if len(named & words) >= min(_MIN_SHARED, len(named), max(1, len(words))):
            return True
    return False


def _list_typed_sentences(prompt: str) -> list[str]:
    """Return the sentences that no other author may have written."""
    return list_own_sentences(get_typed_part(prompt), strict=False)


def _is_ordered(key: str, sentence: str) -> bool:
    return any(
        not _any("contrary_before").search(sentence[: match.start()])
        and not _any("contrary_after").search(sentence[match.end() :])
        for match in _any(key).finditer(sentence)
    )


def asks(sentence: str) -> bool:
    """Return True if a sentence asks.

    "Could you remember that" does not, nor does "we use it, ok?".
    """
    if _any("request").search(sentence) and _any("remembering").search(sentence):
        return False
    return is_question(_any("tags").sub("", sentence)) or _any("asks").search(sentence) is not None


def _says(sentence: str, claim: str) -> bool:
    if supposes(sentence) and not supposes(claim):
        return False
    pieces = [piece.strip(".:!?") for piece in _VERBATIM.findall(claim)]
    if any(piece.casefold() not in sentence.casefold() for piece in pieces):
        return False
    theirs = [piece.strip(".:!?") for piece in _VERBATIM.findall(sentence)]
    if len(pieces) == len(theirs) == 1:  # one number alone may be anywhere; two could change places
        sentence, claim = sentence.replace(theirs[0], " "), claim.replace(pieces[0], " ")
    free = _list_free_words(frozenset(list_telling_terms(_HYPHEN.sub(" ", sentence))))
    typed, claimed = _mark_words(sentence, free), _mark_words(_any("frames").sub(" ", claim), free)
    if not claimed.words or len(claimed.words) > len(typed.words):
        return False
    orders_of_words = [claimed]
    if _any("verb_last").search(sentence):
        last = typed.words[-1:]
        orders_of_words += [claimed.with_last(n) for n, word in enumerate(claimed.words) if _is_typed(word, last)]
    return any(typed.holds(order) for order in orders_of_words)


class _MarkedWords(NamedTuple):
    """Content words of a sentence, and the gaps around them."""

    words: list[str]
    denied: frozenset[int]
    """Gaps with a denial; gap n is before word n."""

    ends: frozenset[int]

    def with_last(self, position: int) -> _MarkedWords:
        """Return the same with one word at the end.

        Some languages put a verb there.
        """
        words = [*self.words[:position], *self.words[position + 1 :], self.words[position]]
        length = len(words)
        moved = frozenset(min(gap if gap <= position else gap - 1, length - 1) for gap in self.denied)
        return _MarkedWords(words, moved, frozenset())

    def holds(self, claim: _MarkedWords) -> bool:
        """Return True if this text has the words of a claim.

        They are in the same order, close together and denied alike.
        """
        return any(self._holds_from(start, claim) for start in range(len(self.words)))

    def _holds_from(self, start: int, claim: _MarkedWords) -> bool:
        place = start
        before = self._denied_between(max((gap for gap in self.ends if gap <= start), default=0), start)
        for position, word in enumerate(claim.words):
            following = range(place, len(self.words))
            match = next((n for n in following if _is_typed(word, self.words[n : n + 1])), None)
            if match is None or (position == 0 and match != start):
                return False
            if position:
                before = self._denied_between(place, match)
            if before != (position in claim.denied):
                return False
            place = match + 1
        skipped = place - start - len(claim.words)
        after = self._denied_between(place, min((gap for gap in self.ends if gap >= place), default=len(self.words)))
        return skipped <= max(1, len(claim.words) // _FEW_WORDS) and after == (len(claim.words) in claim.denied)

    def _denied_between(self, first: int, last: int) -> bool:
        return any(first <= gap <= last for gap in self.denied)


def _mark_words(text: str, free: frozenset[str]) -> _MarkedWords:
    words: list[str] = []
    denied: set[int] = set()
    ends: set[int] = set()
    for piece in _compile_marks().split(_HYPHEN.sub(" ", text)):
        if CLAUSE.fullmatch(piece):
            ends.add(len(words))
        elif _any("denies").search(piece) and _compile_marks().fullmatch(piece):
            denied.add(len(words))
        else:
            words += [word for word in list_telling_terms(piece) if word not in free]
    return _MarkedWords(words, frozenset(denied), frozenset(ends))


@functools.cache
def _compile_marks() -> re.Pattern[str]:
    """Return the pattern of denials and of the ends of clauses.

    A contracted denial includes its verb.
    """
    return re.compile(rf"((?:\w+n['\u2019]t\b|{_any('denies').pattern})|{CLAUSE.pattern})", re.IGNORECASE)


def _is_typed(word: str, typed_words: Collection[str]) -> bool:
    """Return True if the user typed a stem in some form."""
    return word in typed_words or any(
        differ_in_ending(word, typed) for typed in typed_words if typed[:_MIN_STEM] == word[:_MIN_STEM]
    )


def differ_in_ending(first: str, second: str) -> bool:
    """Return True if two words differ only in their endings."""
    if not (first.isalpha() and second.isalpha()):
        return False
    pairs = enumerate(zip(first, second, strict=False))
    common = next((position for position, (a, b) in pairs if a != b), min(len(first), len(second)))
    return common >= _MIN_STEM and {first[common:], second[common:]} <= _endings()


@functools.cache
def _endings() -> frozenset[str]:
    return frozenset({"", *read_patterns("orders")["endings"]})


def _list_free_words(typed_words: frozenset[str]) -> frozenset[str]:
    """Return words of asking, and function words of the user's languages."""
    asking, languages = _small_words()
    return asking.union(*(words for words in languages if words & typed_words))


@functools.cache
def _small_words() -> tuple[frozenset[str], tuple[frozenset[str], ...]]:
    data = read_patterns("orders")
    languages = tuple(frozenset(query_terms(words)) for words in data["function_words"])
    return frozenset(query_terms(" ".join(data["asking"]))), languages


_MAX_CHARS: Final = 1_000
"""Characters of a typed message, and of a new text, that are compared."""
_MAX_CLAUSES: Final = 10
"""Clauses of a sentence that are read on their own."""
_MIN_RUN: Final = 2
"""Words in a row of a quote."""
_MIN_SHARE: Final = 2 / 3
"""Share of the new text's telling words that a quote holds."""
_CHARACTER: Final = f"\u0e00-\u0e7f{UNSPACED}-\uffff"
_WORD: Final = compile_late(rf"[{_CHARACTER}]|(?:(?![{_CHARACTER}])[^\W_])+(?:['\u2019][^\W_]+)?")
"""A word; in scripts without spaces a character."""


def find_quote(prompt: str, content: str, replaced: str) -> str:
    """Return the user's statement that a new text quotes, or empty.

    The message is one line without a report. One of its sentences, or of their clauses that begin alike, is the
    statement: the text has its words in the same order, and little more. Days are free, because a text has absolute
    ones; so are openings ("no,") and function words around the statement.

    Args:
        prompt: Message of the user.
        content: New text that replaces another.
        replaced: Replaced text; a quote says something else.
    """
    line, content = prompt.strip(), content[:_MAX_CHARS]
    if len(line) > _MAX_CHARS or "\n" in line or get_pattern("wishes", "reported").search(line):
        return ""
    statements = [
        statement
        for sentence in list_own_sentences(line)
        if not asks(sentence)
        for statement in _iter_statements(strip_cue(sentence))
        if _differ(statement, replaced)
    ]
    plain = next((statement for statement in statements if _is_quoted(statement, content)), "")
    return plain or next((statement for statement in statements if _is_quoted_without_days(statement, content)), "")


def share_topic(first: str, second: str) -> bool:
    """Return True if two texts share a telling word."""
    return not list_telling_words(first).isdisjoint(list_telling_words(second))


def _iter_statements(sentence: str) -> Iterator[str]:
    """Yield a sentence without openings, and its clauses that begin alike.

    A clause counts if nothing else in the sentence denies or supposes.
    """
    breaks = list(CLAUSE.finditer(sentence))
    while breaks and _is_opening(sentence[: breaks[0].start()]) and not breaks[0][0][0].isspace():
        sentence = sentence[breaks[0].end() :]
        breaks = list(CLAUSE.finditer(sentence))
    yield sentence
    alike = [clause for clause in breaks if _begin_alike(sentence, sentence[clause.end() :])][:_MAX_CLAUSES]
    starts = [0, *(clause.end() for clause in alike)]
    ends = [*(clause.start() for clause in alike), len(sentence)]
    for start, end in zip(starts, ends, strict=True):
        rest = f"{sentence[:start]} {sentence[end:]}"
        if alike and not denies(rest) and not supposes(rest):
            yield sentence[start:end]


def _begin_alike(sentence: str, clause: str) -> bool:
    """Return True if both begin with one word, or in first person."""
    first, second = _WORD.match(sentence), _WORD.match(clause)
    if first is None or second is None:
        return False
    is_same = first[0].casefold() == second[0].casefold()
    return is_same or (SELF.match(sentence) is not None and SELF.match(clause) is not None)


def _is_opening(clause: str) -> bool:
    """Return True if a clause only opens a sentence ("by the way").

    It has one content word at most and no name, and supposes nothing.
    """
    has_name = any(word[:1].isupper() for word in _WORD.findall(clause)[1:])
    return len(list_content_words(clause)) <= 1 and not has_name and not supposes(clause)


def _differ(statement: str, replaced: str) -> bool:
    """Return True if a statement adds words or denies a text."""
    has_new = not set(query_terms(statement)) <= set(query_terms(replaced))
    return has_new or denies(statement) != denies(replaced)


def _is_quoted(statement: str, content: str) -> bool:
    """Return True if a text has a statement's words, and little more.

    With another subject ("the user") in the text, the statement has one word for its own ("I").
    """
    typed_words, new_words = _list_words(statement), _list_words(content)
    typed_stems = _stem_words(typed_words)
    new_stems = [_find_form(word, typed_stems) for word in _stem_words(new_words)]  # "lives" for "live"
    run = SequenceMatcher(None, typed_stems, new_stems, autojunk=False).find_longest_match()
    if run.size < _MIN_RUN or run.a + run.size < len(typed_words):
        return False
    quote = content[new_words[run.b].start() : new_words[run.b + run.size - 1].end()]
    before, lead, tail = typed_words[: run.a], new_words[: run.b], new_words[run.b + run.size :]
    if not lead:
        beginning = statement[: typed_words[run.a].start()]
        before = _list_words(
            get_pattern("orders", "changed").sub("", get_pattern("orders", "request").sub("", beginning))
        )
    if len(before) > min(len(lead), 1) or any(list_content_words(word[0]) for word in before):
        return False
    around = " ".join(word[0] for word in (*before, *lead, *tail))
    quoted, telling = list_telling_words(quote), list_telling_words(content)
    return not (denies(around) or supposes(around)) and bool(quoted) and len(quoted) >= _MIN_SHARE * len(telling)


def _list_words(text: str) -> list[re.Match[str]]:
    """List the words of a text, except harmless ones such as "now"."""
    return [word for word in _WORD.finditer(text) if word[0].casefold() not in get_harmless_words()]


def _stem_words(words: list[re.Match[str]]) -> list[str]:
    return [stem(word[0].casefold()) for word in words]


def _find_form(word: str, typed_stems: list[str]) -> str:
    """Return the typed word that has another ending, or the word."""
    return word if word in typed_stems else next((form for form in typed_stems if differ_in_ending(word, form)), word)


def _is_quoted_without_days(statement: str, content: str) -> bool:
    """Return True if a text quotes a statement except for its days.

    Each day of the text is among the statement's, or today if that has none. "Until Friday" is not left out.
    """
    from agent_memory.times import times_in  # its grammar is for texts with days

    now = utc_now().astimezone()
    typed_days, new_days = times_in(statement, now), times_in(content, now)
    if not (typed_days or new_days) or not all(_is_among(day, typed_days, now.date()) for day in new_days):
        return False
    if any(map(_has_end_alone, typed_days)) and not any(map(_has_end_alone, new_days)):
        return False
    return _is_quoted(_drop(statement, typed_days), _drop(content, new_days))


def _has_end_alone(day: TimeMention) -> bool:
    """Return True for "until Friday"."""
    return any(first is None and last is not None for first, last in day.readings)


def _is_among(day: TimeMention, typed_days: Sequence[TimeMention], today: date) -> bool:
    """Return True if a day overlaps typed days that are open alike.

    Without typed days, today counts.
    """
    if not day.is_resolved:
        return any(mention.readings == day.readings for mention in typed_days)
    readings = [reading for mention in typed_days for reading in mention.readings if any(reading)]
    if not readings and day.first_day == today:
        return True  # "since today", too
    readings = readings or [(today, today + timedelta(days=1))]
    spans = [
        (first or date.min, end or date.max)
        for first, end in readings
        if (first is None, end is None) == (day.first_day is None, day.end_day is None)
    ]
    first_day, end_day = day.first_day or date.min, day.end_day or date.max
    return any(first_day < end and start < end_day for start, end in spans)


def _drop(text: str, days: Sequence[TimeMention]) -> str:
    for day in reversed(days):
        text = f"{text[: day.start]} {text[day.end :]}"
    return text
