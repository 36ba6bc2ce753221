"""Layout of typed messages that another author may have written.

The user's own words are one paragraph of plain prose, or a list that such a line introduces. Anything else in
the message, such as a title, a label, a second paragraph or a signature, shows that it may be pasted. It is then kept
as a note at most.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Final

from agent_memory.capture.rules import get_pattern, load_rules
from agent_memory.language.languages import guess_languages
from agent_memory.language.sentences import COLONS, find_sentences
from agent_memory.models.identifiers import RULE_CATEGORIES

if TYPE_CHECKING:
    from agent_memory.capture.rules import CaptureRule

_MAX_LABEL_CHARS: Final = 80
_MAX_TITLE_WORDS: Final = 8
_SHORT_WORDS: Final = 4
_NAME_WORDS: Final = 2
"""Words of a label inside a line; more may introduce what the user quotes."""
_SHORT_CHARS: Final = 12
"""Characters of a short sentence in a script without spaces."""
_FEWEST_SENTENCES: Final = 3
"""Sentences of a letter: greeting, text and closing."""

_ENDS: Final = (".", "!", "?", ",", ";", "…", "。", "\uff01", "\uff1f", "\uff0c")
_QUESTIONS: Final = ("?", "\uff1f")
_INTRODUCES: Final = (*COLONS, *_QUESTIONS)
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_LABEL: Final = re.compile(
    r"[^\w@]*(?:[^\W\d_]{1,4}\.\s)?"
    rf"((?:[^.!?:\n\uff1a]|\.(?=\s\d|\w)){{1,{_MAX_LABEL_CHARS}}})(?::[ \t]+|\uff1a[ \t]*)\S"
    r"|(\w+)[ \t]?:(?=[^\W\d_])"
)
_DASHED: Final = re.compile(r"[^\w@]*(\w[^.!?:\n-]{1,60}? [A-Z][^.!?:\n-]{0,40}?) [-\u2013] \S")
"""A name before a dash, such as "Review by Ann - ..."."""
_OPENING: Final = re.compile(r"\W{0,4}(?:[\w'\u2019-]{1,30} ){0,2}[\w'\u2019-]{1,30},\s")
"""Few words before a comma, as in a greeting or closing."""
_RECORD_ID: Final = re.compile(r"\b[a-z]+-[0-9a-f]{12}\b")
_SEPARATED: Final = re.compile(
    r"\S(?:\t| {3}| {2}[:=])|[.!?]\s?;|\S [|·•\u203a»→] \S|\d{1,2}:\d{2}(?:\s?[AP]M)?\s?[:)\]>|]|\w@[\w.-]+>"
)
"""Columns, a breadcrumb, a time before a text, or a mail address in brackets."""
_MARKED: Final = re.compile(
    r"[^\w\s¿¡(@\"'“„«\u2039\u2018「『`*-]|_|[-*](?! )|- \[[ xX]?\]\s|(?:bq|bc|p|pre|h[1-6]|fn\d{1,3})\.{1,2}\s"
    r"|\W{0,2}\d{1,4}[-/.:]\d{1,2}\b|[A-Z]?\d{1,5}(?:\t| {2,}| (?=[A-Z]))|(?:[A-Za-z]|[ivxIVX]{1,5})[.)]\s"
    r"|[A-Z][A-Z\d]+-\d{1,6}\s(?=[^\W\d_a-z])"
    r"|[A-Z]\w* [A-Z-]{0,4}\d[\d.]*[.:]?\s(?:[-\u2013—] )?(?=[^\W_a-z])"
    r"|\([^()\n]{1,40}\)\s+(?=[A-Z])|\w+\([^()]*\):\s|@[\w-]+(?![\w./\\-])[\s,:]+\S"
    r"|\S+(?:\s?[>|»]| (?:[-\u2013—=]|[-=]>))\s|['\u2018](?!.*['\u2019](?!\w))"
)
"""Beginning of a line with mark-up (also Textile), a number, or a name before a mark."""
_CREDIT: Final = re.compile(
    r".*[.!?。][\"'”\u2019]?\s*(?:[—\u2013({\[#|•·~/*-]+\s?[^\W\d][^.!?\n]*$"
    r"|(?:[\[{]|\((?!\d+\)))[^()\[\]{}\n]{1,40}[)\]}]\s*$|\d{1,2}:\d{2}(?:\s?[AP]M)?\s*$"
    r"|(?<=\s)[^\w\s]{1,3}\s?\d{1,4}\s*$)"
)
"""Name or votes after a text, such as "… - Ann", "… (Ann, 3 May)" or "… +1"."""
REMOVED: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Line in the place of a removed one; the lines directly below are its output or its continuation."""
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_GREETING: Final = r"\W*(?:(?:%s)\b\W*)+(?:[\w'-]+\W*)?|[^\W\d_]+!"
"""Greeting, with a name at most, or one word that is called out."""


