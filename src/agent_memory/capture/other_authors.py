"""Layout of typed messages that another author may have written.

Mail and chat have headers and names before a colon, letters have a closing, a pasted text often has a title above it.
Such a part may still be the user's own: it is kept as a note at most.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from agent_memory.capture.rules import get_pattern, load_rules
from agent_memory.language.languages import guess_languages
from agent_memory.language.sentences import COLONS

_MAX_LABEL_CHARS: Final = 80
_MAX_TITLE_CHARS: Final = 60
_MAX_TITLE_WORDS: Final = 8
_MAX_CLOSING_WORDS: Final = 4
_MAX_CLOSING_CHARS: Final = 30
_FEWEST_LINES: Final = 3
"""Lines of a letter: text, closing and name."""
_FEW_LABELS: Final = 2
"""Labels in a message that make it a mail, a form or a conversation."""

_ENDS: Final = (".", "!", "?", ",", ";", "…", "。", "\uff01", "\uff1f", "\uff0c")
_QUESTIONS: Final = ("?", "\uff1f")
_BULLET: Final = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_LABEL: Final = re.compile(rf"[^\w@]*([^.!?:\n\uff1a]{{1,{_MAX_LABEL_CHARS}}})(?::[ \t]+|\uff1a[ \t]*)\S")
_DASHED: Final = re.compile(r"[^\w@]*(\w[^.!?:\n-]{1,60}? [A-Z][^.!?:\n-]{0,40}?) [-\u2013] \S")
"""A name before a dash, such as "Review by Ann - ..."."""
_RULE: Final = re.compile(r"(?:-{3,}|={3,}|\*{3,}|_{3,}|~{3,})")
_RECORD_ID: Final = re.compile(r"\b[a-z]+-[0-9a-f]{12}\b")
_CLOCK: Final = re.compile(r"(?<!\d)\d{1,2}:\d{2}(?!\d)")
_SIGNED_BY: Final = re.compile(r"<[^<>@\s]{1,64}@[^<>\s]{1,200}>|(?:©|\([cC]\))[ \t]*\d{4}")
"""Mail address of a header or trailer, or a copyright: the whole text is of another author."""
_MARKED: Final = re.compile(
    r"\s*(?:[<#+|{}\[=:.;~%$^&•·—\u2013]|\*\*|(?:-{2,}|_{3,}|\*{3,})\s*$|\w+\([^()]*\):\s"
    r"|\W{0,2}\d{1,4}[-/.:]\d{1,2}\b|.{0,30}\b\d{1,2}:\d{2}(?:\s?[AP]M)?\s?[:)\]>|]|.{0,20}\b(?:19|20)\d\d\s?[-\u2013—:]\s"
    r"|[A-Z]?\d{1,5}(?:\t| {2,}| (?=[A-Z]))|(?:bq|bc|p|pre|h[1-6]|fn\d{1,3})\.{1,2}\s|\([^()\n]{1,40}\)\s+(?=[A-Z])"
    r"|[§\u2190-\u21ff\u2500-\u27bf\U0001f300-\U0001faff]|[-*+] \[[ xX]?\]\s|[A-Za-z]\)\s|[A-Z][a-z]+ \d{1,4}[.:]\s"
    r"|@[\w-]+(?![\w./\\-])[\s,:]+\S|\S+\s?[>|»]\s|\S+ [-\u2013—] |[^.!?\n]{1,60}→)"
)
"""Beginning of a line with mark-up (also Textile), a sign, a rule, a time, a number, or a name before a mark."""
_CREDIT: Final = re.compile(
    r"\s*[—\u2013]\s*\w|.*[.!?][\"'”\u2019]?\s*(?:[—\u2013({\[#|•·~-]+\s?[^\W\d][^.!?\n]*$"
    r"|(?:[\[{]|\((?!\d+\)))[^()\[\]{}\n]{1,40}[)\]}]\s*$|\d{1,2}:\d{2}(?:\s?[AP]M)?\s*$)"
)
"""Name after a text, such as "… - Ann" or "… (Ann, 3 May)"."""
REMOVED: Final = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Line in the place of a removed one; the lines directly below are its output or its continuation."""
_MARGINAL: Final = re.compile(r"[-~]?\s?[^\W\d]\w*|[^\w\s\"'(]{1,2} ?\d*|\d{1,2}:\d{2}(?: ?[AP]M)?")
"""Last line that is a name, a sign with a count, or a time. A word that stands apart may be thanks."""
_NAMED: Final = re.compile(r"\w[^,\n]*,\s*\S|[-\u2013—]{1,2}\s*\w")
"""A closing and a name in one line, such as "Regards, Ann" or "-- Ann"."""
_SIGNATURE: Final = re.compile(r"[.!?]\s+([A-Z][^.!?]*)$")
_GREETING: Final = r"\W*(?:(?:%s)\b\W*)+(?:[\w'-]+\W*)?"


