"""Agreement of a statement with its quote, in both directions. Pure."""

from __future__ import annotations

import re
from typing import Final

from agent_memory.knowledge.llm.grounding import names_of, says_no_more
from agent_memory.knowledge.passages.structure import parse_blocks
from agent_memory.knowledge.topics.alike import exact_of
from agent_memory.retrieval import query_terms

_PERMISSIONS: Final = {
    "must": ("must", "required", "mandatory", "shall", "obligatory", "muss", "müssen"),
    "may": ("may", "allowed", "permitted", "can", "darf", "dürfen", "erlaubt"),
    "forbidden": ("forbidden", "prohibited", "disallowed", "banned", "verboten", "unzulässig"),
    "should": ("should", "recommended", "sollte", "sollten"),
    "only": ("only", "nur"),
    "unless": ("unless", "except", "außer"),
}
"""Words that say what is allowed; a statement has the same kinds of them as its quote."""
_KINDS: Final = {word: kind for kind, words in _PERMISSIONS.items() for word in words}
_WORD: Final = re.compile(r"[^\W\d_]+")


def find_disagreement(statement: str, quote: str, lead: str = "", around: str = "") -> str:
    """Return why a statement disagrees with its quote, or an empty text.

    Args:
        statement: Words of the agent.
        quote: Words of the source.
        lead: Sentence that leads to the list or table of the quote: what it denies or permits counts.
        around: Other words of the passage, in which names may stand.
    """
    whole = f"{lead} {quote}"
    said, held = exact_of(statement), exact_of(whole if exact_of(lead)[1] else quote)
    missing = names_of(_without_starts(quote)) - set(query_terms(statement))
    reasons = {
        "it leaves out a number of its quote": set(exact_of(quote)[0]) - set(said[0]),
        "it has a number that its quote does not have": set(said[0]) - set(exact_of(whole)[0]),
        "it denies something else than its quote": said[1] != held[1],
        "it permits or forbids something else than its quote": get_permissions(statement) != get_permissions(whole),
        f"it leaves out {min(missing, default='')}": missing,
        "it says something that its quote does not say": not says_no_more(statement, [whole, quote], [around]),
    }
    return next((reason for reason, is_so in reasons.items() if is_so), "")


def get_permissions(text: str) -> frozenset[str]:
    """Return the kinds of permission that a text speaks of."""
    return frozenset(_KINDS[word] for word in _WORD.findall(text.casefold()) if word in _KINDS)


def find_lead(text: str, place: tuple[int, int]) -> str:
    """Return the lead sentence of the list around a place, or an empty text."""
    blocks = parse_blocks(text)
    for number, block in enumerate(blocks):
        if block.start <= place[0] < block.end:
            above = blocks[number - 1] if number else None
            is_led = block.kind != "text" and above is not None and above.kind == "text" and place[0] >= above.end
            return " ".join(text[above.start : above.end].split()) if is_led and above is not None else ""
    return ""


def _without_starts(quote: str) -> str:
    """Return a quote without capitals at the start of sentences."""
    words = quote.split()
    before = [".", *words[:-1]]
    starts = (".", "!", "?", ":", "-", "*", "|")
    return " ".join(word.lower() if last.endswith(starts) else word for last, word in zip(before, words, strict=True))