def blank_other_authors(text: str) -> str:
    """Blank the lines that another author may have written."""
    lines = text.splitlines()
    foreign = _find_foreign(lines)
    filled = list(filter(str.strip, lines[:foreign]))
    if any(map(str.strip, lines[foreign:])) and not (filled and filled[-1].rstrip().endswith(_INTRODUCES)):
        return ""
    sections = _split_sections(lines[:foreign])
    own_lines = [line for section in sections for positions in section for line in _leave_greetings(lines, positions)]
    if len(own_lines) > 1 and any(map(_is_title, own_lines)):
        return ""
    typed = {p for section in sections for positions in _choose_typed(lines, section) for p in positions}
    return "\n".join(line if position in typed else "" for position, line in enumerate(lines))


def _choose_typed(lines: list[str], paragraphs: list[list[int]]) -> list[list[int]]:
    """Return the paragraphs that only the user can have written.

    Several paragraphs of prose are typed if no line has an end mark.
    """
    texts = [_leave_greetings(lines, positions) for positions in paragraphs]
    prose = [line for text in texts for line in text if not any(map(_BULLET.match, text))]
    is_typed = sum(map(bool, texts)) <= 1 or not any(map(_is_ended, prose))
    return [p for p, text in zip(paragraphs, texts, strict=True) if is_typed and _is_plain(text)]


def _find_foreign(lines: list[str]) -> int:
    """Return the start of the first foreign text, or the end.

    A line with a colon introduces it unless it is the user's own label.
    """
    for position, line in enumerate(lines):
        if _is_foreign(line):
            return position
        if line.rstrip().endswith(COLONS) and not _is_own_label(line.rstrip()[:-1], line):
            return position + 1
    return len(lines)


def _split_sections(lines: list[str]) -> list[list[list[int]]]:
    """Return the positions of lines by paragraph, by section.

    Removed lines part sections. What is directly below one is left out.
    """
    sections: list[list[list[int]]] = [[[]]]
    is_output = False
    for position, line in enumerate(lines):
        if line == REMOVED:
            sections.append([[]])
        elif not line.strip():
            sections[-1].append([])
        elif not is_output:
            sections[-1][-1].append(position)
        is_output = line == REMOVED or (is_output and bool(line.strip()))
    return [list(filter(None, section)) for section in sections]


def _is_foreign(line: str) -> bool:
    """Return True if a line has marks of another author."""
    if not line.strip() or line == REMOVED:
        return False
    bare = line.strip()
    if any((_MARKED.match(bare), _SEPARATED.search(bare), _CREDIT.match(bare), has_foreign_label(bare))):
        return True
    return any(_has_name(bare[start:]) for start, _ in islice(find_sentences(bare), 1, None))


def _has_name(sentence: str) -> bool:
    """Return True if a sentence begins with a short foreign label."""
    match = _LABEL.match(sentence)
    return match is not None and len(match[match.lastindex or 1].split()) <= _NAME_WORDS and has_foreign_label(sentence)


