"""Claims of a talk: what each turn states, without questions, greetings, thanks and what only answers with approval.

The rules name what says nothing; what they do not know stays. So a sentence in another language than English or German
is kept unless it asks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agent_memory.knowledge.extraction.claims import Claim
from agent_memory.knowledge.extraction.common import COMMON
from agent_memory.knowledge.extraction.sentences import spans_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.knowledge.extraction.claims import Passage

SAID: Final = "talk"
ANSWER: Final = "answer"

_MOST_JOINED: Final = 300
"""Characters up to which sentences that follow each other are one claim."""
_SHORT_ANSWER: Final = 6
"""Words up to which an answer does not stand without its question."""
_MOST_ASKED: Final = 160
"""Characters of a question that stands before its answer."""
_LEAST_WORDS: Final = 3

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
_ASKS: Final = re.compile(r"[?\uff1f][\"')\]!?\u201d]{0,4}$")
_OWN: Final = re.compile(r"\b(?:i|me|my|mine|myself|we|us|our|ours|i['\u2019]\w+|we['\u2019]\w+)\b", re.IGNORECASE)
_OTHERS: Final = re.compile(r"\b(?:you|your|yours|yourself|you['\u2019]\w+)\b", re.IGNORECASE)
_CAPTION: Final = re.compile(r"\[(?:an? )?(?:photo|photography|picture|image|screenshot)s? of ", re.IGNORECASE)
_STRESS: Final = re.compile(r"\b(?:really|super|so|just|definitely|totally|truly|actually|pretty)[ ]+(?=[a-z])")
_YES_NO: Final = re.compile(r"(?:yes|yep|yup|no|nope|nah|ja|nein)\b", re.IGNORECASE)
_OPENERS: Final = re.compile(
    r"(?:(?:oh|wow|hey|hi|hello|yeah|yes|yep|yup|nope|no|nah|ah|aw|aww|ooh|haha|lol|ok|okay|sure|totally|absolutely|definitely"
    r"|exactly|well|cool|nice|great|awesome|amazing|congrats|congratulations|thanks|thank you|thx|right|same here|true"
    r"|hallo|ja|nein|danke|genau|klar|gut|super|toll)\b[\s,.!\u2014-]*){1,8}",
    re.IGNORECASE,
)
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
_MOST_APPROVAL: Final = 9
_LEAST_TELLING: Final = 2
_SHORT: Final = 6
_TELLING: Final = 0.29
_TELLING_OF_SPEAKER: Final = 0.185
"""Shares of the words of a sentence: .493 of the characters of LoCoMo stay, and .854 of its evidence. With .25 and .2
it is .506 and .865, without shares .572 and .898."""
_WITHDRAWS: Final = re.compile(
    r"(?:scratch that|forget (?:that|what i (?:just )?said)|strike that|never ?mind(?: that)?|vergiss das"
    r"|(?:wait|no|sorry|actually),? (?:no,? )?i meant?|nein,? ich mein(?:t)?e)\b",
    re.IGNORECASE,
)


def claims_of_talk(passages: Sequence[Passage]) -> list[tuple[Passage, Claim]]:
    """Return what is stated, in order; the turn just before tells what a short answer answers."""
    found: list[tuple[Passage, Claim]] = []
    before: Passage | None = None
    lately: tuple[str, ...] = ()
    for passage in passages:
        asked = _question_of(before) if before is not None and before.speaker != passage.speaker else ""
        own = list(_claims(passage, asked))
        if found and _takes_back(passage, found[-1][0], lately):
            found.pop()
        found += [(passage, claim) for claim in own]
        before, lately = passage, (*lately[-1:], passage.id)
    return found


def _takes_back(passage: Passage, earlier: Passage, lately: Sequence[str]) -> bool:
    """Tell whether a turn begins by withdrawing what the same person said just before."""
    same = passage.speaker == earlier.speaker and earlier.id in lately
    return same and _WITHDRAWS.match(passage.text.lstrip()) is not None


def _claims(passage: Passage, asked: str) -> Iterator[Claim]:
    runs: list[list[int]] = []
    for number, (start, end) in enumerate(spans_of(passage.text)):
        sentence = passage.text[start:end]
        if _WITHDRAWS.match(sentence):
            if runs:
                runs.pop()
            rest = _WITHDRAWS.sub("", sentence, count=1).strip(" ,.!")
            if len(_WORD.findall(rest)) < 1:
                continue
        elif not (asked and not number and _answers(sentence)) and not _states(sentence):
            continue
        if runs and runs[-1][2] == number - 1 and end - runs[-1][0] <= _MOST_JOINED:
            runs[-1][1:] = [end, number]
        else:
            runs.append([start, end, number])
    for start, end, _ in runs:
        said = condensed(passage.text[start:end])
        if asked and start == _begin(passage.text) and len(_WORD.findall(said)) <= _SHORT_ANSWER:
            yield Claim(f"{asked} {said}", start, end, ANSWER, speaker=passage.speaker)
        else:
            yield Claim(said, start, end, SAID, speaker=passage.speaker)


def condensed(quote: str) -> str:
    """Return a quote as one line, without openers, words that only stress, and what introduces a caption."""
    line = " ".join(quote.split())
    opened = _OPENERS.match(line)
    bare = line[opened.end() :] if opened and not _YES_NO.match(line) else line
    bare = _CAPTION.sub("[", _STRESS.sub("", bare))
    return bare if _WORD.search(bare) else line


def _begin(text: str) -> int:
    return len(text) - len(text.lstrip())


def _question_of(passage: Passage) -> str:
    """Return the last question of a turn, if nothing is said behind it."""
    last = ""
    for start, end in spans_of(passage.text):
        last = passage.text[start:end]
    return " ".join(last.split()) if _ASKS.search(last) and len(last) <= _MOST_ASKED else ""


def _answers(sentence: str) -> bool:
    """Tell whether the first sentence after a question says more than thanks or approval."""
    if _ASKS.search(sentence) or _THANKS.match(sentence):
        return False
    bare = sentence[match.end() :] if (match := _OPENERS.match(sentence)) else sentence
    return not bare or not (_APPROVAL.match(bare) or _OTHERS.search(bare))


def _states(sentence: str) -> bool:
    """Tell whether a sentence says something of the world or of who speaks."""
    if _ASKS.search(sentence):
        return False
    bare = sentence[match.end() :] if (match := _OPENERS.match(sentence)) else sentence
    words = len(_WORD.findall(bare))
    if any(map(str.isdigit, bare)) or _WIDE.search(bare):
        return words > 0
    return words >= _LEAST_WORDS and not _is_courtesy(sentence, bare, words) and _tells(bare)


def _is_courtesy(sentence: str, bare: str, words: int) -> bool:
    """Tell whether a sentence thanks, greets, approves, or speaks of nobody but the listener."""
    of_speaker = _OWN.search(bare) is not None
    if not of_speaker and (_THANKS.match(bare) or _OTHERS.search(bare)):
        return True
    if _THANKS.match(sentence) and words <= _LEAST_WORDS + 1:
        return True
    return words <= _MOST_APPROVAL and _APPROVAL.match(bare) is not None


def _tells(text: str) -> bool:
    """Tell whether enough words are none that any talk is full of; fewer will do of who speaks, and of numbers."""
    words = _WORD.findall(text.casefold().replace("\u2019", "'"))
    telling = len({word for word in words if word not in COMMON})
    of_speaker = _OWN.search(text) is not None or text.startswith("[") or any(map(str.isdigit, text))
    least = 1 if of_speaker and len(words) <= _SHORT else _LEAST_TELLING
    return telling >= least and telling >= (_TELLING_OF_SPEAKER if of_speaker else _TELLING) * len(words)
