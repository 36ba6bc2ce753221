"""What a text names: the agent's own names, forms, known software, and what reads as a name. Pure, no network."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agent_memory.entities.capitals import capitals_in
from agent_memory.entities.han import han_in, is_eastern
from agent_memory.entities.kinds import is_full_name, kind_of
from agent_memory.entities.known import NO_NAMES
from agent_memory.entities.languages import language_of
from agent_memory.entities.lookup import listed_in, table_for, table_of
from agent_memory.entities.mention import KNOWN, Gazetteer, Mention
from agent_memory.entities.refusing import is_compound, is_refused
from agent_memory.entities.shapes import is_standard, shapes_in
from agent_memory.entities.software import software_in
from agent_memory.entities.stretches import Stretches
from agent_memory.entities.tagger import NAMED_LISTS, TextTagger, confidence, known_names
from agent_memory.entities.tokens import tokens_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent_memory.entities.lookup import Table
    from agent_memory.entities.tokens import Token

_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_FENCE: Final = "```"
_CODE_NAME: Final = re.compile(r"\w_(?:\w|$)|[a-z]\.[a-z_]\w+$")
_CODE_BEHIND: Final = re.compile(r"[(_=]|\.[A-Za-z]\w*|::")
_CAMEL: Final = re.compile(
    r"(?<![\w.@/`#-])(?P<name>[A-Z](?=\d*[a-z])[a-z0-9]++[A-Z][A-Za-z0-9]*+)(?![\w/(`-]|\.\w|::)"
)
_JOINING: Final = frozenset({"and", "or", "&", "und"})
_LISTING: Final = _JOINING | {","}
_OWNING: Final = frozenset({"'s", "\u2019s"})
_CODE_WORD: Final = re.compile(r"\d+[A-Z]+\d*|[A-Z]*\d[A-Z0-9]{4}|0x[0-9a-f]+|[45]\d\d")
"""What stands behind a name and is none of it: the code of an error, `40P01`."""
_FAULT: Final = re.compile(r"(?:Error|Exception|Warning|Interrupt)$")
_LINE: Final = re.compile(r"[^\n]+")
_SPLITTING: Final = frozenset({"in", "at", "from", "to", "near"})
_LEADING_WORDS: Final = """
    the a an my our your his her their this that these those per @
"""
_APART: Final = frozenset({"or", *'-\u2013\u2014*#<>"\u201c\u201d;|()[]\u2022='})
_LEADING: Final = frozenset(_LEADING_WORDS.split())
_GENERIC_WORDS: Final = """
    office offices project app account region warehouse server contract meeting release file page site website dataset
    repo repository branch database table endpoint bucket channel release upgrade migration deployment integration
