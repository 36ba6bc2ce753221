"""Value of a sentence in a conversation: names, times, rare words, whom it is about. Pure."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.ingestion.summaries.common_words import is_common
from agent_memory.knowledge.items.sentences import is_of_a_time, spans_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
ASKS: Final = re.compile(r"[?\uff1f][\"')\]!?\u201d]{0,4}$")
_OWN: Final = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|i['\u2019]\w+|we['\u2019]\w+)\b", re.IGNORECASE)
_OTHERS: Final = re.compile(r"\b(?:you|your|yours|yourself|you['\u2019]\w+)\b", re.IGNORECASE)
_THANKS: Final = re.compile(
    r"(?:hi|hey|hello|thanks|thank you|thx|bye|goodbye|see you|see ya|take care|good (?:morning|evening|night|luck)"
    r"|congrat\w*|welcome|cheers|hallo|guten (?:tag|morgen|abend)|danke|vielen dank|tsch\u00fcss|bis (?:bald|dann))\b",
    re.IGNORECASE,
)
_APPROVAL: Final = re.compile(
    r"(?:(?:that|this|it|they|those)(?:['\u2019](?:s|re)| is| are| was| sounds?| looks?| must| seems?)"
    r"|sounds|looks|so|such|what an?|how|way to go|keep|love (?:it|that|the)|good for|can['\u2019]?t wait"
    r"|no (?:worries|problem)|my pleasure|anytime|glad|happy to|same|me too|i know"
    r"|i (?:totally |completely |definitely |really )?agree|i (?:feel|hear) you"
    r"|i (?:can(?:['\u2019]t| not|not)? )?(?:only )?(?:imagine|bet|see|hear|understand|get it)\b"
    r"|i(?:['\u2019]m| am) (?:so |really |super |very |truly )?"
    r"(?:glad|happy|proud|excited|sorry|stoked|impressed|thrilled) (?:for|to hear|of you|you|that you|about that|it)"
    r"|i (?:really |truly |so )?(?:appreciate|hope you|hope it|wish you|admire)"
    r"|i['\u2019](?:ll|d) (?:be there|let you|keep you|love to (?:hear|see|know)|check (?:it|that|them)))",
    re.IGNORECASE,
)
_OPENERS: Final = re.compile(
    r"(?:(?:oh|omg|wow|hey|hi|hello|yeah|yes|yep|yup|nope|no|nah|ah|aw|aww|ooh|haha|lol|ok|okay|sure|totally|absolutely|definitely"
    r"|exactly|well|cool|nice|great|awesome|amazing|congrats|congratulations|thanks|thank you|thx|right|same here|true"
    r"|hallo|ja|nein|danke|genau|klar|gut|super|toll)\b[\s,.!\u2014-]*){1,8}",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"([^\W\d_][\w'\u2019]{1,20})(?:\s*[,!.\u2013\u2014-]+(?:\s+|$)|$)")
_PAST: Final = re.compile(
    r"\b(?:(?:was|were|had|did)(?:n['\u2019]t)?|went|made|got|took|saw|found|bought|gave|came|told|said|met|\w{3,}ed)\b",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(
    r"\b(?:would|could|should|might|may|can|will|must|can['\u2019]t|won['\u2019]t|\w+['\u2019](?:ll|d)"
    r"|hope|wish|look(?:ing)? forward|let me know|keep)\b",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"(?:(?:and|but|so|also|just) )*(?:i|we|my|our|been|got|took|had|made|saw|met|went|bought|found|gave|\w{3,}ed)\b",
    re.IGNORECASE,
)
"""Of who speaks, often left out: "Took a trip"."""
_HAS: Final = re.compile(r"\b(?:my|our|his|her|their)\s[a-z]", re.IGNORECASE)
_LEAST_WORDS: Final = 4
BEFORE: Final = 4
"""Turns before a turn that decide what it answers and what is new in it."""
_LATELY: Final = 3
_MAX_QUESTION_CHARS: Final = 160
_MOST_COURTESY: Final = 4
_LEAST_TELLING: Final = 2
WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
"""Writing without spaces between words; its value is not computed."""

WEIGHTS: Final[Mapping[str, float]] = {
    "chars": -0.5,
    "words": 0.3,
    "telling": 0.11,
    "share": 0.5,
    "new": 0.13,
    "names": 1.8,
    "time": 1.1,
    "past": 0.3,
    "open": -0.3,
    "subject": 0.4,
    "has": 0.4,
    "yours": -0.3,
    "approves": -0.3,
    "thanks": -0.6,
    "short": -0.3,
    "asked": 0.6,
    "answers": 0.4,
    "caption": -0.3,
}
"""From a logistic regression over the clauses of five conversations of LoCoMo, rounded: which hold words of an expected
answer that their turn has nowhere else. That of the characters is set: what is longer must tell more. With weights from
four of the five, .889 of the evidence of the fifth survives with .486 of its characters, over all of them."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A turn of a conversation, or a line of a summary; `speaker` may be empty."""

    id: str
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Situation:
    """Situation of a clause in a conversation.

    Attributes:
        others: Names of the speakers, in lower case.
        lately: Words of the few turns before, in lower case.
        is_asked: True if the last turn of another speaker has a question.
        is_answer: True if the clause is the first one after a question.
    """

    others: Collection[str] = ()
    lately: Collection[str] = ()
    is_asked: bool = False
    is_answer: bool = False


