"""Agreement of statements with their quotes. Pure.

A statement says no more than its quote, and leaves out nothing that limits it. Its words are in the sentence of the
quote, or in the lead of its list. The heading may add words. Other words of the passage may only replace a pronoun.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.capture.rules import guess_languages, load_rules
from agent_memory.knowledge.digest.statement_words import (
    denies,
    find_denied,
    find_followers,
    find_function_words,
    find_identifiers,
    find_replacing,
    find_rested,
    find_used,
    get_permissions,
    get_suppositions,
    get_terms,
    grow_to_clauses,
    is_turned_round,
    is_turning,
    list_first,
    read_words,
)
from agent_memory.knowledge.llm.grounding import find_numbers, keeps_order, names_of
from agent_memory.knowledge.llm.grounding import place_of as find_words
from agent_memory.knowledge.passages.exchanges import asks
from agent_memory.knowledge.passages.sections import SEPARATOR
from agent_memory.knowledge.passages.structure import LINE, is_item_start, parse_blocks
from agent_memory.retrieval import query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_memory.knowledge.digest.statement_words import StatementWord
    from agent_memory.knowledge.passages.structure import TextBlock

_LIMITS: Final = frozenset({"forbidden", "only", "unless"})
"""Kinds of permission that count anywhere in the sentence of a quote."""
_SENTENCE_END: Final = re.compile(
    r"(?<=[.!?])(?<!\W[A-Za-z]\.)[\"'”’»)\]*_]*\s+(?=[^\sa-z])|(?<=;)\s+|(?<=[。！？；])"  # noqa: RUF001
)
_MEASURE: Final = re.compile(
    r"(?:(?<![^\W\d_])(?P<label>[^\W\d_]+) )?(?<![\w)])(?P<sign>[-−+<>≤≥~±$€£¥#]?)(?<![\d.,:])"  # noqa: RUF001
    r"(?P<number>\d+(?:[.,:]\d+)*)(?:[ -]?(?P<unit>[^\W\d_]+|[%‰°€$£¥]))?"
)
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^()\s]+\)")
_USER: Final = re.compile(r"\buser(?!\w)", re.IGNORECASE)
_NEW: Final = "it says something that its quote does not say"
_LEADS: Final = (":", "：")  # noqa: RUF001
_STARTS: Final = (".", "!", "?", ":", "-", "*", "|")


class QuotedPlace(NamedTuple):
    """A quote with the words around it that limit what it says.

    Attributes:
        quote: Words of the source.
        sentence: Whole sentences of the source that hold the quote.
        lead: Words that lead to the list or table of the quote.
        heading: Heading path of the passage.
        passage: Whole passage, in which names may be.
    """

    quote: str
    sentence: str
    lead: str = ""
    heading: str = ""
    passage: str = ""

    @property
    def title(self) -> str:
        """Return the last heading."""
        return self.heading.rpartition(SEPARATOR)[2]


def check_statement(statement: str, place: QuotedPlace) -> str:
    """Find the reason why a statement disagrees with its quote."""
    return _StatementCheck(statement, place).find_reason()


def tells_decision(place: QuotedPlace) -> bool:
    """Return True if capture finds a decision in a quoted sentence."""
    texts = (place.sentence, f"{place.title}: {place.sentence}")
    rules = [rule for language in guess_languages(place.sentence) for rule in load_rules(language).rules]
    return any(rule.category == "decision" and rule.pattern.search(text) for rule in rules for text in texts)


class _StatementCheck:
    """Compares one statement with its quote."""

    def __init__(self, statement: str, place: QuotedPlace) -> None:
        self._statement, self._place = statement, place
        function_words = find_function_words(f"{place.passage}\n{place.sentence}")
        self._words = read_words(statement, function_words)
        self._sentence = read_words(place.sentence, function_words)
        self._lead = read_words(place.lead, function_words)
        self._title = read_words(place.title, function_words)
        self._heading = get_terms(read_words(place.heading, function_words))
        self._passage = get_terms(read_words(place.passage, function_words))
        quoted = find_words(place.quote, place.sentence) or (0, len(place.sentence))
        self._quote = [word for word in self._sentence if word.start < quoted[1] and quoted[0] < word.end]
        self._used = find_used(self._words, self._sentence, quoted)

    def find_reason(self) -> str:
        """Return the first reason to refuse the statement, or an empty text."""
        if not self._used:
            return "it has no word of its quote"
        if asks(self._place.sentence) and not asks(self._statement):
            return "its quote is a question"
        checks = (
            self._check_numbers,
            self._check_limits,
            self._check_permissions,
            self._check_new_words,
            self._check_left_words,
            self._check_order,
        )
        return next((reason for check in checks if (reason := check())), "")

    def _check_numbers(self) -> str:
        """Return a reason if a number, its sign, unit or name differs."""
        place, stated = self._place, _read_measures(self._statement)
        source = _read_measures(f"{place.heading}; {place.lead}; {place.sentence}")
        if missing := set(find_numbers(place.quote)).difference(find_numbers(self._statement)):
            return f"it leaves out a number of its quote: {min(missing)}"
        for number, measures in stated.items():
            if number not in source:
                return f"it has a number that its quote does not have: {number}"
            signs, labels, units, _ = (set(values) for values in zip(*source[number], strict=True))
            for sign, label, unit, words in measures:
                is_renamed = label not in labels | {""} and labels != {""}
                if sign not in signs or is_renamed or (unit not in units and units != {""}):
                    return f"its quote has {number} with another sign, unit or name: {words}"
        return ""

    def _check_limits(self) -> str:
        """Return a reason if a statement denies, supposes or compares something else."""
        place = self._place
        denied = get_terms(find_denied(self._sentence, after=False))
        rest = get_terms(self._sentence) - denied
        is_other = denied and any(word.is_in(rest) for word in find_denied(self._words, after=True))
        if is_other or denies(self._statement) != denies(f"{place.title}; {place.lead}; {place.sentence}"):
            return "it denies something else than its quote"
        stated, source = get_suppositions(self._statement), get_suppositions(f"{place.lead}; {place.sentence}")
        if source - stated:
            return f"it leaves out {min(source - stated)}"
        if stated - source:
            return f"{_NEW}: {min(stated - source)}"
        followers = defaultdict[str, set[str]](set)
        for words in (self._title, self._lead, self._sentence):
            for word, terms in find_followers(words).items():
                followers[word] |= terms | {""}
        for word, terms in find_followers(self._words).items():
            if word in followers and terms - followers[word]:
                return f"after {word} it says something else than its quote"
        return ""

    def _check_permissions(self) -> str:
        """Return a reason if a statement permits or forbids something else."""
        place, stated = self._place, get_permissions(self._statement)
        lead = "\n".join(_SENTENCE_END.split(line)[-1] for line in place.lead.splitlines())
        near = get_permissions(" ".join(word.text for word in self._used)) | get_permissions(lead)
        far = get_permissions(f"{place.lead}; {place.sentence}") | (get_permissions(place.title) & {"forbidden"})
        is_other = stated - near - far or (near | (far & _LIMITS)) - stated
        return "it permits or forbids something else than its quote" if is_other else ""

    def _find_new_words(self) -> list[StatementWord]:
        held = get_terms(self._used) | get_terms(self._lead)
        return [word for word in self._words if word.counts and not word.is_in(held)]

    def _check_new_words(self) -> str:
        """Return a reason if a word is neither quoted nor context."""
        user = _USER.search(self._statement)
        if user and not _USER.search(f"{self._place.sentence}\n{self._place.passage}"):
            return f"{_NEW}: {user[0]}"
        new = self._find_new_words()
        replacing = (
            find_replacing(self._words, grow_to_clauses(self._used, self._sentence, has_ends=True)) if new else ()
        )
        for word in new:
            is_known = word.is_in(self._heading) or (word in replacing and word.is_in(self._passage))
            if not is_known or is_turning(word.text):
                return f"{_NEW}: {word.text}"
        return ""

    def _check_left_words(self) -> str:
        """Return a reason if a word of the restated clauses is missing.

        A statement with words from elsewhere restates the clause of a pronoun, and has all words of it.
        """
        used, stated, new = self._used, get_terms(self._words), self._find_new_words()
        if new:
            has_ends = not all(word.is_in(self._heading) for word in new)
            used = grow_to_clauses(used, self._sentence, has_ends=has_ends)
        rested = find_rested(stated, used)
        clauses = {word.clause for word in rested}
        names = names_of(_without_starts(self._place.quote)) - stated
        required = [word for word in rested if word.counts]
        required += [
            word for word in self._sentence if word.clause in clauses and word.counts and is_turning(word.text)
        ]
        required += [word for word in self._quote if not names.isdisjoint(word.terms)]
        targets = [match.span() for match in _LINK_TARGET.finditer(self._place.sentence)]
        required = [word for word in required if not any(start < word.start < end for start, end in targets)]
        missing = next((word for word in required if not word.is_in(stated)), None)
        return f"it leaves out {missing.text}" if missing is not None else ""

    def _check_order(self) -> str:
        """Return a reason if words changed places."""
        statement, sentence = self._statement, self._place.sentence
        identifiers = find_identifiers(self._words, statement) | find_identifiers(self._sentence, sentence)
        identifiers |= names_of(statement) & names_of(sentence)
        stated, quoted = list_first(self._words, identifiers), list_first(self._sentence, identifiers)
        is_same = [term for term in stated if term in quoted] == [term for term in quoted if term in stated]
        if is_same and keeps_order(statement, sentence) and not is_turned_round(self._words, self._used):
            return ""
        return "its words are in another order than those of its quote"


def _read_measures(text: str) -> dict[str, list[tuple[str, str, str, str]]]:
    """Return by number its signs, labels, units and its words as written."""
    measures: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    for match in _MEASURE.finditer(text):
        terms = (match["sign"], _get_term(match["label"]), _get_term(match["unit"]))
        measures[match["number"]].append((*terms, match[0]))
    return measures


def _get_term(word: str | None) -> str:
    """Return the term of a word or sign, empty for function words."""
    return next(iter(query_terms(word)), "" if word.isalpha() else word) if word else ""


def _without_starts(quote: str) -> str:
    """Return a quote without capitals at the start of sentences."""
    pairs = pairwise([".", *quote.split()])
    return " ".join(word.lower() if before.endswith(_STARTS) else word for before, word in pairs)


# -- places of quotes -------------------------------------------------------------------------------------------------


def find_lead(text: str, place: tuple[int, int]) -> str:
    """Return the words that lead to a place.

    That is the sentence above its list or table, the items above a nested one, the first row of its table.
    """
    block, above = _find_block(text, place)
    if block is None:
        return ""
    lines: list[str] = []
    if above is not None and above.kind == "text":
        lead = text[above.start : above.end].rstrip()
        lines += [lead] if block.kind != "text" or lead.endswith(_LEADS) else []
    rows = [match[0] for match in LINE.finditer(text, block.start, place[0]) if match[0].endswith("\n")]
    if block.kind == "table":
        lines += rows[:1]
    elif block.kind == "list":
        lines += _find_items_above(rows, text[text.rfind("\n", 0, place[0]) + 1 :])
    return "\n".join(" ".join(line.split()) for line in lines)


def find_sentence(text: str, place: tuple[int, int]) -> tuple[int, int]:
    """Return the place of the whole sentences, items or rows."""
    block, _ = _find_block(text, place)
    if block is None:
        return place
    cuts = [match.end() for match in _SENTENCE_END.finditer(text, block.start, block.end)]
    if block.kind != "text":
        lines = LINE.finditer(text, block.start, block.end)
        cuts += [line.start() for line in lines if block.kind != "list" or is_item_start(line[0])]
    start = max((cut for cut in cuts if cut <= place[0]), default=block.start)
    return start, max(place[1], min((cut for cut in cuts if cut >= place[1]), default=block.end))


def _find_block(text: str, place: tuple[int, int]) -> tuple[TextBlock | None, TextBlock | None]:
    """Return the block at a place, and the block above."""
    pairs = pairwise([None, *_parse(text)])
    return next(
        ((block, above) for above, block in pairs if block and block.start <= place[0] < block.end), (None, None)
    )


def _find_items_above(rows: Sequence[str], line: str) -> list[str]:
    """Return the list items above a nested item."""
    indent = len(line) - len(line.lstrip())
    items: list[str] = []
    for row in reversed([row for row in rows if is_item_start(row)]):
        if len(row) - len(row.lstrip()) < indent:
            indent = len(row) - len(row.lstrip())
            items.append(row)
    return items[::-1]


@lru_cache(maxsize=1)
def _parse(text: str) -> list[TextBlock]:
    """Return the blocks of the document whose statements are checked."""
    return parse_blocks(text)