def _leave_greetings(lines: list[str], positions: list[int]) -> list[str]:
    """Return the lines of a paragraph without greetings and introductions."""
    own_lines = [lines[position].strip() for position in positions if not _is_greeting(lines[position])]
    return [] if own_lines and own_lines[-1].endswith(COLONS) else own_lines


def _is_plain(lines: list[str]) -> bool:
    """Return True if lines are a list, or ended alike."""
    items = [position for position, line in enumerate(lines) if _BULLET.match(line)]
    if items:
        is_introduced = items[0] == 0 or (items[0] == 1 and lines[0].endswith(COLONS))
        return items == list(range(items[0], len(lines))) and is_introduced
    kinds = {(_is_ended(line), line.endswith(_QUESTIONS)) for line in lines}
    return len(kinds) <= 1 and not any(map(_is_signed, lines))


def _is_signed(line: str) -> bool:
    """Return True if a line is a letter or a signed text."""
    sentences = [line[start:end] for start, end in find_sentences(line)]
    is_headed = _is_short(sentences[0]) and (_UNSPACED.search(line) or len(sentences[0].split()) == 1)
    is_letter = is_headed and len(sentences) >= _FEWEST_SENTENCES and _is_short(sentences[-1])
    words = sentences[-1].split()
    is_name = len(words) <= _MAX_TITLE_WORDS and any(word[0].isupper() for word in words[1:] or words)
    is_signed = len(sentences) > 1 and not _is_ended(words[-1]) and is_name
    return is_signed or (is_letter and not _is_greeting(sentences[0])) or _is_addressed(sentences)


def _is_addressed(sentences: list[str]) -> bool:
    """Return True for sentences from "Dear all," to "Regards, Ann"."""
    opening, closing = (_OPENING.match(sentence) for sentence in (sentences[0], sentences[-1]))
    if len(sentences) == 1 or opening is None or closing is None:
        return False
    names = [word for word in re.findall(r"[^\W\d_]+", closing.string[closing.end() :]) if len(word) >= _SHORT_WORDS]
    return bool(names) and all(name[0].isupper() for name in names)


def _is_ended(line: str) -> bool:
    return line.rstrip(" )*_\"'").endswith(_ENDS)


def _is_title(line: str) -> bool:
    """Return True if a line is a title or a name."""
    return _is_short(line) and not line.endswith(_INTRODUCES) and _BULLET.match(line) is None


def has_foreign_label(sentence: str) -> bool:
    """Return True if a sentence begins with a label of another author."""
    match = _LABEL.match(sentence) or _DASHED.match(sentence)
    return match is not None and not _is_own_label(match[match.lastindex or 1], sentence)


def _is_own_label(label: str, sentence: str) -> bool:
    if (
        _RECORD_ID.search(label)
        or get_pattern("wishes", "labels", r"\W*(?:(?:%s)\b\W*)+").fullmatch(label)
        or get_pattern("orders", "nouns").search(label)
    ):
        return True
    rules = [rule for language in guess_languages(sentence) for rule in load_rules(language).rules]
    return any(_is_own_cue(rule, label) for rule in rules if "user" in rule.sources)


def _is_own_cue(rule: CaptureRule, label: str) -> bool:
    """Return True if a label is a request, or only a cue."""
    match = rule.pattern.search(f"{label}:")
    is_request = bool(rule.cue) or rule.category in RULE_CATEGORIES
    return match is not None and (is_request or (match.start() == 0 and match.end() >= len(label)))


def _is_greeting(line: str) -> bool:
    return get_pattern("wishes", "labels", _GREETING).fullmatch(line) is not None


def _is_short(sentence: str) -> bool:
    """Return True if a sentence is as short as a greeting."""
    if _UNSPACED.search(sentence):
        return len(sentence.strip()) <= _SHORT_CHARS
    return len(sentence.split()) <= _SHORT_WORDS