def worth(clause: str, core: str, said: Situation) -> float:
    """Return the value of a clause: a sum of weights, 0 or more if worth its characters.

    Args:
        clause: Text of the clause.
        core: Text of the clause without openers.
        said: Situation of the clause.
    """
    return sum(WEIGHTS.get(name, 0) * value for name, value in _list_features(clause, core, said).items())


def _has_name(words: Sequence[str], others: Collection[str]) -> bool:
    """Return True if a word after the first is a name, speakers excluded."""
    return any(word[0].isupper() and not is_common(low := word.casefold()) and low not in others for word in words[1:])


def _list_features(clause: str, core: str, said: Situation) -> dict[str, float]:
    """Return the features of a clause by their names in `WEIGHTS`."""
    words = WORD.findall(core)
    low = {word.casefold() for word in words}
    telling = {word for word in low if not is_common(word)}
    return {
        "chars": math.log(len(clause) + 1),
        "words": math.log(len(words) + 1),
        "telling": len(telling),
        "share": len(telling) / max(1, len(words)),
        "new": sum(word not in said.lately for word in telling),
        "names": _has_name(words, said.others),
        "time": is_of_a_time(core),
        "past": _PAST.search(core) is not None,
        "open": _OPEN.search(core) is not None,
        "subject": _SUBJECT.match(core) is not None,
        "has": _HAS.search(core) is not None,
        "yours": _OTHERS.search(core) is not None and _OWN.search(core) is None,
        "approves": _APPROVAL.match(core) is not None,
        "thanks": _THANKS.match(clause) is not None,
        "short": len(words) < _LEAST_WORDS,
        "asked": said.is_asked,
        "answers": said.is_answer,
        "caption": clause.startswith("["),
    }


def bare(sentence: str, others: Collection[str] = ()) -> str:
    """Return a sentence without openers and the name of the person addressed.

    Args:
        sentence: Sentence of a turn.
        others: Names of the other speakers, in lower case.
    """
    opened = _OPENERS.match(sentence)
    rest = sentence[opened.end() :] if opened else sentence
    named = _NAME.match(rest) if others else None
    if named and named[1].casefold() in others:
        rest = rest[named.end() :]
        opened = _OPENERS.match(rest)
        rest = rest[opened.end() :] if opened else rest
    return rest


def is_courtesy(sentence: str, core: str, others: Collection[str]) -> bool:
    """Return True if a sentence only thanks, greets or approves."""
    own = WORD.findall(core)
    if not own:
        return True
    if any(map(str.isdigit, core)) or _has_name(own, others):
        return False
    telling = sum(not is_common(word) for word in {one.casefold() for one in own})
    is_own = _OWN.search(core) is not None
    if _THANKS.match(core if not is_own else sentence) and (not is_own or len(own) <= _MOST_COURTESY):
        return True
    return telling < (1 if is_own and not _APPROVAL.match(core) else _LEAST_TELLING)


def situation_of(passage: Passage, earlier: Sequence[Passage]) -> Situation:
    """Return the situation of a turn's sentences, given the few turns before it."""
    others = {name.casefold() for turn in (*earlier, passage) for name in WORD.findall(turn.speaker)}
    lately = {word.casefold() for turn in earlier[-_LATELY:] for word in WORD.findall(turn.text)}
    before = next((turn.text for turn in reversed(earlier) if turn.speaker != passage.speaker), "")
    is_asked = any(ASKS.search(before[start:end]) for start, end in spans_of(before))
    is_answer = bool(earlier) and earlier[-1].speaker != passage.speaker and _ends_with_question(before)
    return Situation(others, lately, is_asked, is_answer)


def _ends_with_question(turn: str) -> bool:
    """Return True if the last sentence of a turn, captions aside, is a short question."""
    sentences = [turn[start:end] for start, end in spans_of(turn) if turn[start] != "["]
    return bool(sentences) and ASKS.search(sentences[-1]) is not None and len(sentences[-1]) <= _MAX_QUESTION_CHARS
