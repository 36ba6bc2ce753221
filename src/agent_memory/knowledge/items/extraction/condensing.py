"""`condensed`: a quote as one line, without what only opens or stresses it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_CAPTION: Final = re.compile(r"\[(?:an? )?(?:photo|photography|picture|image|screenshot)s? of ", re.IGNORECASE)
_STRESS: Final = re.compile(
    r"(?<!\bnot )(?<!n['\u2019]t )\b(?:really|super|so(?! (?:that|far|long|much|many|i|we|he|she|they|it|you|the|my)\b)"
    r"|just(?! (?:saying|kidding|in|as|about|like|a|an|one|the)\b)|definitely|totally|truly|actually|pretty"
    r"|very(?! (?:much|same)\b)|quite|kinda|absolutely|completely|incredibly|extremely|honestly"
    r"|basically|literally|also)[ ]+(?=[a-z])"
)
_YES_NO: Final = re.compile(r"(?:yes|yep|yup|no|nope|nah|ja|nein)\b", re.IGNORECASE)
OPENERS: Final = re.compile(
    r"(?:(?:oh|omg|wow|hey|hi|hello|yeah|yes|yep|yup|nope|no|nah|ah|aw|aww|ooh|haha|lol|ok|okay|sure|totally|absolutely|definitely"
    r"|exactly|well|cool|nice|great|awesome|amazing|congrats|congratulations|thanks|thank you|thx|right|same here|true"
    r"|hallo|ja|nein|danke|genau|klar|gut|super|toll)\b[\s,.!\u2014-]*){1,8}",
    re.IGNORECASE,
)
WITHDRAWS: Final = re.compile(
    r"(?:(?:oops|oh|hm+|no|wait|sorry|actually|ok|okay)[,.!]?\s+)*(?:scratch that|strike that"
    r"|forget (?:that|what i (?:just )?said)|never ?mind(?: that)?|(?:just|only) (?:kidding|joking)|correction:?"
    r"|vergiss das)\b[\s,.!:;\u2013\u2014-]*"
    r"|(?:(?:oops|wait|no|sorry|actually|nein)[,.!]?\s+)+(?:i meant?(?! (?:it|that|this|what)\b)"
    r"|ich mein(?:t)?e)\b[\s,:]*",
    re.IGNORECASE,
)
"""What takes back what was said just before."""
_SUBJECT: Final = re.compile(r"(?:i|we|he|she|they|it|there|ich|wir|er|sie|es)\b", re.IGNORECASE)
_MAY_BE: Final = re.compile(r"(?:my|our|the|that|in|on|at)\b", re.IGNORECASE)
_FEW: Final = 3
_MOST_MENDED: Final = 6

_LEAD: Final = re.compile(
    r"(?:(?:and|but|so(?! (?:that|far|long|much|many)\b)|plus|also|yet|i mean|you know what|you know|honestly|actually"
    r"|anyway|by the way|btw|basically|to be honest|i must say|i have to say)\b,?\s+){1,4}(?=\S)",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"([^\W\d_][\w'\u2019]{1,20})(?:\s*[,!.\u2013\u2014-]+(?:\s+|$)|$)")


EXCLAIMS: Final = re.compile(r"(?:oh|omg|wow|hey|hi|hello|ah|aw+|ooh|haha|lol)\b", re.IGNORECASE)


def mends(rest: str) -> bool:
    """Tell whether what follows a withdrawal is a part of a sentence ("a dog"), not a whole one."""
    words = len(WORD.findall(rest))
    return not _SUBJECT.match(rest) and words <= (_FEW if _MAY_BE.match(rest) else _MOST_MENDED)


def bare(sentence: str, others: Collection[str] = ()) -> str:
    """Return a sentence without openers, and without the name of whom it is said to.

    Args:
        sentence: It.
        others: Names of those who are spoken to, in small letters.
    """
    opened = OPENERS.match(sentence)
    rest = sentence[opened.end() :] if opened else sentence
    named = _NAME.match(rest) if others else None
    if named and named[1].casefold() in others:
        rest = rest[named.end() :]
        opened = OPENERS.match(rest)
        rest = rest[opened.end() :] if opened else rest
    return rest


def condensed(quote: str, others: Collection[str] = ()) -> str:
    """Return a quote as one line, without openers, words that only stress, and what introduces a caption.

    Args:
        quote: Of a turn.
        others: Names of those who are spoken to, in small letters.
    """
    line = " ".join(quote.split())
    taken = WITHDRAWS.match(line)
    if taken and taken.end() < len(line) and not mends(line[taken.end() :]):
        line = line[taken.end()].upper() + line[taken.end() + 1 :]
    short = line if _YES_NO.match(line) else bare(line, others)
    lead = _LEAD.match(short)
    if lead:
        short = short[lead.end() :]
        short = short[:1].upper() + short[1:]
    short = _CAPTION.sub("[", _STRESS.sub("", short))
    return short if WORD.search(short) else line