def blank_other_authors(text: str) -> str:
    """Blank the lines that another author may have written."""
    lines = text.splitlines()
    filled = [line.strip() for line in lines if line.strip()]
    if _is_letter(filled) or _is_form(filled) or _has_footer(lines) or any(map(_CREDIT.match, filled)):
        return ""
    following = _pair_with_following(lines)
    labelled = list(islice((n for n, line in enumerate(lines) if has_foreign_label(line)), _FEW_LABELS))
    heads = [position for position, line in enumerate(lines) if _is_head(line, *following[position])]
    if heads and _SIGNED_BY.search(lines[heads[-1]]) and all(below.strip() for below, _ in following[heads[-1] : -1]):
        return ""  # the last paragraph signs the text above it
    end = min([*heads, *(labelled[:1] if len(labelled) == _FEW_LABELS else ()), _find_introduced(lines)])
    signed = [position for position, line in enumerate(lines) if _is_signed(line, *following[position])]
    start = max(signed, default=-1) + 1
    blanked = [""] * start
    is_doubtful = False
    for position, line in list(enumerate(lines))[start:end]:
        is_first = position == 0 or not lines[position - 1].strip()
        is_doubtful = bool(line.strip()) and (
            is_doubtful
            or line == REMOVED
            or position in labelled
            or (is_first and _is_title(line, following[position][0], is_opening=position == 0))
        )
        blanked.append("" if is_doubtful else line)
    return "\n".join(blanked)


def _find_introduced(lines: list[str]) -> int:
    """Return the start of a block that the opening line introduces, or the end.

    The block is a sentence below a question, below a short line of another form, or between a text and a question.
    """
    opening = next((position for position, line in enumerate(lines) if line.strip()), len(lines))
    start = next((position for position in range(opening + 1, len(lines)) if lines[position].strip()), len(lines))
    if start == len(lines) or _BULLET.match(lines[start]):
        return len(lines)
    first, block = lines[opening].strip(), lines[start].strip()
    is_question = first.endswith(_QUESTIONS) and not block.endswith(_QUESTIONS)
    is_title = start > opening + 1 and _is_short(first) and not first.endswith(COLONS)
    is_title = is_title or _RULE.fullmatch(block) is not None
    last = max(position for position, line in enumerate(lines) if line.strip())
    is_between = (
        last > start > opening + 1 and lines[last].rstrip().endswith(_QUESTIONS) and not lines[last - 1].strip()
    )
    is_greeting = get_pattern("wishes", "labels", _GREETING).fullmatch(first) is not None
    is_introduction = is_question or is_title or is_between
    return start if is_introduction and not is_greeting and block.endswith((*_ENDS, "=")) else len(lines)


def _pair_with_following(lines: list[str]) -> list[tuple[str, str]]:
    """Pair each line with the next, and the next not blank.

    They are empty at the end.
    """
    pairs, below, text = [], "", ""
    for line in reversed(lines):
        pairs.append((below, text))
        below, text = line, line if line.strip() else text
    return pairs[::-1]


