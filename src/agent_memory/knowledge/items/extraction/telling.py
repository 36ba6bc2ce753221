"""`worth`: how much a clause of a talk tells: names, times, words that not any talk has, whom it is about."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.items.extraction.common import is_common
from agent_memory.knowledge.items.extraction.condensing import WORD

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

ASKS: Final = re.compile(r"[?\uff1f][\"')\]!?\u201d]{0,4}$")
OWN: Final = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|i['\u2019]\w+|we['\u2019]\w+)\b", re.IGNORECASE)
OTHERS: Final = re.compile(r"\b(?:you|your|yours|yourself|you['\u2019]\w+)\b", re.IGNORECASE)
THANKS: Final = re.compile(
    r"(?:hi|hey|hello|thanks|thank you|thx|bye|goodbye|see you|see ya|take care|good (?:morning|evening|night|luck)"
    r"|congrat\w*|welcome|cheers|hallo|guten (?:tag|morgen|abend)|danke|vielen dank|tsch\u00fcss|bis (?:bald|dann))\b",
    re.IGNORECASE,
)
KNOWS_NOT: Final = re.compile(
    r"(?:(?:oh|hm+|um+|uh|er|well|sorry|honestly|actually|no|i['\u2019]m afraid|puh|tja|leider|nein)[,.!]?\s+)*"
    r"(?:(?:i )?(?:really |honestly )?(?:do not|don['\u2019]?t|cannot|can['\u2019]?t) (?:really |even )?"
    r"(?:know|remember|recall|say|tell)(?: (?:that|it|yet|any ?more|for sure|exactly))*|dunno|idk"
    r"|(?:i (?:have |['\u2019]ve )?|i['\u2019]ve )?(?:got )?(?:no|not the faintest|not a) (?:idea|clue)"
    r"|(?:i['\u2019]m |i am )?not (?:really |quite |so |too |entirely )?(?:sure|certain)"
    r"(?: (?:about|of) (?:that|it))?(?: yet)?|who knows|no one knows|nobody knows|keine ahnung"
    r"|(?:das )?wei(?:\u00df|ss) ich (?:auch |leider )?nicht"
    r"|(?:ich )?wei(?:\u00df|ss) (?:es |das )?(?:auch |leider )?nicht(?: mehr)?)"
    r"(?:[,.!\u2026]*\s+(?:sorry|yet|honestly|though|really|leider))*[\s.!,;\u2026]*",
    re.IGNORECASE,
)
"""What answers a question with nothing, as a whole sentence."""
APPROVAL: Final = re.compile(
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
_TIME: Final = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekends?|months?|years?|since|recently|morning"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|june|july|august|september|october"
    r"|november|december|gestern|heute|morgen|letzte[nrs]?)\b",
    re.IGNORECASE,
)
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
    "part": 0.4,
    "caption": -0.3,
}
"""From a logistic regression over the clauses of five conversations of LoCoMo, rounded: which hold words of an expected
answer that their turn has nowhere else. That of the characters is set: what is longer must tell more. With weights from
four of the five, .889 of the evidence of the fifth survives with .486 of its characters, over all of them."""


@dataclass(frozen=True, slots=True)
class Situation:
    """In what a clause stands.

    Attributes:
        others: Names of those who talk, in small letters.
        lately: Words of the few turns before, in small letters.
        is_asked: Whether the other one's last turn asks something.
        is_answer: Whether the clause is the first one behind a question.
        is_part: Whether its sentence has other clauses.
    """

    others: Collection[str] = ()
    lately: Collection[str] = ()
    is_asked: bool = False
    is_answer: bool = False
    is_part: bool = False


def worth(clause: str, core: str, said: Situation) -> float:
    """Return how much a clause tells: a sum of weights, 0 or more for what is worth its characters.

    Args:
        clause: It.
        core: The same without openers.
        said: In what it stands.
    """
    return sum(WEIGHTS.get(name, 0) * value for name, value in forms(clause, core, said).items())


def is_of_a_time(text: str) -> bool:
    """Tell whether a text says when, by a day, a month, or in relation to the moment at which it is said."""
    return _TIME.search(text) is not None


def names(words: Sequence[str], others: Collection[str]) -> bool:
    """Tell whether a word behind the first is a name of something or somebody, other than those who talk."""
    return any(word[0].isupper() and not is_common(low := word.casefold()) and low not in others for word in words[1:])


def forms(clause: str, core: str, said: Situation) -> dict[str, float]:
    """Return what is seen of a clause, each by its name in `WEIGHTS`."""
    words = WORD.findall(core)
    low = {word.casefold() for word in words}
    telling = {word for word in low if not is_common(word)}
    return {
        "chars": math.log(len(clause) + 1),
        "words": math.log(len(words) + 1),
        "telling": len(telling),
        "share": len(telling) / max(1, len(words)),
        "new": sum(word not in said.lately for word in telling),
        "names": names(words, said.others),
        "time": is_of_a_time(core),
        "past": _PAST.search(core) is not None,
        "open": _OPEN.search(core) is not None,
        "subject": _SUBJECT.match(core) is not None,
        "has": _HAS.search(core) is not None,
        "yours": OTHERS.search(core) is not None and OWN.search(core) is None,
        "approves": APPROVAL.match(core) is not None,
        "thanks": THANKS.match(clause) is not None,
        "short": len(words) < _LEAST_WORDS,
        "asked": said.is_asked,
        "answers": said.is_answer,
        "part": said.is_part,
        "caption": clause.startswith("["),
    }