"""
_GENERIC: Final = frozenset(_GENERIC_WORDS.split())
"""Written small behind a name, what the named thing is: "the Hamburg office"."""
_TITLES: Final = frozenset({"dr", "mr", "mrs", "ms", "prof", "sir", "professor"})
_SIGNS: Final = re.compile(r"[\W_\d]*")
_CAMEL_CONFIDENCE: Final = 0.6
_FULL_NAME: Final = 0.6
"""Confidence at least of a given name and a family name, both written large."""


def mentions_in(text: str, *, gazetteer: Gazetteer | None = None, speaker: str = "") -> tuple[Mention, ...]:
    """Return the names in a text in order; none overlap.

    Args:
        text: Anything a person or an agent wrote.
        gazetteer: Names that are known already; they are found however they are written.
        speaker: Who says it. Their name is known, and is no mention where it only labels what is said: `Ann: I …`.
    """
    label = f"{speaker}: "
    offset = len(label) if speaker and text.startswith(label) else 0
    read = " " * offset + text[offset:]
    tokens = tokens_of(read)
    taken = Stretches()
    candidates = _candidates(read, tokens, gazetteer, speaker)
    found = [mention for mention, start, end in candidates if taken.take(start, end)]
    return tuple(sorted(found, key=lambda each: each.start))


def _candidates(
    text: str, tokens: Sequence[Token], gazetteer: Gazetteer | None, speaker: str
) -> Iterator[tuple[Mention, int, int]]:
    """Yield what may be a name, the surest first, with the stretch that is then used up."""
    code = Stretches(match.span() for match in _CODE.finditer(text)) if "`" in text else Stretches()
    names = _kept(text, [name for name in _names(text, tokens) if not _is_code(text, name, code)])
    own = list(_own(text, tokens, gazetteer, speaker))
    told = Stretches((each.start, each.end) for each in own)
    yield from (_whole(name) for name in names if _is_longer(name, told.within(name.start, name.end)))
    yield from map(_whole, own)
    fences = Stretches(match.span() for match in _FENCED.finditer(text)) if _FENCE in text else Stretches()
    listed = [each for each in software_in(text, tokens) if not fences.meet(each.start, each.end)]
    known = Stretches((each.start, each.end) for each in listed)
    for mention, start, end in shapes_in(text):
        if mention.rule == "account" and (code.meet(start, end) or fences.meet(start, end)):
            continue
        if known.within(mention.start, mention.end) != [(mention.start, mention.end)]:
            yield mention, start, end
    yield from (_whole(name) for name in names if _is_longer(name, known.within(name.start, name.end)))
    yield from map(_whole, listed)
    yield from (_whole(name) for name in names)
    yield from (_whole(mention) for mention in _camel(text) if not _is_code(text, mention, code))


def _kept(text: str, names: Sequence[Mention]) -> list[Mention]:
    """Return what is not refused; a name is as sure everywhere in a text as at its surest place there."""
    best: dict[str, float] = {}
    for each in names:
        best[each.name] = max(each.confidence, best.get(each.name, 0.0))
    return [each for each in names if not is_refused(text, replace(each, confidence=best[each.name]))]


def _own(text: str, tokens: Sequence[Token], gazetteer: Gazetteer | None, speaker: str) -> Iterator[Mention]:
    """Yield the names that are known to whoever asks: those of the gazetteer, and who speaks."""
    if gazetteer is not None:
        yield from _listed(text, tokens, table_for(gazetteer), KNOWN, "known name")
    if speaker:
        yield from _listed(text, tokens, table_of({speaker: "person"}), KNOWN, "speaker")


def _whole(mention: Mention) -> tuple[Mention, int, int]:
    return mention, mention.start, mention.end


def _listed(text: str, tokens: Sequence[Token], table: Table, sure: float, rule: str) -> Iterator[Mention]:
    for start, end, kind in listed_in(text, tokens, table):
        yield Mention(text[start:end], kind, start, end, sure, rule)


def _is_longer(name: Mention, known: Sequence[tuple[int, int]]) -> bool:
    """Whether a name is more than the known ones in it: "Google Cloud Next"."""
    covered = sum(end - start for start, end in known) + name.name.count(" ")
    return bool(known) and covered < name.end - name.start and _is_titled(name.name)


def _is_titled(name: str) -> bool:
    return all(word[0].isupper() or word[0].isdigit() for word in name.split())


def _is_code(text: str, mention: Mention, code: Stretches) -> bool:
    if _CODE_NAME.search(mention.name) or _CODE_BEHIND.match(text, mention.end):
        return True
    if text[max(0, mention.start - 1) : mention.start] in {".", "$", "%", "<", "=", "+"} or text.endswith(
        "::", 0, mention.start
    ):
        return True
    return code.meet(mention.start, mention.end)


def _camel(text: str) -> Iterator[Mention]:
    for match in _CAMEL.finditer(text):
        start, end = match.span("name")
        mention = Mention(match["name"], "product", start, end, _CAMEL_CONFIDENCE, "capitals within")
        if not is_refused(text, mention) and not is_compound(mention.name):
            yield mention


def _names(text: str, tokens: Sequence[Token]) -> list[Mention]:
    language = language_of(text)
    found = han_in(text) if is_eastern(text) else []
    if language == "en" or (not language and not found):
        return [*found, *_learnt(text, tokens)]
    return [*found, *capitals_in(text, language)]


def _learnt(text: str, tokens: Sequence[Token]) -> Iterator[Mention]:
    at, tagger = 0, TextTagger()
    for line in _LINE.finditer(text):
        first = at
        while at < len(tokens) and tokens[at].start < line.end():
            at += 1
        yield from _in_line(text, tokens[first:at], tagger)


def _in_line(text: str, tokens: Sequence[Token], tagger: TextTagger) -> Iterator[Mention]:
    words = [token.word for token in tokens]
    labels, scores = tagger.labels_of(words)
    has_capitals = any(word[0].isupper() for word in words)
    for begin, close in _spans(labels):
        for start, end in _parts(words, begin, close):
            if has_capitals and not _is_likely(words[start:end]):
                continue
            first, last = tokens[start].start, tokens[end - 1].end
            first += text[first] == "#"
            kind, sure = kind_of(words, start, end), confidence(scores[start:end])
            if is_full_name(words[start:end]) and _is_titled(text[first:last]):
                sure = max(sure, _FULL_NAME)
            yield Mention(text[first:last], kind, first, last, sure, "model of names")


def _spans(labels: str) -> Iterator[tuple[int, int]]:
    for match in re.finditer("BI*", labels):
        yield match.start(), match.end()


def _parts(words: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the names in a stretch: without articles and signs around, apart where a place follows "in"."""
    is_list = "," in words[start:end] and not _JOINING.isdisjoint(words[start:end])
    first = start
    for at in range(start, end - 1):
        is_parting = (
            words[at] in _APART
            or "_" in words[at]
            or (is_list and words[at] in _LISTING)
            or _owns_common(words, at, end)
        )
        if is_parting or (words[at].lower() in _SPLITTING and _is_place(" ".join(words[at + 1 : end]).lower())):
            yield from _trimmed(words, first, at)
            first = at + 1
    yield from _trimmed(words, first, end)


