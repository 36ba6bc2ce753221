"""The user's own words in a message: what they say themselves, not what they quote, paste or report.

Stricter than capture's reading: here a sentence may give a permission, so what is in doubt counts as another author's.
"""

from __future__ import annotations

import re
from typing import Final

from agent_memory.capture.own import separate
from agent_memory.capture.rules import any_of
from agent_memory.language.message_sentences import split_sentences

_MAX_CHARS: Final = 40_000
_MANY_SENTENCES: Final = 40
"""A longer message was pasted for the most part: its first and its last paragraph are read."""

_QUOTED: Final = re.compile(
    '"[^"]{0,4000}+"'
    "|\u201c[^\u201d]{0,4000}+\u201d|\u201e[^\u201c\u201d]{0,4000}+[\u201c\u201d]|\u00ab[^\u00bb]{0,4000}+\u00bb"
    "|\u2039[^\u203a]{0,4000}+\u203a|\u300c[^\u300d]{0,4000}+\u300d|\u300e[^\u300f]{0,4000}+\u300f"
    "|`[^`]{0,4000}+`"
    r"|(?<!\w)['\u2018](?=\S)[^'\u2018\u2019\n]{1,400}['\u2019](?!\w)"
)
_LEFT_OPEN: Final = re.compile('["\u201c\u201e\u00ab\u300c\u300e`](?:[^\n]|\n(?!\\s*\n))*')
_ONE_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_QUESTION: Final = re.compile(r"[?\uff1f][^\w?\uff1f]*$|\u5417\W*$")

_INTRODUCES: Final = (":", "\uff1a")


def is_question(sentence: str) -> bool:
    """Tell whether a sentence ends as a question does."""
    return _QUESTION.search(sentence) is not None


def own_sentences(message: str, *, strict: bool = True) -> list[str]:
    """Return the sentences that a message's author says themselves, quotations blanked out, in their order.

    Left out: quotations and code, marked-up and injected text, lines of machines, and whatever follows the words by
    which a text of another author is reported or brought in ("here is the page", "the mail says").

    Args:
        message: As it was typed.
        strict: Leave out what follows a line that ends in a colon, too: it may be a text that was pasted.
    """
    whole = message[:_MAX_CHARS].encode("utf-8", "replace").decode()
    own, blocks = separate(whole, typed=True)
    sentences = split_sentences(without_quotations(own), blocks)
    if len(sentences) > _MANY_SENTENCES:
        ends = {sentences[0].paragraph, sentences[-1].paragraph}
        sentences = [sentence for sentence in sentences if sentence.paragraph in ends]
    found: list[str] = []
    for sentence in sentences:
        reported = any_of("wishes", "reported").search(sentence.masked)
        said = sentence.masked[: reported.start()] if reported else sentence.masked
        if said.strip():
            found.append(" ".join(said.split()))
        if reported or (strict and said.rstrip().endswith(_INTRODUCES)):
            break
    return found


def without_quotations(text: str) -> str:
    """Blank out what is quoted; a single name keeps its letters, since names are often put in quotation marks."""
    return _LEFT_OPEN.sub(lambda match: _hollow(match[0]), _QUOTED.sub(lambda match: _blank(match[0]), text))


def _blank(quoted: str) -> str:
    inner = quoted[1:-1]
    return f" {inner} " if _ONE_NAME.fullmatch(inner.strip()) else _hollow(quoted)


def _hollow(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