def has_foreign_label(sentence: str) -> bool:
    """Return True if a sentence begins with a label of another author."""
    match = _LABEL.match(sentence) or _DASHED.match(sentence)
    return match is not None and not _is_own_label(match[1], sentence)


def _is_own_label(label: str, sentence: str) -> bool:
    if (
        _RECORD_ID.search(label)
        or get_pattern("wishes", "labels", r"\W*(?:(?:%s)\b\W*)+").fullmatch(label)
        or get_pattern("orders", "nouns").search(label)
    ):
        return True
    rules = [rule for language in guess_languages(sentence) for rule in load_rules(language).rules]
    return any("user" in rule.sources and rule.pattern.search(f"{label}:") for rule in rules)


def _is_short(line: str) -> bool:
    """Return True if a line is short, without end mark or bullet."""
    bare = line.strip()
    is_short = len(bare) <= _MAX_TITLE_CHARS and len(bare.split()) <= _MAX_TITLE_WORDS
    return bool(bare) and is_short and not bare.endswith(_ENDS) and _BULLET.match(line) is None


def _is_head(line: str, below: str, text: str) -> bool:
    """Return True if a line begins a mail or a chat."""
    if (_is_short(line) and _CLOCK.search(line)) or _MARKED.match(line) or _SIGNED_BY.search(line):
        return True
    if not text or _BULLET.match(text):
        return False
    if line.rstrip().endswith(COLONS):
        return not _is_own_label(line.rstrip()[:-1], line)
    if below.strip() or not _is_short(line):
        return False
    return has_foreign_label(line) or (text.rstrip().endswith(_ENDS) and not _is_greeting(line))


def _is_title(line: str, below: str, *, is_opening: bool) -> bool:
    """Return True if a line introduces the text directly below it."""
    if not below.strip() or not _is_short(line) or line.rstrip().endswith(COLONS) or _is_greeting(line):
        return False
    return is_opening or below.rstrip().endswith(_ENDS)


def _is_greeting(line: str) -> bool:
    return get_pattern("wishes", "labels", _GREETING).fullmatch(line) is not None


def _is_form(lines: list[str]) -> bool:
    """Return True if all lines are fields of a form."""
    return all(map(_LABEL.match, lines)) and any(map(has_foreign_label, lines))


def _has_footer(lines: list[str]) -> bool:
    """Return True if a text ends in an unlike short line."""
    bare = ["" if line == REMOVED else line.strip() for line in lines]
    if "--" in bare[1:]:
        return all(map(_is_closing, filter(None, bare[bare.index("--", 1) + 1 :])))
    *before, last = bare or [""]
    text = next((line for line in reversed(before) if line), "")
    is_apart = bool(text) and not before[-1]
    if text.endswith(_ENDS) and _MARGINAL.fullmatch(last) and not (is_apart and last[0].isalpha()):
        return True
    is_titled = not last[:1].islower() and len(last.split()) > 1 and _is_short(last)
    return is_apart and is_titled and text.endswith(_ENDS)


def _is_signed(line: str, below: str, text: str) -> bool:
    """Return True if a line ends its paragraph with a signature."""
    if not text or below.strip() or line.rstrip().endswith(COLONS):
        return False
    match = _SIGNATURE.search(line)
    return match is not None and _is_closing(match[1]) and not _is_own_label(match[1], match[1])


def _is_letter(lines: list[str]) -> bool:
    """Return True if a text ends in a closing with a name."""
    if len(lines) < _FEWEST_LINES or not _is_closing(lines[-1]):
        return False
    first, before, last = lines[0], lines[-2].removesuffix(","), lines[-1]
    if _is_closing(before) and before != lines[-2]:
        return True
    is_greeted = len(first.split()) <= _MAX_CLOSING_WORDS and first.endswith((",", "!", ":"))
    return is_greeted and (_NAMED.match(last) is not None or len(last.split()) > 1 or _is_closing(before))


def _is_closing(line: str) -> bool:
    return _is_short(line) and len(line) <= _MAX_CLOSING_CHARS and len(line.split()) <= _MAX_CLOSING_WORDS