def _owns_common(words: Sequence[str], at: int, end: int) -> bool:
    """Whether only a common thing stands behind a possessive ending: "React's SDK"."""
    return words[at] in _OWNING and all(word.lower() in NO_NAMES for word in words[at + 1 : end])


def _is_likely(words: Sequence[str]) -> bool:
    """Whether words can be a name where others are written large: they are, too, or a list has one of them."""
    words = [word for word in words if word.lower() not in NO_NAMES]
    if any(any(letter.isupper() for letter in word) for word in words):
        return True
    names = known_names()
    whole = " ".join(words)
    if any(whole in names[each] for each in NAMED_LISTS):
        return True
    return len(words) > 1 and all(any(word in names[each] for each in NAMED_LISTS) for word in words)


def _is_place(small: str) -> bool:
    return small in known_names()["city"] or small in known_names()["country"]


def _is_generic(word: str) -> bool:
    """Whether a word says what the named thing is: "the Hamburg office", "the Gemini API"."""
    return word in _GENERIC or (word.isupper() and word.lower() in NO_NAMES)


def _trimmed(words: Sequence[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and (_SIGNS.fullmatch(words[end - 1]) or words[end - 1] in {"'s", "\u2019s", "'", "\u2019"}):
        end -= 1
    while (
        start < end and (words[start].lower() in _LEADING or not words[start][0].isalnum()) and words[start][0] != "#"
    ):
        start += 1
    while end - start > 1 and words[start].lower().rstrip(".") in _TITLES:
        start += 1 + (words[start + 1] == "." and end - start > 2)  # noqa: PLR2004 - a title, its point and a name
    while end - start > 1 and (_is_generic(words[end - 1]) or _CODE_WORD.fullmatch(words[end - 1])):
        end -= 1
    if end - start == 1 and _FAULT.search(words[start]):
        return
    if start < end and not all(
        word.lower() in NO_NAMES or is_standard(word) or _SIGNS.fullmatch(word) for word in words[start:end]
    ):
        yield start, end
