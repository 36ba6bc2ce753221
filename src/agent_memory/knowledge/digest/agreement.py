"""Words of digested statements, and the places of their quotes. Pure.

A statement keeps its own words only if they repeat the whole sentence of its quote, below nothing but its lead,
headings, title or speaker. Else the sentence itself is stored: no check has to understand a language.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from agent_memory.capture.rules import load_rules
from agent_memory.knowledge.passages.sections import LINE, SEPARATOR, TextBlock, is_item_start, parse_blocks
from agent_memory.language.languages import guess_languages
from agent_memory.language.sentences import find_breaks
from agent_memory.language.words import query_terms

if TYPE_CHECKING:
    from collections.abc import Sequence


MOST_CHARS: Final = 600
"""Characters of a sentence, with what leads to it, that is stored."""
_CODE_FENCES: Final = ("```", "~~~")
_QUESTION_MARKS: Final = frozenset("?؟？")  # noqa: RUF001
_LINK: Final = re.compile(r"\[([^\[\]\n]*)\]\([^()\s]*\)")
_MARKUP: Final = re.compile(r"\{\w+\}(?=`)|`|(?<!\w)\*+(?=\S)|(?<=\S)\*+(?!\w)|(?m:^[ \t]*(?:[-*+>•]|\d+[.)])[ \t]+)")
"""Roles, backticks, emphasis and list marks."""
_LEADS: Final = (":", "：")  # noqa: RUF001
_LABEL_END: Final = re.compile(rf"[:：{SEPARATOR.strip()}]")  # noqa: RUF001


class QuotedPlace(NamedTuple):
    """A quote with what is around it.

    Attributes:
        quote: Words of the source.
        sentence: Whole sentences of the source that hold the quote.
        lead: Words that lead to the list or table of the quote.
        before: Sentence before with a line break, and the question that the turn answers with the label of the turn.
        heading: Heading path of the passage.
        names: Names of the document and of its speaker.
    """

    quote: str
    sentence: str
    lead: str = ""
    before: Sequence[str] = ()
    heading: str = ""
    names: Sequence[str] = ()

    @property
    def title(self) -> str:
        """Return the last heading."""
        return self.heading.rpartition(SEPARATOR)[2]


def choose_words(statement: str, place: QuotedPlace) -> tuple[str, str]:
    """Return the words to store, or why there are none.

    They are its own words if these repeat the sentence, else the sentence below what leads to it.
    """
    if is_question(place.sentence):
        return "", "its quote is a question"
    if repeats_sentence(statement, place):
        return " ".join(statement.split()), ""
    sentence = " ".join(place.sentence.split())
    for before in (_find_mentioned(statement, place), ""):
        words = f"{place.lead}\n{before}{sentence}".lstrip()
        if len(words) <= MOST_CHARS:
            return words, ""
    return "", f"its sentence has more than {MOST_CHARS} characters with what leads to it"


def is_question(text: str) -> bool:
    """Return True if a question mark follows the last word."""
    return not _QUESTION_MARKS.isdisjoint(re.split(r"\w", text)[-1])


def repeats_sentence(statement: str, place: QuotedPlace) -> bool:
    """Return True if a statement is its sentence below known labels."""
    words, sentence, lead = (normalize_words(text) for text in (statement, place.sentence, place.lead))
    if not sentence or not words.endswith(sentence) or is_question(statement):
        return False
    *labels, rest = map(str.strip, _LABEL_END.split(words.removesuffix(sentence)))
    names = (*place.heading.split(SEPARATOR), *place.names)
    return not rest and {lead, *map(normalize_words, names)}.issuperset(labels) and (not lead or lead in labels)


def normalize_words(text: str) -> str:
    """Return words in lower case without markup and punctuation at the end."""
    return " ".join(_MARKUP.sub("", _LINK.sub(r"\1", text)).split()).rstrip(" .:;,!…。：；！").casefold()  # noqa: RUF001


def _find_mentioned(statement: str, place: QuotedPlace) -> str:
    """Return the earlier text with a word that only the statement has."""
    terms = query_terms(" ".join((place.sentence, place.lead, place.heading, *place.names)))
    missing = set(query_terms(statement)).difference(terms)
    return next((text for text in place.before if not missing.isdisjoint(query_terms(text))), "")


def tells_decision(place: QuotedPlace) -> bool:
    """Return True if capture finds a decision in a quoted sentence."""
    texts = (place.sentence, f"{place.title}: {place.sentence}")
    rules = [rule for language in guess_languages(place.sentence) for rule in load_rules(language).rules]
    return any(rule.category == "decision" and rule.pattern.search(text) for rule in rules for text in texts)


# -- places of quotes -------------------------------------------------------------------------------------------------


def find_lead(text: str, place: tuple[int, int], title: str = "") -> str:
    """Return the words that lead to a sentence.

    That is the paragraph above its list or table, else its title; the items above a nested one; the first row of its
    table.
    """
    block, above = _find_block(text, place)
    if block is None:
        return ""
    lines: list[str] = []
    if above is not None and above.kind == "text":
        lead = text[above.start : above.end].rstrip()
        lines += [lead] if block.kind != "text" or lead.endswith(_LEADS) else []
    elif block.kind in {"list", "table"}:
        lines.append(title)
    rows = [row for row in LINE.finditer(text, block.start, block.end) if row.start() <= place[0]]
    if block.kind == "table":
        lines += [row[0] for row in rows[:1] if row.end() <= place[0]]
    elif block.kind == "list":
        lines += _find_items_above(text, [row for row in rows if is_item_start(row[0])], place[0])
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def find_sentence(text: str, place: tuple[int, int]) -> tuple[int, int]:
    """Return the place of the whole sentences, items or rows."""
    block, _ = _find_block(text, place)
    if block is None:
        return place
    lines = list(LINE.finditer(text, block.start, block.end))
    cuts = [line.start() for line in lines if block.kind in {"table", "code"} or is_item_start(line[0])]
    if block.kind != "table":
        cuts += find_breaks(text, block.start, block.end, is_wrapped=True)
        cuts += [line.start() for line in lines if line[0].lstrip().startswith(_CODE_FENCES)]
    start = max((cut for cut in cuts if cut <= place[0]), default=block.start)
    return start, max(place[1], min((cut for cut in cuts if cut >= place[1]), default=block.end))


def find_sentence_before(text: str, start: int) -> str:
    """Return the preceding sentence of the paragraph, with a line break."""
    block, _ = _find_block(text, (start, start))
    end = len(text[:start].rstrip())
    if block is None or block.kind != "text" or end <= block.start:
        return ""
    return " ".join(text[slice(*find_sentence(text, (end - 1, end)))].split()) + "\n"


def _find_block(text: str, place: tuple[int, int]) -> tuple[TextBlock | None, TextBlock | None]:
    """Return the block at a place, and the block above."""
    pairs = pairwise([None, *_parse(text)])
    return next(
        ((block, above) for above, block in pairs if block and block.start <= place[0] < block.end), (None, None)
    )


def _find_items_above(text: str, rows: Sequence[re.Match[str]], sentence: int) -> list[str]:
    """Return the items above a sentence, and the beginning of its own."""
    if not rows:
        return []
    start, indent = rows[-1].start(), _get_indent(rows[-1][0])
    items = [text[slice(*find_sentence(text, (start, start + 1)))]] if start < sentence else []
    for row, following in reversed(list(pairwise(rows))):
        if _get_indent(row[0]) < indent:
            indent = _get_indent(row[0])
            items.append(text[row.start() : following.start()])
    return items[::-1]


def _get_indent(line: str) -> int:
    return len(line) - len(line.lstrip())


@lru_cache(maxsize=1)
def _parse(text: str) -> list[TextBlock]:
    """Return the blocks of the document whose statements are checked."""
    return parse_blocks(text)
