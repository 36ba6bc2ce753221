"""Value of a sentence in a conversation: what it names that is not said yet. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from agent_memory.ingestion.summaries.common_words import is_common

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

WORD: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
ASKS: Final = re.compile(r"[?\uff1f][\"')\]!?\u201d]{0,4}$")
_WIDE: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}")
"""Writing without spaces between words."""
_NAMED: Final = 3.0
"""Weight of a number or a name; of another word 1."""
_LENGTH_POWER: Final = 0.7
"""On five conversations of LoCoMo .856 of the evidence is quoted, with .5 .840."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A turn of a conversation, or a line of a summary; `speaker` may be empty."""

    id: str
    text: str
    speaker: str = ""


def weigh_words(sentence: str, speakers: Collection[str] = ()) -> dict[str, float]:
    """Return the weights of a sentence's words, common words and speakers excluded.

    Args:
        sentence: Sentence of a turn.
        speakers: Names of the speakers, in lower case.
    """
    weights: dict[str, float] = {}
    for match in WORD.finditer(sentence):
        word = match[0].casefold()
        if _WIDE.search(word):
            weights |= {f"{first}{second}": 1.0 for first, second in pairwise(word)}
        elif not is_common(word) and word not in speakers:
            is_named = any(map(str.isdigit, word)) or (match[0][0].isupper() and match.start() > 0)
            weights[word] = _NAMED if is_named else 1.0
    return weights


def get_value(weights: Mapping[str, float], covered: Collection[str], chars: int) -> float:
    """Return the weight of a sentence's uncovered words; long sentences must tell more.

    Args:
        weights: Weights of its words.
        covered: Words that the summary has.
        chars: Length of the sentence.
    """
    return float(sum(weight for word, weight in weights.items() if word not in covered) / chars**_LENGTH_POWER)
